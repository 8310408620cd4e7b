# SPDX-License-Identifier: Apache-2.0
"""The process tree: what runs as whom, what happens when one dies, reloads without a lost answer."""

import json
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import time

import pytest

from daemon import AS_ROOT, PATIENCE, PROGRAM, SANITIZED, Daemon, wait_for
from load import Load
from load_tcp import TcpLoad
from upstream import address, delayed
from wire import TcpClient, addresses, check_blocked, edes, question, silent

RATE = 1000 if SANITIZED else 5000
AS_NOBODY = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]
NAMES = [f"n{i}.wild.test" for i in range(50)] + ["ads.test", "www.test"]


def uid_of(pid):
    return os.stat(f"/proc/{pid}").st_uid


def status_line(pid, key):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return line.split(":")[1].strip()


def restarts(daemon):
    return sum(p["restarts"] for p in daemon.status()["processes"])


def test_titles_and_rights(baleen, upstream):
    daemon = baleen(upstream=upstream, lists={"ours": "ads.test\n"})
    tree = daemon.processes()
    titles = " ".join(tree)
    for word in ("worker 0", "worker 1", "fetcher", "logger", "admin", "template"):
        assert word in titles, titles
    for title, pids in tree.items():
        for pid in pids:
            if AS_ROOT:
                assert uid_of(pid) == pwd.getpwnam("nobody").pw_uid, title
            assert int(status_line(pid, "CapEff"), 16) == 0, title
            assert status_line(pid, "NoNewPrivs") == "1", title
    for pid in daemon.workers():
        assert status_line(pid, "Seccomp") == "2" or SANITIZED


def test_term_drains(baleen, upstream):
    """A question in flight is answered before the daemon leaves; nothing is left behind."""
    upstream.on["slow.test"] = delayed(0.7, address())
    daemon = baleen(upstream=upstream)
    tree = [pid for pids in daemon.processes().values() for pid in pids]
    with TcpClient(daemon.port) as client:
        client.send(question("slow.test"))
        wait_for(lambda: upstream.count("slow.test"))
        daemon.process.send_signal(signal.SIGTERM)
        assert addresses(client.receive()) == ["192.0.2.1"]
    assert daemon.process.wait(15 * PATIENCE) == 0
    assert wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in tree))


def test_term_to_all_processes_at_once_is_one_stop(baleen, upstream):
    """What systemd and killall do: only the supervisor's counts, nothing is started again."""
    upstream.on["slow.test"] = delayed(0.7, address())
    daemon = baleen(upstream=upstream)
    tree = [pid for pids in daemon.processes().values() for pid in pids]
    with TcpClient(daemon.port) as client:
        client.send(question("slow.test"))
        wait_for(lambda: upstream.count("slow.test"))
        os.killpg(daemon.process.pid, signal.SIGTERM)
        assert addresses(client.receive()) == ["192.0.2.1"]
    daemon.stop()
    assert not daemon.said("error ") and not daemon.said("did not drain"), daemon.log()
    assert wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in tree))


@pytest.mark.skipif(not AS_ROOT, reason="needs two users")
def test_group_members_may_look(baleen_own, upstream, tmp_path_factory):
    """A member of the daemon's group asks for the status; changing things is not for them."""
    folder = tmp_path_factory.mktemp("open")
    for parent in [folder, *folder.parents]:
        if parent.stat().st_mode & 0o001 == 0:
            parent.chmod(0o755)
    control = folder / "run/control.sock"
    daemon = baleen_own(upstream=upstream, config={"control": str(control)})
    asking = ["setpriv", "--reuid", "daemon", "--regid", "nogroup", "--clear-groups",
              sys.executable, "-c",
              "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
              "s.sendall(sys.argv[2].encode() + b'\\n'); print(s.makefile().readline())", control]
    look = subprocess.run([*asking, '{"command": "status"}'], capture_output=True, text=True, timeout=60)
    assert json.loads(look.stdout)["ok"], look
    change = subprocess.run([*asking, '{"command": "reload"}'], capture_output=True, text=True, timeout=60)
    assert not json.loads(change.stdout)["ok"]
    assert daemon.status()["generation"] == 1


