# SPDX-License-Identifier: Apache-2.0
"""Acting on feeds of the running daemon, and where their hosts are looked up."""

import gzip

import pytest

from daemon import wait_for
from feedserver import FeedServer
from upstream import address, answer, fails
from wire import edes

MANY = "".join(f"n{i}.bad.test\n" for i in range(2000))


@pytest.fixture
def server():
    made = FeedServer()
    yield made
    made.stop()


def feed(daemon, name="net"):
    return next(f for f in daemon.json("feeds", "list")["feeds"] if f["name"] == name)


def only_a(text):
    """The address for A, an empty answer for AAAA."""
    yes, no = address(text), answer()
    return lambda query, transport: (yes if query.question[0].rdtype == 1 else no)(query, transport)


def blocked(daemon, name):
    return edes(daemon.ask(name)) != []


def subscribe(baleen, upstream, url, **more):
    return baleen(upstream=upstream, config={"feeds": [
        {"name": "net", "url": url, "format": "domains", "refresh": "1h", **more}]})


def test_feed_host_is_looked_up_at_the_upstreams(baleen, upstream, server):
    """Never through ourselves or the system: the first set must not need the first set."""
    server.bodies["/list"] = b"one.bad.test\n"
    upstream.on["lists.feedhost.test"] = only_a("127.0.0.1")
    daemon = subscribe(baleen, upstream, f"http://lists.feedhost.test:{server.port}/list")
    assert wait_for(lambda: blocked(daemon, "one.bad.test")), daemon.log()
    path, headers = server.requests[0]
    assert path == "/list" and headers["Host"].startswith("lists.feedhost.test")
    assert headers["User-Agent"].startswith("Baleen/")


def test_feed_host_that_does_not_resolve_is_said(baleen, upstream):
    upstream.on["gone.feedhost.test"] = fails("NXDOMAIN")
    daemon = subscribe(baleen, upstream, "http://gone.feedhost.test/list")
    assert wait_for(lambda: "cannot resolve gone.feedhost.test" in feed(daemon)["error"])


def test_release_and_rollback(baleen, upstream, server):
    server.bodies["/list"] = MANY.encode()
    daemon = subscribe(baleen, upstream, server.url("/list"))
    assert wait_for(lambda: blocked(daemon, "n1999.bad.test"))
    server.bodies["/list"] = b"n1.bad.test\n"
    daemon.run("feeds", "refresh", "net")
    assert wait_for(lambda: feed(daemon)["status"] == "quarantined")
    assert blocked(daemon, "n1999.bad.test")
    daemon.run("feeds", "release", "net")
    assert wait_for(lambda: not blocked(daemon, "n1999.bad.test"))
    assert blocked(daemon, "n1.bad.test") and feed(daemon)["status"] == "ok"
    daemon.run("feeds", "rollback", "net")
    assert wait_for(lambda: blocked(daemon, "n1999.bad.test"))
    daemon.run("feeds", "release", "net", code=1)
    daemon.run("feeds", "rollback", "nosuch", code=1)


def test_promote_a_shadow_feed(baleen, upstream):
    daemon = baleen(start=False, upstream=upstream, lists={"ours": "one.bad.test\n"})
    daemon.config["feeds"][0]["mode"] = "shadow"
    daemon.save()
    daemon.start()
    assert not blocked(daemon, "one.bad.test")
    assert feed(daemon, "ours")["status"] == "shadow"
    daemon.run("feeds", "lookup", "one.bad.test")  # compiled all the same
    daemon.run("feeds", "promote", "ours")
    daemon.run("reload")
    assert wait_for(lambda: blocked(daemon, "one.bad.test"))
    daemon.stop()
    daemon.start()
    assert blocked(daemon, "one.bad.test")


def test_validators_and_odd_304(baleen, upstream, server):
    """A3-12: validators go out only with the body on disk; 304 for another version is asked again."""
    def body(handler):
        if handler.headers.get("If-None-Match"):
            handler.send_response(304)
            handler.send_header("ETag", '"v2"')
            handler.end_headers()
        else:
            handler.reply(text[0].encode(), ETag='"v1"')
    text = ["one.bad.test\n"]
    server.bodies["/list"] = body
    daemon = baleen(upstream=upstream, config={"feeds": [
        {"name": "net", "url": server.url("/list"), "format": "domains", "refresh": "1s"}]})
    assert wait_for(lambda: blocked(daemon, "one.bad.test"))
    text[0] = "two.bad.test\n"
    assert wait_for(lambda: blocked(daemon, "two.bad.test"))
    assert any("If-None-Match" in headers for _, headers in server.requests)


def test_new_list_with_a_reload(baleen, upstream):
    """What the reload subscribed to blocks as soon as the reload says it is done."""
    daemon = baleen(upstream=upstream, lists={"ours": "one.bad.test\n"})
    daemon.write("lists/more.txt", "more.bad.test\n")
    daemon.config["feeds"].append({"name": "more", "file": "lists/more.txt"})
    daemon.save()
    daemon.run("reload")
    assert blocked(daemon, "more.bad.test") and blocked(daemon, "one.bad.test")
    # The newer generation's fetcher watches now.
    daemon.write("lists/more.txt", "other.bad.test\n")
    assert wait_for(lambda: blocked(daemon, "other.bad.test"))


def test_gzip_that_is_cut_off(baleen, upstream, server):
    server.bodies["/list"] = lambda h: h.reply(gzip.compress(MANY.encode())[:-30])
    daemon = subscribe(baleen, upstream, server.url("/list"))
    assert wait_for(lambda: "cut off" in feed(daemon)["error"])
    assert not blocked(daemon, "n1.bad.test")


def test_hand_written_list_in_every_encoding(baleen, upstream):
    """A1-08, A1-10, A1-12: BOM, UTF-16, a line of a megabyte, Unicode names."""
    lists = {
        "bom": b"\xef\xbb\xbfa.bad.test\n" + b"x" * (1 << 20) + b"\nb.bad.test\n",
        "le": b"\xff\xfe" + "c.bad.test\r\nm\u00fcnchen.bad.test\r\n".encode("utf-16-le"),
        "be": b"\xfe\xff" + "d.bad.test\n".encode("utf-16-be"),
    }
    daemon = baleen(start=False, upstream=upstream, lists={name: "" for name in lists})
    for name, text in lists.items():
        (daemon.folder / "lists" / f"{name}.txt").write_bytes(text)
    daemon.start()
    for name in ("a", "b", "c", "d", "xn--mnchen-3ya"):
        assert blocked(daemon, f"{name}.bad.test"), name
    assert feed(daemon, "bom")["rejects"]["long"]["count"] == 1
