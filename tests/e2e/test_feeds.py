# SPDX-License-Identifier: Apache-2.0
"""Feeds from files and over the network: a refresh can only make things better."""

import gzip
import json
import os
import signal
import subprocess
import time

import pytest

from daemon import PATIENCE, PROGRAM, wait_for
from feedserver import FeedServer, make_ca
from wire import addresses, check_blocked, edes, silent

GOOD = "one.bad.test\ntwo.bad.test\n"


@pytest.fixture
def server():
    made = FeedServer()
    yield made
    made.stop()


def feed(daemon, name):
    return next(f for f in daemon.json("feeds", "list")["feeds"] if f["name"] == name)


def blocked(daemon, name):
    return edes(daemon.ask(name)) != []


def subscribe(baleen, upstream, url, **more):
    return baleen(upstream=upstream, config={"feeds": [
        {"name": "net", "url": url, "format": "domains", "refresh": "1h", "allow-private": True,
         **more}]})


# ---- from files ----

FORMATS = {
    "domains": ("# comment\none.bad.test\n", ["one.bad.test", "x.one.bad.test"], ["bad.test"]),
    "hosts": ("0.0.0.0 one.bad.test two.bad.test # [x]\n127.0.0.1\tthree.bad.test\n192.0.2.5 printer # in room\n",
              ["one.bad.test", "two.bad.test", "three.bad.test"],
              ["x.one.bad.test", "in", "room", "printer"]),
    "adblock": ("! title\n||one.bad.test^\n@@||good.one.bad.test^\n||path.test/x\nexample.test##.ad\n",
                ["one.bad.test", "x.one.bad.test"], ["good.one.bad.test", "path.test", "example.test"]),
    "dnsmasq": ("address=/one.bad.test/#\nserver=/good.one.bad.test/#\naddress=/two.bad.test/192.0.2.1\n",
                ["one.bad.test", "x.one.bad.test"], ["good.one.bad.test", "two.bad.test"]),
    "unbound": ('local-zone: "one.bad.test." always_null\nlocal-zone: "two.bad.test" inform\n',
                ["one.bad.test", "x.one.bad.test"], ["two.bad.test"]),
    "rpz": ("$ORIGIN rpz.test.\n@ SOA a. b. (1\n 2 3 4 5)\none.bad.test CNAME .\n*.two.bad.test CNAME *.\n"
            "x.two.bad.test CNAME rpz-passthru.\nthree.bad.test CNAME walled.test.\n",
            ["one.bad.test", "y.two.bad.test"],
            ["x.one.bad.test", "two.bad.test", "x.two.bad.test", "three.bad.test"]),
    "urls": ("http://one.bad.test:8080/\nhttps://two.bad.test/login\n", ["one.bad.test"],
             ["x.one.bad.test", "two.bad.test"]),
    "csv": ('kind,indicator\nx,"one[.]bad[.]test"\n"y ""z""",http://two.bad.test/x\n',
            ["one.bad.test"], ["x.one.bad.test", "two.bad.test"]),
    "json": ('["one.bad.test", "*.two.bad.test"]', ["one.bad.test", "x.two.bad.test"], ["two.bad.test"]),
    "misp": ('{"Event": {"Attribute": [{"type": "domain", "value": "one.bad.test", "to_ids": true},'
             '{"type": "domain", "value": "two.bad.test", "to_ids": false}]}}',
             ["one.bad.test"], ["x.one.bad.test", "two.bad.test"]),
    "stix": ('{"type": "bundle", "objects": [{"type": "indicator", "pattern": '
             '"[domain-name:value = \'one.bad.test\']"}, {"type": "indicator", "revoked": true, '
             '"pattern": "[domain-name:value = \'two.bad.test\']"}]}',
             ["one.bad.test"], ["x.one.bad.test", "two.bad.test"]),
}


@pytest.mark.parametrize("told", [True, False], ids=["told", "auto"])
@pytest.mark.parametrize("form", FORMATS)
def test_local_lists(baleen, upstream, form, told):
    text, hits, misses = FORMATS[form]
    daemon = baleen(start=False, upstream=upstream, lists={"ours": text})
    daemon.config["feeds"][0]["format"] = form if told else "auto"
    daemon.save()
    daemon.start()
    for name in hits:
        assert blocked(daemon, name), name
    for name in misses:
        assert not blocked(daemon, name), name
    assert feed(daemon, "ours")["entries"] >= 1


