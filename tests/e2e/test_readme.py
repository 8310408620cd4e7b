# SPDX-License-Identifier: Apache-2.0
"""What README.md and the examples show is what happens."""

import os
import re
import shutil
import subprocess

import pytest

from daemon import PROGRAM, ROOT, Daemon
from ports import free_port
from wire import check_blocked, edes

README = (ROOT / "README.md").read_text()
EXAMPLES = sorted(p.name for p in (ROOT / "policies/examples").iterdir() if p.is_dir())


def example(folder, policies="home"):
    """A copy of the example configuration with its own port, state and dead upstream."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    shutil.copytree(ROOT / "policies/examples", folder / "policies/examples")
    text = (ROOT / "examples/baleen.yaml").read_text()
    port = free_port()
    text = text.replace(":5353", f":{port}").replace("examples/home", f"examples/{policies}")
    text = text.replace("\ncache:", "\nupstreams: {default: {servers: [\"127.0.0.1:9\"]}}\ncache:")
    (folder / "examples/baleen.yaml").write_text(text)
    (folder / "build").mkdir()
    return folder / "examples/baleen.yaml", port


@pytest.mark.parametrize("site", EXAMPLES)
def test_example_policies_check(tmp_path, site):
    config, _ = example(tmp_path, site)
    done = subprocess.run([PROGRAM, "check", "-c", config], capture_output=True, text=True)
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert ": warning: " not in output, output


def test_example_runs_without_network(tmp_path):
    """As root from a clone under /root: the program, too, stands where `user:` cannot go."""
    config, port = example(tmp_path)
    daemon = Daemon(tmp_path / "unused", upstream="127.0.0.1:9")
    daemon.config_file, daemon.port = config, port
    shutil.copytree(PROGRAM.parent / "plugins", tmp_path / "build/plugins")
    daemon.program = shutil.copy(PROGRAM, tmp_path / "build/baleen")
    tmp_path.chmod(0o700)
    try:
        daemon.start()
        for name in ("doubleclick.net", "www.google-analytics.com", "use-application-dns.net",
                     "x.malware.example"):
            answer = daemon.ask(name)
            check_blocked(answer, ede=edes(answer)[0][0])
        answer = daemon.ask("www.example.org")
        assert {code for code, _ in edes(answer)} & {22, 23}
        # The second group of the example: the same name, another verdict.
        assert daemon.json("explain", "www.bing.com", "--client", "127.0.0.2")["verdict"] == "rewrite"
        assert daemon.json("explain", "www.bing.com", "--client", "127.0.0.1")["verdict"] == "allow"
    finally:
        daemon.stop()


def test_the_commented_feed_is_in_the_catalogue():
    text = (ROOT / "examples/baleen.yaml").read_text()
    name = re.search(r"# - name: (\S+)", text)[1]
    done = subprocess.run([PROGRAM, "feeds", "catalogue"], capture_output=True, text=True, check=True)
    assert re.search(rf"\b{re.escape(name)}\b", done.stdout)


def test_lists_are_what_they_say():
    names = []
    for path in (ROOT / "examples/lists").glob("*.txt"):
        names += [line for line in path.read_text().splitlines() if line and line[0] != "#"]
    assert len(names) >= 300
    assert len(set(names)) >= 300
    for name in names:
        assert re.fullmatch(r"([a-z0-9-]+\.)+[a-z]+", name), name


def test_readme_configuration_examples_check(tmp_path):
    """Every ```yaml block of README.md with `listen:` is a configuration that `check` accepts."""
    blocks = [b for b in re.findall(r"```yaml\n(.*?)```", README, re.S) if "listen:" in b]
    assert blocks
    for number, block in enumerate(blocks):
        folder = tmp_path / str(number)
        shutil.copytree(ROOT / "examples/lists", folder / "lists")
        (folder / "policies").mkdir()
        policy = [b for b in re.findall(r"```yaml\n(.*?)```", README, re.S) if b.startswith("group:")]
        for i, text in enumerate(policy):
            (folder / f"policies/p{i}.yaml").write_text(text)
        (folder / "baleen.yaml").write_text(block)
        done = subprocess.run([PROGRAM, "check", "-c", folder / "baleen.yaml"], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_readme_commands(tmp_path):
    """Each `baleen ...` line in a ```sh block runs as it stands (against a daemon that runs)."""
    config, port = example(tmp_path)
    daemon = Daemon(tmp_path / "unused", upstream="127.0.0.1:9")
    daemon.config_file, daemon.port = config, port
    try:
        daemon.start()
        lines = [line for block in re.findall(r"```sh\n(.*?)```", README, re.S)
                 for line in block.splitlines() if line.startswith("build/baleen ")]
        assert len(lines) >= 5
        for line in lines:
            words = line.split("#")[0].split()[1:]
            if words[0] in ("run",) or words[:2] == ["log", "tail"]:
                continue
            words = [str(config) if w == "examples/baleen.yaml" else w for w in words]
            done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=60, cwd=ROOT)
            assert done.returncode == 0, (line, done.stdout + done.stderr)
    finally:
        daemon.stop()


def test_readme_console(tmp_path):
    """What the first screen shows is what comes."""
    config, port = example(tmp_path)
    daemon = Daemon(tmp_path / "unused", upstream="127.0.0.1:9")
    daemon.config_file, daemon.port = config, port
    block = re.search(r"```console\n(.*?)```", README, re.S)[1]
    try:
        daemon.start()
        said = daemon.run("explain", "ad.doubleclick.net").stdout
        dug = subprocess.run(["dig", "@127.0.0.1", "-p", str(port), "ad.doubleclick.net"],
                             capture_output=True, text=True).stdout
    finally:
        daemon.stop()
    shown = [re.sub(r"id: \d+", "", " ".join(line.split())) for line in block.splitlines()
             if line and not line.startswith("$")]
    came = [re.sub(r"id: \d+", "", " ".join(line.split())) for line in (said + dug).splitlines()]
    assert shown and [line for line in shown if line not in came] == []


def test_readme_names_every_package():
    for line in (ROOT / "scripts/packages.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            assert f"`{line.split()[1]}`" in README, line


def test_readme_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)", README):
        if "://" not in target:
            assert (ROOT / target).exists(), target


def test_make_help():
    done = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True)
    for target in ("run", "test", "check-asan", "fuzz", "bench", "lint", "format", "install", "deps"):
        assert f"make {target}" in done.stdout


def test_install(tmp_path):
    env = {**os.environ, "B": str(PROGRAM.parent), "PREFIX": "/usr/local", "DESTDIR": str(tmp_path),
           "VERSION": (ROOT / "VERSION").read_text().strip()}
    done = subprocess.run([ROOT / "scripts/install.sh"], cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    top = tmp_path / "usr/local"
    for name in ("sbin/baleen", "lib/baleen/plugins/blocklist.so", "include/baleen/plugin.h",
                 "lib/pkgconfig/baleen.pc", "share/doc/baleen/examples/baleen.yaml",
                 "share/man/man1/baleen.1"):
        assert (top / name).exists(), name
    # The example keeps its shape: what its relative paths name is there.
    assert (top / "share/doc/baleen/examples/lists/ads.txt").exists()
    assert (top / "share/doc/baleen/policies/examples/home/default.yaml").exists()