def test_children_leave_when_the_supervisor_is_killed(baleen, upstream):
    daemon = baleen(upstream=upstream)
    tree = [pid for pids in daemon.processes().values() for pid in pids]
    daemon.process.kill()
    daemon.process.wait()
    daemon.process = None
    assert wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in tree), 6)
    daemon.start()  # and nothing stands in the way of the next one
    assert addresses(daemon.ask("www.test")) == ["192.0.2.1"]


def test_second_daemon_cannot_join(baleen, baleen_own, upstream):
    daemon = baleen(upstream=upstream)
    again = subprocess.run([PROGRAM, "run", "-c", daemon.config_file], capture_output=True, timeout=60)
    assert again.returncode == 1
    other = baleen_own(start=False, upstream=upstream)
    other.port = daemon.port
    other.config["listen"] = daemon.config["listen"]
    other.save()
    same_port = subprocess.run([PROGRAM, "run", "-c", other.config_file], capture_output=True, timeout=60)
    assert same_port.returncode == 1
    assert str(daemon.port).encode() in same_port.stderr + same_port.stdout
    assert addresses(daemon.ask("www.test")) == ["192.0.2.1"]


def test_dead_upstream_of_every_process(baleen, upstream):
    """Each child that dies is replaced; DNS does not notice."""
    daemon = baleen(upstream=upstream)
    daemon.crash_expected = True
    for role in ("logger", "fetcher", "admin", "template"):
        pid = next(p for title, pids in daemon.processes().items() if role in title for p in pids)
        os.kill(pid, signal.SIGKILL)
        assert wait_for(lambda: [p for title, pids in daemon.processes().items() if role in title
                                 for p in pids if p != pid]), role
        assert addresses(daemon.ask(f"after-{role}.test")) == ["192.0.2.1"]
        assert wait_for(lambda: len(daemon.workers()) == 2), role
    assert wait_for(lambda: daemon.run("status", code=None).returncode == 0)
    # An admin whose template is gone says so, until its successor has taken over.
    assert wait_for(lambda: daemon.reload(code=None).returncode == 0)
    assert addresses(daemon.ask("end.test")) == ["192.0.2.1"]


@pytest.mark.parametrize("how", [signal.SIGSEGV, signal.SIGKILL], ids=["segv", "kill"])
def test_worker_dies_under_load(baleen, knot, tmp_path, how):
    daemon = baleen(upstream=knot.endpoint, lists={"ours": "ads.test\n"})
    daemon.crash_expected = True
    for name in NAMES:
        daemon.ask(name)
    load = Load(tmp_path, daemon.port, RATE, 4, NAMES)
    time.sleep(1.5)
    victim = daemon.workers()[0]
    os.kill(victim, how)
    time.sleep(0.5)
    assert addresses(daemon.ask("www.test")) == ["192.0.2.1"]
    check_blocked(daemon.ask("ads.test"))
    sent, lost, codes = load.finish()
    # What that worker had in its hands: at most one batch for each of its sockets, and what waited.
    assert lost <= 200, load.report
    assert set(codes) <= {"NOERROR", "NXDOMAIN"}, load.report
    assert wait_for(lambda: len(daemon.workers()) == 2)
    assert victim not in daemon.workers()
    assert restarts(daemon) >= 1
    assert daemon.said(str(victim)), daemon.log()


def test_worker_that_hangs_is_replaced_or_harmless(baleen, upstream):
    """A worker that is stopped outside a hook holds up only its own packets."""
    daemon = baleen(upstream=upstream)
    daemon.crash_expected = True
    victim = daemon.workers()[0]
    os.kill(victim, signal.SIGSTOP)
    try:
        def answered():
            return not silent(lambda: daemon.ask("www.test", timeout=0.5))
        assert wait_for(answered, 10)
    finally:
        try:
            os.kill(victim, signal.SIGCONT)
        except ProcessLookupError:
            pass
    assert wait_for(lambda: addresses(daemon.ask("again.test")) == ["192.0.2.1"])


def reload_during(daemon, still_running, count=4):
    before = daemon.status()["generation"]
    time.sleep(1)
    for _ in range(count):
        assert still_running()
        daemon.reload()
        time.sleep(0.5)
    assert daemon.status()["generation"] == before + count