def test_changed_file_is_picked_up_without_a_restart(baleen, upstream):
    daemon = baleen(upstream=upstream, lists={"ours": "one.bad.test\n"})
    assert blocked(daemon, "one.bad.test")
    workers = daemon.workers()
    daemon.write("lists/ours.txt", "two.bad.test\n")
    daemon.run("feeds", "refresh", "ours")
    assert wait_for(lambda: blocked(daemon, "two.bad.test"))
    assert not blocked(daemon, "one.bad.test")
    assert daemon.workers() == workers


def test_every_feed_that_holds_a_name_is_named(baleen, upstream):
    daemon = baleen(upstream=upstream, lists={"a": "x.bad.test\n", "b": "bad.test\n", "c": "o.test\n"})
    check_blocked(daemon.ask("x.bad.test"))
    assert sorted(daemon.events(1)[0]["feeds"]) == ["a", "b"]
    found = daemon.json("feeds", "lookup", "www.x.bad.test")
    assert {m["feed"] for m in found["matches"]} == {"a", "b"}
    daemon.run("feeds", "lookup", "clean.test", code=1)


def test_list_that_is_no_list_at_start(baleen, upstream):
    """One bad list costs only itself."""
    daemon = baleen(upstream=upstream, lists={"ours": GOOD, "broken": "<html><body>no</body></html>"})
    assert blocked(daemon, "one.bad.test")
    assert feed(daemon, "broken")["error"]


# ---- over the network ----

def test_http(baleen, upstream, server):
    server.bodies["/list"] = GOOD.encode()
    daemon = subscribe(baleen, upstream, server.url("/list"))
    assert wait_for(lambda: blocked(daemon, "one.bad.test"))
    shown = feed(daemon, "net")
    assert shown["entries"] == 2 and not shown["error"]
    server.bodies["/list"] = GOOD.encode() + b"three.bad.test\n"
    daemon.run("feeds", "refresh", "net")
    assert wait_for(lambda: blocked(daemon, "three.bad.test"))
    assert blocked(daemon, "one.bad.test")


def test_gzip(baleen, upstream, server):
    server.bodies["/list"] = lambda h: h.reply(gzip.compress(GOOD.encode()), Content_Encoding="gzip")
    daemon = subscribe(baleen, upstream, server.url("/list"))
    assert wait_for(lambda: blocked(daemon, "one.bad.test"))


def test_https_with_own_ca(baleen, upstream, tmp_path):
    ca, certificate = make_ca(tmp_path)
    server = FeedServer(certificate)
    try:
        server.bodies["/list"] = GOOD.encode()
        daemon = subscribe(baleen, upstream, server.url("/list"), **{"ca-file": str(ca)})
        assert wait_for(lambda: blocked(daemon, "one.bad.test")), daemon.log()
    finally:
        server.stop()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2"], ids=["no ca", "wrong host"])
def test_https_that_cannot_be_trusted(baleen, upstream, tmp_path, host):
    ca, certificate = make_ca(tmp_path)
    server = FeedServer(certificate, host)
    try:
        server.bodies["/list"] = GOOD.encode()
        more = {"ca-file": str(ca)} if host == "127.0.0.2" else {}
        daemon = subscribe(baleen, upstream, server.url("/list"), **more)
        assert wait_for(lambda: feed(daemon, "net")["error"], 15)
        assert not blocked(daemon, "one.bad.test")
    finally:
        server.stop()


BAD_BODIES = {
    "html": lambda h: h.reply(b"<!DOCTYPE html><html><body><a href='https://www.test/'>one.bad.test</a>"
                              b"</body></html>", Content_Type="text/html"),
    "html said to be text": lambda h: h.reply(b"<html>\n<body>\n<p>one.bad.test\n</body></html>\n"),
    "empty": lambda h: h.reply(b""),
    "comments only": lambda h: h.reply(b"# nothing\n# here\n"),
    "404": lambda h: h.reply(b"not found\n", code=404),
    "500": lambda h: h.reply(b"oops.test\n", code=500),
    "cut off": lambda h: h.reply(b"three.bad.test\nwww.test", length=1000),
    "rubbish": lambda h: h.reply(bytes(range(256)) * 40),
    "all lines invalid": lambda h: h.reply(b"not a name!\n@@@\n" * 200),
    "binary said to be gzip": lambda h: h.reply(b"\x1f\x8bnot gzip at all", Content_Encoding="gzip"),
}


