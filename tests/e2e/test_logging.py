# SPDX-License-Identifier: Apache-2.0
"""Events: one JSON line each, complete, whatever the name; and a disk that is full."""

import json
import os
import re
import shutil
import signal
import struct
import subprocess

import dns.rcode
import pytest

from daemon import AS_ROOT, wait_for
from upstream import fails
from wire import TcpClient, addresses, question, udp_exchange

KEYS = ["schema", "time", "client", "group", "transport", "id", "name", "type", "class", "verdict",
        "plugin", "rule", "hop", "feed", "feeds", "category", "match", "mode", "would", "rcode", "cache",
        "upstream", "answers", "size", "latency_us", "worker"]


def test_every_field(baleen, upstream):
    daemon = baleen(upstream=upstream, lists={"ours": "ads.test\n"}, policies={
        "default": {"group": "default", "rules": [{"block": {"feeds": ["ours"]}}]}})
    ask = question("x.ADS.test")
    ask.id = 4660
    reply = udp_exchange(ask.to_wire(), daemon.port)
    daemon.ask("www.test", tcp=True)
    # Each worker has a ring of its own: no order between two of them.
    blocked, passed = sorted(daemon.events(2), key=lambda e: e["transport"], reverse=True)
    assert list(blocked)[:len(KEYS)] == KEYS
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", blocked["time"])
    expected = {"schema": 1, "client": "127.0.0.1", "group": "default", "transport": "udp", "id": 4660,
                "name": "x.ads.test.", "type": "A", "class": "IN", "verdict": "block",
                "plugin": "blocklist", "hop": "question", "feed": "ours", "feeds": ["ours"],
                "match": "ads.test.", "mode": "enforce", "would": [], "rcode": "NXDOMAIN",
                "cache": "none", "upstream": None, "answers": [], "size": len(reply)}
    assert {k: blocked[k] for k in expected} == expected
    assert re.fullmatch(r"policies/default\.yaml:\d+", blocked["rule"])
    expected = {"transport": "tcp", "verdict": "allow", "rule": None, "feed": None, "feeds": [],
                "cache": "miss", "upstream": upstream.endpoint, "rcode": "NOERROR"}
    assert {k: passed[k] for k in expected} == expected
    assert "192.0.2.1" in passed["answers"][0]


def test_every_fate_is_logged_once(baleen, upstream):
    upstream.on["fail.test"] = fails("SERVFAIL")
    daemon = baleen(upstream=upstream, lists={"ours": "ads.test\n"},
                    config={"allow-clients": ["127.0.0.1/32"]},
                    policies={"default": {"group": "default", "rules": [
                        {"block": {"feeds": "all"}}, {"block": ["drop.test"], "answer": "drop"},
                        {"block": ["refused.test"], "answer": "refused"},
                        {"rewrite": {"names": ["=old.test"], "to": "new.test"}}]}})
    for name in ("www.test", "www.test", "ads.test", "refused.test", "old.test", "fail.test"):
        daemon.ask(name)
    udp_exchange(question("drop.test").to_wire(), daemon.port, timeout=0.3)
    daemon.ask("stranger.test", source="127.0.0.9")
    seen = {}
    for event in daemon.events(8):
        seen.setdefault(event["name"], []).append(event["verdict"])
    assert seen["www.test."] == ["allow", "allow"]
    assert seen["ads.test."] == ["block"]
    assert seen["old.test."] == ["rewrite"]
    assert seen["fail.test."] == ["error"]
    assert len(seen["drop.test."]) == len(seen["refused.test."]) == len(seen["stranger.test."]) == 1
    assert seen["stranger.test."] == ["refuse"]


def test_hostile_names(baleen, upstream):
    """A name cannot break a line, nor the JSON, and can be read back."""
    daemon = baleen(upstream=upstream)
    labels = [bytes([octet]) for octet in (0x22, 0x5c, 0x0a, 0x0d, 0x00, 0x1b, 0x7f, 0x80, 0xff, 0x2e,
                                           0x20, 0x3c, 0x27)] + [bytes(range(1, 40)), b"\xc3\xa9", b"\xed\xa0\x80"]
    for i, label in enumerate(labels):
        name = b"%c%s\x01x\x04test\0" % (len(label), label)
        data = struct.pack("!HH4H", i, 0x0100, 1, 0, 0, 0) + name + b"\0\1\0\1"
        assert udp_exchange(data, daemon.port) is not None, label
    daemon.events(len(labels))
    raw = (daemon.state / "log/queries.log").read_bytes()
    lines = raw.splitlines()
    assert len(lines) == raw.count(b"\n") == len(labels)
    assert all(0x20 <= octet < 0x7f for line in lines for octet in line)
    for line in lines:
        event = json.loads(line)
        text = re.sub(r"\\(\d{3})|\\(.)", lambda m: chr(int(m[1])) if m[1] else m[2], event["name"])
        label = labels[event["id"]].lower()
        assert text.encode("latin-1") == label + b".x.test."


