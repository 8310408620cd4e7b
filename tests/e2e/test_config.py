# SPDX-License-Identifier: Apache-2.0
"""What is wrong is said with file, line and column; all of it; and a running daemon stays as it was."""

import json
import re
import signal
import subprocess

import pytest

from daemon import PROGRAM, ROOT, wait_for
from upstream import address
from wire import addresses, check_blocked, edes

GOOD = """listen:
  - address: 127.0.0.1:5353
upstreams:
  default:
    servers: [127.0.0.1:5300]
plugins: [blocklist]
state: state
control: control.sock
policies: policies/
"""

# What is changed in GOOD, and what the error must say: line, and words of it.
WRONG = {
    "unknown key": ("plugins: [", "plugin: [", 6, "plugins"),
    "unknown key inside": ("    servers:", "    server:", 5, "servers"),
    "address": ("127.0.0.1:5353", "127.0.0.1:99999", 2, ""),
    "server": ("[127.0.0.1:5300]", "[127.0.0.1:5300, nonsense]", 5, "nonsense"),
    "strategy": ("servers:", "strategy: quickest\n    servers:", 5, "fastest"),
    "duration": ("servers:", "timeout: 2 parsecs\n    servers:", 5, ""),
    "size": ("state: state", "cache: {size: 64 apples}\nstate: state", 7, ""),
    "plugin": ("[blocklist]", "[blocklist, nosuch]", 6, "nosuch"),
    "option": ("[blocklist]", "[{ratelimit: {queries-per-secnd: 5}}]", 6, "queries-per-second"),
    "option range": ("[blocklist]", "[{ratelimit: {queries-per-second: -5}}]", 6, ""),
    "option type": ("[blocklist]", "[{ratelimit: {queries-per-second: many}}]", 6, ""),
    "mode": ("[blocklist]", "[{blocklist: {mode: sometimes}}]", 6, "enforce"),
    "plugin twice": ("[blocklist]", "[blocklist, blocklist]", 6, "name"),
    "key twice": ("plugins:", "listen: []\nplugins:", 6, "listen"),
    "bad YAML": ("[blocklist]", "[blocklist", None, ""),
    "alias": ("[blocklist]", "[blocklist, *.x]", 6, "quote"),
    "tab": ("  default:", "\tdefault:", 4, ""),
    "tls server": ("127.0.0.1:5300", "\"tls://9.9.9.9\"", 5, "not in this version"),
    "format": ("state:", "feeds: [{name: x, file: baleen.yaml, format: word}]\nstate:", 7, "hosts"),
    "feed name": ("state:", "feeds: [{name: \"../x\", file: baleen.yaml}]\nstate:", 7, ""),
    "feed twice": ("state:", "feeds: [{name: x, file: baleen.yaml, format: hosts}, "
                             "{name: x, file: baleen.yaml, format: hosts}]\nstate:", 7, "x"),
    "not a map": ("listen:", "- listen:", None, ""),
    "prefix": ("state:", "allow-clients: [10.0.0.0/40]\nstate:", 7, "10.0.0.0/40"),
}

POLICY = "group: staff\nclients: [10.0.0.0/8]\nrules:\n  - block: [bad.test]\n"
WRONG_POLICY = {
    "unknown key": ("rules:", "rulez:", 3, "rules"),
    "unknown rule": ("- block:", "- blok:", 4, "block"),
    "unknown feed": ("[bad.test]", "{feeds: [nosuch]}", 4, "nosuch"),
    "name": ("[bad.test]", "[bad..test]", 4, ""),
    "alias": ("[bad.test]", "[*.bad.test]", 4, "quote"),
    "type": ("[bad.test]", "{types: [AAAAA]}", 4, "AAAAA"),
    "answer": ("[bad.test]", "[bad.test]\n    answer: nothing", 5, "nxdomain"),
    "prefix": ("10.0.0.0/8", "10.0.0.0/99", 2, "10.0.0.0/99"),
    "schedule": ("[bad.test]", "[bad.test]\n    when: {days: mon-fry}", 5, ""),
    "time zone": ("[bad.test]", "[bad.test]\n    when: {days: mon-fri, timezone: Europe/Zorich}", 5, "Zorich"),
    "extends nobody": ("rules:", "extends: nobody\nrules:", 3, "nobody"),
    "extends itself": ("rules:", "extends: staff\nrules:", 3, "staff"),
    "plugin not in the chain": ("rules:", "plugins: {ratelimit: {burst: 5}}\nrules:", 3, "ratelimit"),
    "empty rule": ("[bad.test]", "{}", 4, ""),
    "failing test": ("rules:", "tests:\n  - {query: good.test, client: 10.1.1.1, expect: block}\nrules:",
                     4, "block"),
}


def check(folder, code=1):
    done = subprocess.run([PROGRAM, "check", "-c", folder / "baleen.yaml"], capture_output=True,
                          text=True, timeout=60)
    output = done.stdout + done.stderr
    assert done.returncode == code, output
    assert "AddressSanitizer" not in output and "runtime error" not in output
    return output