@pytest.mark.parametrize("case", BAD_BODIES)
def test_bad_refresh_keeps_the_last_good(baleen, upstream, server, case):
    server.bodies["/list"] = GOOD.encode()
    daemon = subscribe(baleen, upstream, server.url("/list"))
    assert wait_for(lambda: blocked(daemon, "one.bad.test"))
    server.bodies["/list"] = BAD_BODIES[case]
    daemon.run("feeds", "refresh", "net", code=None)
    assert wait_for(lambda: feed(daemon, "net")["error"]), feed(daemon, "net")
    shown = feed(daemon, "net")
    assert shown["entries"] == 2
    for name in ("one.bad.test", "two.bad.test"):
        assert blocked(daemon, name)
    for name in ("three.bad.test", "www.test", "bad.test", "oops.test"):
        assert not blocked(daemon, name), name
    # And it is seen without asking for it.
    assert "net" in json.dumps(daemon.status()["degraded"])
    # It gets well again.
    server.bodies["/list"] = GOOD.encode() + b"four.bad.test\n"
    daemon.run("feeds", "refresh", "net", code=None)
    assert wait_for(lambda: blocked(daemon, "four.bad.test"))
    assert wait_for(lambda: not feed(daemon, "net")["error"])


def test_server_that_stalls_holds_up_nobody(baleen, upstream, server):
    server.bodies["/list"] = lambda h: time.sleep(3)
    begin = time.monotonic()
    daemon = baleen(upstream=upstream, lists={"ours": GOOD})
    daemon.stop()
    daemon.config["feeds"].append({"name": "net", "url": server.url("/list"), "format": "domains",
                                   "allow-private": True})
    daemon.save()
    daemon.start()
    assert time.monotonic() - begin < 10 * PATIENCE
    assert blocked(daemon, "one.bad.test")
    assert addresses(daemon.ask("www.test")) == ["192.0.2.1"]


def test_source_down_at_start_is_retried(baleen, upstream, server):
    daemon = subscribe(baleen, upstream, server.url("/list"))
    assert wait_for(lambda: feed(daemon, "net")["error"])
    server.bodies["/list"] = GOOD.encode()
    daemon.run("feeds", "refresh", "net", code=None)
    assert wait_for(lambda: blocked(daemon, "one.bad.test"))


def test_conditional_requests(baleen, upstream, server):
    def body(handler):
        if handler.headers.get("If-None-Match") == '"v1"':
            handler.send_response(304)
            handler.send_header("ETag", '"v1"')
            handler.end_headers()
        else:
            handler.reply(GOOD.encode(), ETag='"v1"')
    server.bodies["/list"] = body
    daemon = subscribe(baleen, upstream, server.url("/list"))
    assert wait_for(lambda: blocked(daemon, "one.bad.test"))
    daemon.stop()
    daemon.start()
    assert blocked(daemon, "one.bad.test")  # from disk, whatever the network says


# ---- what is on disk ----

def newest_set(daemon):
    return max(daemon.state.glob("sets/domains.*.mdb"), key=lambda p: int(p.name.split(".")[1]))


