# SPDX-License-Identifier: Apache-2.0
"""The commands: what they print, their JSON, their exit codes (0, 1, 2, 3)."""

import json
import subprocess
import threading

import pytest

from daemon import PROGRAM, wait_for
from upstream import answer
from wire import addresses


@pytest.fixture(scope="module")
def baleen(shared_baleen):
    from upstream import ScriptedUpstream
    server = ScriptedUpstream()
    server.on["cloak.test"] = answer("@ 300 CNAME x.ads.test.", "x.ads.test. 300 A 192.0.2.1")
    yield shared_baleen(upstream=server, lists={"ours": "ads.test\n"}, policies={
        "default": {"group": "default", "rules": [{"allow": ["good.ads.test"]},
                                                  {"block": {"feeds": "all"}}]},
        "lab": {"group": "lab", "clients": ["127.0.0.2"], "rules": [{"monitor": {"feeds": ["ours"]}}]}})
    server.stop()


@pytest.mark.parametrize("words", [
    [], ["nosuch"], ["run", "--nosuch"], ["feeds"], ["feeds", "nosuch"], ["explain"],
    ["feeds", "lookup"], ["feeds", "compile"], ["run", "-c"], ["log"]], ids=" ".join)
def test_wrong_usage(words):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert "usage" in done.stderr.lower() and not done.stdout


def test_help_and_version():
    for words in (["--help"], ["--version"]):
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout


@pytest.mark.parametrize("words", [["status"], ["stats"], ["reload"], ["feeds", "refresh"],
                                   ["log", "tail"], ["cache", "stats"]], ids=" ".join)
def test_no_daemon(baleen_own, words):
    daemon = baleen_own(start=False, upstream="127.0.0.1:9")
    daemon.state.mkdir()
    done = daemon.run(*words, code=3)
    assert done.stderr


def test_status(baleen):
    status = baleen.status()
    assert status["generation"] >= 1
    roles = [p["role"] for p in status["processes"]]
    assert roles.count("worker") == 2
    assert {"supervisor", "template", "fetcher", "logger", "admin"} <= set(roles)
    assert status["degraded"] == []
    assert [f["name"] for f in status["feeds"]] == ["ours"]
    text = baleen.run("status").stdout
    for word in ("worker", "fetcher", "ours", "blocklist", "logging"):
        assert word in text


def test_stats(baleen):
    before = baleen.json("stats")
    baleen.ask("ads.test")
    baleen.ask("stats.test")
    baleen.ask("stats.test", tcp=True)
    after = wait_for(lambda: baleen.json("stats"))
    assert json.dumps(before) != json.dumps(after)
    text = baleen.run("stats").stdout
    for word in ("block", "cache", "udp", "tcp"):
        assert word in text.lower()


def test_feeds_list_and_show(baleen):
    listed = baleen.json("feeds", "list")["feeds"]
    assert [(f["name"], f["entries"]) for f in listed] == [("ours", 1)]
    assert "ours" in baleen.run("feeds", "list").stdout
    assert "ours" in baleen.run("feeds", "show", "ours").stdout
    baleen.run("feeds", "show", "nosuch", code=1)
    baleen.run("feeds", "refresh", "nosuch", code=1)


def test_feeds_catalogue(baleen):
    done = subprocess.run([PROGRAM, "feeds", "catalogue"], capture_output=True, text=True)
    assert done.returncode == 0 and "hagezi" in done.stdout


def test_lookup(baleen):
    baleen.run("feeds", "lookup", "x.ads.test")
    baleen.run("feeds", "lookup", "clean.test", code=1)


@pytest.mark.parametrize("name,client,verdict", [
    ("ads.test", "127.0.0.1", "block"), ("x.good.ads.test", "127.0.0.1", "allow"),
    ("clean.test", "127.0.0.1", "allow"), ("ads.test", "127.0.0.2", "allow")])
def test_explain_against_the_daemon(baleen, name, client, verdict):
    """explain says what then happens."""
    said = baleen.json("explain", name, "--client", client)
    assert said["verdict"] == verdict
    got = baleen.ask(name, source=client)
    assert (addresses(got) == ["192.0.2.1"]) == (verdict == "allow")


def test_explain_names_the_rule(baleen):
    said = baleen.json("explain", "x.ads.test", "AAAA", "--client", "127.0.0.1")
    assert said["group"] == "default"
    assert said["rule"].startswith("policies/default.yaml:")
    assert said["feed"] == "ours"
    text = baleen.run("explain", "x.ads.test").stdout
    for word in ("policies/default.yaml:", "ours", "blocklist", "ads.test"):
        assert word in text


def test_explain_offline(baleen, baleen_own):
    daemon = baleen_own(start=False, upstream="127.0.0.1:9", policies={
        "default": {"group": "default", "rules": [{"block": ["evil.test"]},
                                                  {"block": {"answers": ["203.0.113.0/24"]}}]}})
    assert daemon.json("explain", "x.evil.test")["verdict"] == "block"
    assert daemon.json("explain", "a.test", "--answer", "a.test CNAME evil.test")["verdict"] == "block"
    assert daemon.json("explain", "a.test", "--answer", "a.test A 203.0.113.9")["verdict"] == "block"
    assert daemon.json("explain", "a.test", "--answer", "a.test A 192.0.2.9")["verdict"] == "allow"


@pytest.mark.parametrize("words", [["--client", "10.0.0"], ["--name", "a..b"], ["--verdict", "blocked"]],
                         ids=lambda words: words[0])
def test_log_tail_refuses_a_filter_it_cannot_read(baleen, words):
    done = baleen.run("log", "tail", *words, code=1)
    assert f'"{words[1]}" is no' in done.stderr


def test_log_tail(baleen):
    tail = subprocess.Popen([PROGRAM, "log", "tail", "--json", "-c", baleen.config_file],
                            stdout=subprocess.PIPE, text=True)
    narrow = subprocess.Popen([PROGRAM, "log", "tail", "--json", "--name", "ads.test", "--verdict",
                               "block", "-c", baleen.config_file], stdout=subprocess.PIPE, text=True)
    got, narrowed = [], []
    for process, into in ((tail, got), (narrow, narrowed)):
        threading.Thread(target=lambda p=process, i=into: [i.append(json.loads(line)) for line in p.stdout],
                         daemon=True).start()
    try:
        def both():
            baleen.ask("x.ads.test")
            baleen.ask("tail.test")
            return {"x.ads.test.", "tail.test."} <= {e["name"] for e in got} and narrowed
        assert wait_for(both, 10, 0.3)
        assert {(e["name"], e["verdict"]) for e in narrowed} == {("x.ads.test.", "block")}
    finally:
        for process in (tail, narrow):
            process.terminate()
            process.wait()


def test_cache_flush(baleen):
    baleen.ask("flush.test")
    baleen.run("cache", "stats")
    baleen.run("cache", "flush", "flush.test")
    baleen.ask("flush.test")
    event = baleen.events(2, where=lambda e: e["name"] == "flush.test.")
    assert [e["cache"] for e in event] == ["miss", "miss"]


def test_reload_reports(baleen):
    before = baleen.status()["generation"]
    baleen.reload()
    assert baleen.status()["generation"] == before + 1