def test_reload_under_load_loses_nothing(baleen, knot, tmp_path):
    daemon = baleen(upstream=knot.endpoint, lists={"ours": "ads.test\n"})
    for name in NAMES:
        daemon.ask(name)
    load = Load(tmp_path, daemon.port, RATE // 2, 7, NAMES)
    reload_during(daemon, lambda: load.process.poll() is None)
    sent, lost, codes = load.finish()
    assert sent > RATE
    assert lost == 0, load.report
    assert set(codes) <= {"NOERROR", "NXDOMAIN"}, load.report
    assert wait_for(lambda: len(daemon.workers()) == 2, 15)
    assert not daemon.status()["degraded"]


def test_reload_under_tcp_load_loses_nothing(baleen, knot):
    daemon = baleen(upstream=knot.endpoint, lists={"ours": "ads.test\n"})
    load = TcpLoad(daemon.port, NAMES, 6)
    reload_during(daemon, lambda: time.monotonic() < load.end, 3)
    load.finish()
    assert not load.problems, load.problems[:5]
    assert load.answered > 1000
    # A generation that leaves closes each connection once.
    assert load.reconnected <= 4 * 3 * 2


def test_refresh_under_load_loses_nothing(baleen, knot, tmp_path):
    lists = "".join(f"x{i}.bad.test\n" for i in range(5000))
    daemon = baleen(upstream=knot.endpoint, lists={"ours": lists})
    load = Load(tmp_path, daemon.port, RATE // 2, 5, NAMES)
    for turn in range(3):
        time.sleep(0.5)
        daemon.write("lists/ours.txt", lists + f"turn{turn}.test\n")
        daemon.run("feeds", "refresh", "ours")
        assert wait_for(lambda: edes(daemon.ask(f"turn{turn}.test")))
    _, lost, codes = load.finish()
    assert lost == 0, load.report
    assert set(codes) <= {"NOERROR", "NXDOMAIN"}, load.report


def test_many_reloads_leave_nothing_behind(baleen, upstream):
    daemon = baleen(upstream=upstream)

    def shape():
        pids = [pid for pids in daemon.processes().values() for pid in pids]
        return len(pids), len(os.listdir(f"/proc/{daemon.process.pid}/fd"))
    daemon.reload()
    assert wait_for(lambda: len(daemon.workers()) == 2, 15)
    wait_for(lambda: shape()[0] <= 6, 15)
    before = shape()
    for _ in range(8):
        daemon.reload()
    wait_for(lambda: shape()[0] <= before[0], 20)
    after = shape()
    assert after[0] == before[0] and after[1] <= before[1] + 2, (before, after)


def test_hups_and_reloads_at_once(baleen, upstream):
    daemon = baleen(upstream=upstream)
    for turn in range(5):
        daemon.write("policies/default.yaml",
                     {"group": "default", "rules": [{"block": [f"turn{turn}.test"]}]})
        daemon.process.send_signal(signal.SIGHUP)
        daemon.run("reload", code=None)
    assert wait_for(lambda: edes(daemon.ask("turn4.test")), 15)


def test_as_ordinary_user(upstream, tmp_path):
    """Started by nobody (or by whoever runs the tests), on a high port, everything of its own."""
    tmp_path.chmod(0o755)
    for parent in list(tmp_path.parents)[:2]:
        parent.chmod(0o755)
    folder = tmp_path / "site"
    daemon = Daemon(folder, upstream=upstream, lists={"ours": "ads.test\n"}, user="someone-else",
                    wrapper=AS_NOBODY if AS_ROOT else [])
    if AS_ROOT:
        subprocess.run(["chown", "-R", "nobody:nogroup", folder], check=True)
    # The program must be reachable for that user, wherever the tree stands.
    if subprocess.run([*daemon.wrapper, "test", "-x", PROGRAM]).returncode != 0:
        bin_ = tmp_path / "bin"
        shutil.copytree(PROGRAM.parent / "plugins", bin_ / "plugins")
        shutil.copy(PROGRAM, bin_)
        daemon.program = bin_ / "baleen"
        bin_.chmod(0o755)
    try:
        daemon.start()
        check_blocked(daemon.ask("ads.test"))
        assert addresses(daemon.ask("www.test")) == ["192.0.2.1"]
        assert uid_of(daemon.workers()[0]) != 0
        daemon.reload()
        assert daemon.events(1)
    finally:
        daemon.stop()