def test_malformed_packets_make_no_events(baleen, upstream):
    daemon = baleen(upstream=upstream)
    udp_exchange(b"\x12\x34\x01\0\0\1\0\0\0\0\0\0\xc0\x0c\0\1\0\1", daemon.port)
    daemon.ask("www.test")
    assert [e["name"] for e in daemon.events(1)] == ["www.test."]


def test_log_can_be_rotated(baleen, upstream):
    """The file is renamed under the logger: it goes on in a new one after a reload."""
    daemon = baleen(upstream=upstream)
    daemon.ask("first.test")
    daemon.events(1)
    log = daemon.state / "log/queries.log"
    log.rename(log.with_suffix(".1"))
    daemon.reload()
    daemon.ask("second.test")
    assert wait_for(lambda: log.exists() and "second.test." in log.read_text())


def test_log_that_cannot_be_written(baleen, upstream):
    """A full device under the log: DNS goes on, the loss is counted and shown."""
    daemon = baleen(start=False, upstream=upstream)
    log = daemon.state / "log"
    log.mkdir(parents=True)
    (log / "queries.log").symlink_to("/dev/full")
    if AS_ROOT:
        shutil.chown(daemon.state, daemon.user)
        shutil.chown(log, daemon.user)
    daemon.start()
    for i in range(20):
        assert addresses(daemon.ask(f"n{i}.test")) == ["192.0.2.1"]
    assert wait_for(lambda: "logging" in json.dumps(daemon.status()["degraded"]))


def test_full_disk(baleen, upstream, tmp_path):
    """State on a file system that fills up: DNS goes on, and it recovers when there is room."""
    daemon = baleen(start=False, upstream=upstream, lists={"ours": "one.bad.test\n"})
    daemon.state.mkdir()
    if not AS_ROOT:
        return full_disk_as_user(daemon)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", daemon.state], check=True)
    try:
        daemon.start()
        for i in range(10):
            daemon.ask(f"n{i}.test")
        daemon.events(10)
        filler = daemon.state / "filler"
        with open(filler, "wb", buffering=0) as f, pytest.raises(OSError):
            while True:
                f.write(b"x" * 4096)
        for i in range(100):
            assert addresses(daemon.ask(f"full{i}.test")) == ["192.0.2.1"]
            assert daemon.ask("x.one.bad.test").rcode() == dns.rcode.NXDOMAIN
        daemon.write("lists/ours.txt", "".join(f"n{i}.bad.test\n" for i in range(100000)))
        daemon.run("feeds", "refresh", "ours", code=None)
        assert wait_for(lambda: "disk is full" in json.dumps(daemon.status()["degraded"]))
        assert daemon.ask("x.one.bad.test").rcode() == dns.rcode.NXDOMAIN
        filler.unlink()
        assert "disk is full" not in json.dumps(daemon.status()["degraded"])
        daemon.write("lists/ours.txt", "two.bad.test\n")
        daemon.run("feeds", "refresh", "ours", code=None)
        assert wait_for(lambda: daemon.ask("two.bad.test").rcode() == dns.rcode.NXDOMAIN)
        daemon.ask("after.test")
        assert daemon.events(1, where=lambda e: e["name"] == "after.test.")
    finally:
        daemon.stop()
        subprocess.run(["umount", daemon.state], check=True)


def full_disk_as_user(daemon):
    """Without root there is no mounting; a limit on file sizes is what a full disk looks like."""
    daemon.wrapper = ["prlimit", "--fsize=4096"]
    daemon.start()
    for i in range(200):
        assert addresses(daemon.ask(f"n{i}.test")) == ["192.0.2.1"]
    assert os.path.getsize(daemon.state / "log/queries.log") <= 4096


def test_logger_that_stops_is_replaced(baleen, upstream):
    """It serves nobody any more: DNS does not notice, another one takes the rings over."""
    daemon = baleen(upstream=upstream, lists={"ours": "ads.test\n"})
    daemon.crash_expected = True

    def loggers():
        return [pid for title, pids in daemon.processes().items() if "logger" in title for pid in pids]
    stopped = loggers()[0]
    os.kill(stopped, signal.SIGSTOP)
    with TcpClient(daemon.port) as client:
        for i in range(3000):
            client.send(question("www.test"))
            client.receive()
    assert wait_for(lambda: loggers() and stopped not in loggers(), 15)
    assert addresses(daemon.ask("after.test")) == ["192.0.2.1"]
    assert daemon.events(1, where=lambda e: e["name"] == "after.test.")
    # What the rings held meanwhile is not lost.
    assert daemon.events(1000)