DAMAGE = {
    "flipped": lambda data: bytes(b ^ 0x40 if i == len(data) // 2 else b for i, b in enumerate(data)),
    "cut": lambda data: data[:len(data) // 2],
    "zero tail": lambda data: data[:len(data) // 2] + bytes(len(data) - len(data) // 2),
    "empty": lambda data: b"",
    "no set": lambda data: b"#!/bin/sh\n" * 100,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_set_is_rebuilt(baleen, upstream, damage):
    daemon = baleen(upstream=upstream, lists={"ours": "".join(f"n{i}.bad.test\n" for i in range(3000))})
    assert blocked(daemon, "n7.bad.test")
    daemon.stop()
    for path in daemon.state.glob("sets/domains.*.mdb"):
        data = path.read_bytes()
        path.write_bytes(DAMAGE[damage](data))
    daemon.start()
    for i in range(0, 3000, 100):
        assert blocked(daemon, f"n{i}.bad.test")
    assert not blocked(daemon, "x.test")


def test_set_damaged_while_serving(baleen, upstream):
    """A file is never edited in place by us; if somebody else does, no worker stays down."""
    daemon = baleen(upstream=upstream, lists={"ours": GOOD})
    daemon.crash_expected = True
    os.truncate(newest_set(daemon), 0)
    for i in range(5):
        silent(lambda: daemon.ask(f"n{i}.test", timeout=1))
    daemon.write("lists/ours.txt", GOOD + "three.bad.test\n")
    daemon.run("feeds", "refresh", "ours", code=None)
    assert wait_for(lambda: blocked(daemon, "three.bad.test"), 20)


def test_works_without_network_after_a_restart(baleen, upstream, server):
    server.bodies["/list"] = GOOD.encode()
    daemon = subscribe(baleen, upstream, server.url("/list"))
    assert wait_for(lambda: blocked(daemon, "one.bad.test"))
    daemon.stop()
    server.bodies.clear()
    daemon.start()
    assert blocked(daemon, "one.bad.test")


def test_killed_at_any_time_leaves_a_good_state(baleen, upstream):
    """kill -9 of everything in the midst of rebuilding: the next start is as good as new."""
    daemon = baleen(upstream=upstream, lists={"ours": "".join(f"n{i}.bad.test\n" for i in range(20000))})
    for turn in range(4):
        daemon.write("lists/ours.txt",
                     "".join(f"n{i}.bad.test\n" for i in range(20000)) + f"turn{turn}.bad.test\n")
        daemon.run("feeds", "refresh", "ours", code=None)
        time.sleep(0.05 * turn)
        os.killpg(daemon.process.pid, signal.SIGKILL)
        daemon.process.wait()
        daemon.process = None
        wait_for(lambda: not (daemon.state / "lock").exists(), 0.5)
        daemon.start()
        assert blocked(daemon, "n7.bad.test")


def test_names_that_a_feed_may_not_take(baleen, upstream):
    """Whole top-level domains and the site's own zones are dropped; the rest of the list loads."""
    daemon = baleen(start=False, upstream=upstream, lists={"ours": "com\nco.uk\ncorp.test\nbad.test\n"})
    daemon.config["upstreams"]["corp"] = {"zones": ["corp.test"], "servers": [upstream.endpoint]}
    daemon.save()
    daemon.start()
    assert blocked(daemon, "bad.test")
    for name in ("example.com", "corp.test", "www.corp.test"):
        assert not blocked(daemon, name)
    shown = daemon.json("feeds", "show", "ours")
    assert "suffix" in json.dumps(shown) and "protected" in json.dumps(shown)


def test_refresh_of_a_list_that_shrinks_too_much(baleen, upstream, server):
    server.bodies["/list"] = "".join(f"n{i}.bad.test\n" for i in range(2000)).encode()
    daemon = subscribe(baleen, upstream, server.url("/list"))
    assert wait_for(lambda: blocked(daemon, "n1999.bad.test"))
    server.bodies["/list"] = b"n1.bad.test\n"
    daemon.run("feeds", "refresh", "net", code=None)
    assert wait_for(lambda: feed(daemon, "net")["error"] or feed(daemon, "net").get("state") ==
                    "quarantined")
    assert blocked(daemon, "n1999.bad.test")


def test_compile_offline(tmp_path):
    for name, body in (("a.txt", "x.bad.test\nbad.test\n"), ("b.hosts", "0.0.0.0 h.test\n")):
        (tmp_path / name).write_text(body)
    out = tmp_path / "out.mdb"
    done = subprocess.run([PROGRAM, "feeds", "compile", "-o", out, tmp_path / "a.txt",
                           tmp_path / "b.hosts"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([PROGRAM, "feeds", "lookup", "www.x.bad.test", "--set", out, "--json"],
                          capture_output=True, text=True)
    assert done.returncode == 0 and json.loads(done.stdout)["matches"]
    done = subprocess.run([PROGRAM, "feeds", "lookup", "clean.test", "--set", out],
                          capture_output=True, text=True)
    assert done.returncode == 1