def places(output, name):
    return [(int(line), message) for line, message in
            re.findall(rf"{re.escape(name)}:(\d+):\d+: (.*)", output)]


def site(folder, config=GOOD, policy=None):
    (folder / "policies").mkdir(exist_ok=True)
    (folder / "baleen.yaml").write_text(config)
    if policy is not None:
        (folder / "policies/staff.yaml").write_text(policy)
    return folder


def test_good(tmp_path):
    check(site(tmp_path, policy=POLICY), code=0)


@pytest.mark.parametrize("case", WRONG)
def test_configuration_errors(tmp_path, case):
    old, new, line, words = WRONG[case]
    assert old in GOOD
    found = places(check(site(tmp_path, GOOD.replace(old, new, 1))), "baleen.yaml")
    assert found, case
    assert line is None or line in [at for at, _ in found], found
    assert any(words in message for _, message in found), found


@pytest.mark.parametrize("case", WRONG_POLICY)
def test_policy_errors(tmp_path, case):
    old, new, line, words = WRONG_POLICY[case]
    assert old in POLICY
    output = check(site(tmp_path, policy=POLICY.replace(old, new, 1)))
    found = places(output, "policies/staff.yaml")
    assert found, output
    assert line in [at for at, _ in found], found
    assert any(words in message for _, message in found), found


def test_all_errors_not_only_the_first(tmp_path):
    text = GOOD.replace("plugins:", "plugin:").replace("5353", "bad").replace("servers:", "server:")
    output = check(site(tmp_path, text))
    assert {at for at, _ in places(output, "baleen.yaml")} >= {2, 5, 6}
    policy = POLICY.replace("bad.test", "bad..test").replace("/8", "/99")
    output = check(site(tmp_path, GOOD, policy))
    assert {at for at, _ in places(output, "policies/staff.yaml")} >= {2, 4}


def test_errors_of_options_come_with_all_others_in_the_order_of_the_file(tmp_path):
    text = GOOD.replace("[blocklist]", "[{ratelimit: {burst: lots}}, blocklist]") + "workers: none\n"
    output = check(site(tmp_path, text, POLICY.replace("/8", "/99")))
    assert [at for at, _ in places(output, "baleen.yaml")] == [6, 10], output
    assert places(output, "policies/staff.yaml"), output


def test_missing_list_is_a_warning(tmp_path):
    """The daemon starts without it, for it may come; but who wrote it wants to know."""
    output = check(site(tmp_path, GOOD.replace("state:", "feeds: [{name: x, file: gone.txt}]\nstate:")), 0)
    assert any("gone.txt" in message for at, message in places(output, "baleen.yaml") if at == 7), output


def test_equal_prefixes_in_two_groups(tmp_path):
    site(tmp_path, policy=POLICY)
    (tmp_path / "policies/twin.yaml").write_text(POLICY.replace("staff", "twin"))
    assert "10.0.0.0/8" in check(tmp_path)


def test_rules_without_blocklist(tmp_path):
    assert "blocklist" in check(site(tmp_path, GOOD.replace("[blocklist]", "[ratelimit]"), POLICY))


def test_unreachable_rules_are_warnings(tmp_path):
    output = check(site(tmp_path, policy=POLICY + "  - block: [x.bad.test]\n"), code=0)
    assert places(output, "policies/staff.yaml"), output
    assert "warning" in output


def test_missing_file(tmp_path):
    done = subprocess.run([PROGRAM, "check", "-c", tmp_path / "none.yaml"], capture_output=True, text=True)
    assert done.returncode == 1 and "none.yaml" in done.stderr + done.stdout


STRANGE = {
    "nul": b"\0", "latin-1": b"state: f\xfcr\n",
    "deep lists": b"[" * 5000, "deep maps": b"{" * 300 + b"}" * 300, "alias of itself": b"a: &x [*x]\n",
    "other version": b"%YAML 9.9\n---\n", "long value": b"state: " + b"x" * 200000,
    "binary": bytes(range(256)) * 100, "two documents": b"listen: []\n---\nlisten: []\n",
}


@pytest.mark.parametrize("case", STRANGE)
def test_strange_files(tmp_path, case):
    site(tmp_path).joinpath("baleen.yaml").write_bytes(STRANGE[case])
    check(tmp_path)


def test_empty_configuration_is_the_default(tmp_path):
    check(site(tmp_path, ""), code=0)


def test_run_with_a_bad_configuration(tmp_path):
    site(tmp_path, GOOD.replace("plugins:", "plugin:"))
    done = subprocess.run([PROGRAM, "run", "-c", tmp_path / "baleen.yaml"], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 1
    assert places(done.stdout + done.stderr, "baleen.yaml")


@pytest.mark.parametrize("name", sorted(p.name for p in (ROOT / "tests/conf/bad").glob("*.yaml")))
def test_conf_bad(name):
    """Files of tests/conf/bad carry the errors to expect in front: `# error: LINE:COLUMN: words`."""
    path = f"tests/conf/bad/{name}"
    done = subprocess.run([PROGRAM, "check", "-c", path], capture_output=True, text=True, timeout=60,
                          cwd=ROOT)
    expected = re.findall(r"^# error: (\d+:\d+): (.*)$", (ROOT / path).read_text(), re.M)
    said = (done.stdout + done.stderr).replace(f"{ROOT}/", "")
    assert done.returncode == 1 and expected
    for place, words in expected:
        assert f"{path}:{place}: error: {words}" in said


# ---- a running daemon ----

def test_refused_reload_keeps_the_old_configuration(baleen, upstream):
    daemon = baleen(upstream=upstream, policies={
        "default": {"group": "default", "rules": [{"block": ["bad.test"]}]}})
    before = daemon.status()["generation"]

    broken = {
        "configuration": lambda: daemon.save({**daemon.config, "plugin": []}),
        "YAML": lambda: daemon.save(f"control: {daemon.folder}/state/control.sock\nlisten: [}}"),
        "policy": lambda: daemon.write("policies/default.yaml", "group: default\nrules: [{blok: [x]}]\n"),
        "policy test": lambda: daemon.write("policies/default.yaml", {
            "group": "default", "rules": [],
            "tests": [{"query": "bad.test A", "client": "127.0.0.1", "expect": "block"}]}),
        "option": lambda: daemon.save({**daemon.config, "plugins": [{"blocklist": {"x": 1}}]}),
    }
    good_policy = (daemon.folder / "policies/default.yaml").read_text()
    for what, spoil in broken.items():
        spoil()
        refused = daemon.reload(code=1)
        assert re.search(r"yaml:\d+:\d+: ", refused.stdout + refused.stderr), what
        check_blocked(daemon.ask("bad.test"))
        assert addresses(daemon.ask("www.test")) == ["192.0.2.1"]
        assert daemon.status()["generation"] == before
        daemon.save()
        daemon.write("policies/default.yaml", good_policy)
    daemon.reload()
    assert daemon.status()["generation"] != before
    check_blocked(daemon.ask("bad.test"))


def test_reload_takes_everything_new(baleen, upstream, upstreams):
    other = upstreams(default=address("192.0.2.44"))
    daemon = baleen(upstream=upstream, config={"cache": {"size": "8MiB", "max-ttl": "1s"}})
    assert edes(daemon.ask("bad.test")) == []
    daemon.config["upstreams"]["default"]["servers"] = [other.endpoint]
    daemon.write("policies/default.yaml", {"group": "default", "rules": [{"block": ["bad.test"]}]})
    daemon.write("lists/new.txt", "listed.test\n")
    daemon.config["feeds"].append({"name": "new", "file": "lists/new.txt", "format": "domains"})
    daemon.write("policies/other.yaml", {"group": "other", "clients": ["127.0.0.2"],
                                         "rules": [{"block": {"feeds": ["new"]}}]})
    daemon.save()
    daemon.reload()
    # The old workers finish what they have in their hands, for a moment.
    assert wait_for(lambda: edes(daemon.ask("bad.test")))
    check_blocked(daemon.ask("bad.test"))
    assert wait_for(lambda: addresses(daemon.ask("fresh.test")) == ["192.0.2.44"], 10, 1.1)
    assert wait_for(lambda: edes(daemon.ask("listed.test", source="127.0.0.2")))


def test_sighup_reloads(baleen, upstream):
    daemon = baleen(upstream=upstream)
    daemon.write("policies/default.yaml", {"group": "default", "rules": [{"block": ["bad.test"]}]})
    daemon.process.send_signal(signal.SIGHUP)
    assert wait_for(lambda: edes(daemon.ask("bad.test")))


def test_schema(tmp_path):
    done = subprocess.run([PROGRAM, "check", "-c", site(tmp_path) / "baleen.yaml", "--schema"],
                          capture_output=True, text=True)
    assert done.returncode == 0
    schema = json.loads(done.stdout)
    keys = set(schema_keys({k: v for k, v in schema["properties"].items() if k != "plugins"}))
    assert {"listen", "upstreams", "feeds", "policies", "address", "stale", "mirrors"} <= keys
    manual = (ROOT / "docs/man/baleen.yaml.5").read_text().replace("\\-", "-")
    assert [key for key in keys if not re.search(rf"\b{key}\b", manual)] == []
    # The loader's own words.
    site(tmp_path, GOOD + "xyzzyx: 1\nfeeds:\n  - {xyzzyx: 1}\n")
    errors = subprocess.run([PROGRAM, "check", "-c", tmp_path / "baleen.yaml"], capture_output=True,
                            text=True).stderr
    lists = [set(words.split(", ")) for words in re.findall(r'"xyzzyx" \(expected one of (.*)\)', errors)]
    feed = schema["properties"]["feeds"]["items"]["anyOf"][1]["properties"]
    assert set(schema["properties"]) in lists and set(feed) in lists, errors


def schema_keys(properties):
    for key, value in properties.items():
        yield key
        value = value.get("additionalProperties") or value.get("items") or value
        for part in [value, *value.get("anyOf", [])]:
            yield from schema_keys(part.get("properties", {}))
