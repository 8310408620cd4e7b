# SPDX-License-Identifier: Apache-2.0
"""Upstreams that are dead, slow, lying or cut short; and several of them."""

import copy
import socket
import threading
import time

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset
import pytest

from daemon import PATIENCE
from ports import free_port
from upstream import (address, answer, closes, delayed, fails, garbage, reply, silent,
                      truncated_over_udp)
from wire import TcpClient, addresses, edes, question, udp_exchange


def with_strategy(baleen, strategy, servers):
    daemon = baleen(start=False, upstream=servers)
    daemon.config["upstreams"]["default"]["strategy"] = strategy
    daemon.save()
    return daemon.start()


def refused_port():
    """An endpoint where nobody listens: the kernel says so at once."""
    return f"127.0.0.1:{free_port()}"


def check_servfail(result, seconds_taken, codes=frozenset({22, 23})):
    assert result.rcode() == dns.rcode.SERVFAIL, result
    assert {code for code, _ in edes(result)} & codes, result
    assert seconds_taken < 6 * PATIENCE


def timed(ask):
    begin = time.monotonic()
    return ask(), time.monotonic() - begin


# ---- one that does not answer ----

@pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])
def test_dead_upstream(baleen, tcp):
    daemon = baleen(upstream=refused_port())
    check_servfail(*timed(lambda: daemon.ask("www.test", tcp=tcp)))


def test_black_hole(baleen, upstream):
    upstream.default = silent
    daemon = baleen(upstream=upstream)
    check_servfail(*timed(lambda: daemon.ask("www.test")))
    # The failure is shared, and remembered for a moment: no second wait for everybody.
    assert daemon.ask("other.test").rcode() == dns.rcode.SERVFAIL


def test_blocked_names_need_no_upstream(baleen):
    daemon = baleen(upstream=refused_port(), lists={"ours": "blocked.test\n"})
    assert daemon.ask("blocked.test").rcode() == dns.rcode.NXDOMAIN


# ---- failover ----

@pytest.mark.parametrize("strategy", ["fastest", "ordered", "race"])
@pytest.mark.parametrize("bad", ["dead", "silent"])
def test_failover(baleen, upstreams, strategy, bad):
    good = upstreams()
    first = refused_port() if bad == "dead" else upstreams(default=silent)
    daemon = with_strategy(baleen, strategy, [first, good])
    for i in range(5):
        assert addresses(daemon.ask(f"n{i}.test")) == ["192.0.2.1"]


@pytest.mark.parametrize("rcode", ["SERVFAIL", "REFUSED", "NOTIMP", "FORMERR"])
def test_next_server_after(baleen, upstreams, rcode):
    bad, good = upstreams(default=fails(rcode)), upstreams()
    daemon = with_strategy(baleen, "ordered", [bad, good])
    assert addresses(daemon.ask("www.test")) == ["192.0.2.1"]
    assert bad.count("www.test") >= 1


@pytest.mark.parametrize("behaviour,rcode", [
    (answer(rcode="NXDOMAIN", authority=["test. 60 SOA a. b. 1 2 3 4 60"]), dns.rcode.NXDOMAIN),
    (answer(authority=["test. 60 SOA a. b. 1 2 3 4 60"]), dns.rcode.NOERROR)])
def test_no_is_an_answer(baleen, upstreams, behaviour, rcode):
    """NXDOMAIN and NODATA are final: nobody else is asked."""
    first, second = upstreams(default=behaviour), upstreams()
    daemon = with_strategy(baleen, "ordered", [first, second])
    result = daemon.ask("none.test")
    assert result.rcode() == rcode and not result.answer
    assert second.count("none.test") == 0


def test_one_of_three_dead_slows_nobody_for_long(baleen, upstreams):
    daemon = baleen(upstream=[upstreams(default=silent), refused_port(), upstreams()])
    daemon.ask("first.test")
    _, taken = timed(lambda: [daemon.ask(f"n{i}.test") for i in range(50)])
    assert taken < 10 * PATIENCE


def test_recovers(baleen, upstream):
    """A server that was dead is used again when it is back."""
    port = upstream.port
    upstream.on["www.test"] = [silent, silent, silent, silent, address("192.0.2.8")]
    daemon = baleen(upstream=upstream)
    results = []
    for _ in range(10):
        results.append(addresses(daemon.ask("www.test")))
        if results[-1]:
            break
        time.sleep(1)
    assert results[-1] == ["192.0.2.8"], (port, results)


def test_servfail_of_the_only_server_reaches_the_client(baleen, upstream):
    upstream.default = fails("SERVFAIL")
    daemon = baleen(upstream=upstream)
    assert daemon.ask("www.test").rcode() == dns.rcode.SERVFAIL


# ---- zones ----

def test_zones_go_to_their_own_servers(baleen, upstreams):
    other, corp, deep = (upstreams(default=address(a)) for a in
                         ("192.0.2.1", "192.0.2.2", "192.0.2.3"))
    daemon = baleen(start=False, upstream=other)
    daemon.config["upstreams"]["corp"] = {"zones": ["corp.test", "10.in-addr.arpa"],
                                          "servers": [corp.endpoint]}
    daemon.config["upstreams"]["deep"] = {"zones": ["deep.corp.test"], "servers": [deep.endpoint]}
    daemon.save()
    daemon.start()
    for name, server in (("www.test", other), ("corp.test", corp), ("A.Corp.Test", corp),
                         ("notcorp.test", other), ("x.deep.corp.test", deep),
                         ("1.2.3.10.in-addr.arpa", corp), ("1.2.3.11.in-addr.arpa", other)):
        daemon.ask(name)
        assert server.count(name.lower()) == 1, name


# ---- over TCP ----

def test_truncated_answers_are_fetched_over_tcp(baleen, upstream):
    upstream.default = truncated_over_udp(address("192.0.2.4"))
    daemon = baleen(upstream=upstream)
    assert addresses(daemon.ask("www.test")) == ["192.0.2.4"]
    assert upstream.count("www.test", "udp") >= 1 and upstream.count("www.test", "tcp") == 1


def test_large_answers_of_a_real_server(baleen, knot):
    daemon = baleen(upstream=knot.endpoint)
    assert len(daemon.ask("many.test", tcp=True).answer[0]) == 120


def test_upstream_that_closes_is_asked_again(baleen, upstream):
    """A kept connection that the server closes costs no client its answer."""
    def over_tcp(query, transport):
        if transport == "udp":
            return truncated_over_udp(address())(query, transport)
        return [(0, address()(query, transport)), (0.05, closes(query, transport))]
    upstream.default = over_tcp
    daemon = baleen(upstream=upstream)
    for i in range(6):
        assert addresses(daemon.ask(f"n{i}.test")) == ["192.0.2.1"]
        time.sleep(0.02 * i)


def test_upstream_that_only_closes(baleen, upstream):
    upstream.default = truncated_over_udp(closes)
    daemon = baleen(upstream=upstream)
    check_servfail(*timed(lambda: daemon.ask("www.test")))


# ---- lies ----

def wrong_id(query, transport):
    message = address("203.0.113.66")(query, transport)
    message.id ^= 1
    return message


def wrong_name(query, transport):
    message = address("203.0.113.66")(query, transport)
    message.question[0].name = dns.name.from_text("victim.test")
    message.answer[0] = dns.rrset.from_text("victim.test.", 300, "IN", "A", "203.0.113.66")
    return message


def wrong_type(query, transport):
    message = address("203.0.113.66")(query, transport)
    message.question[0].rdtype = dns.rdatatype.AAAA
    return message


def wrong_class(query, transport):
    message = address("203.0.113.66")(query, transport)
    message.question[0].rdclass = dns.rdataclass.CH
    return message


def no_question(query, transport):
    message = address("203.0.113.66")(query, transport)
    message.question = []
    return message


def not_a_response(query, transport):
    message = address("203.0.113.66")(query, transport)
    message.flags &= ~dns.flags.QR
    return message


def wrong_opcode(query, transport):
    message = address("203.0.113.66")(query, transport)
    message.set_opcode(4)
    return message


LIES = [wrong_id, wrong_name, wrong_type, wrong_class, no_question, not_a_response, wrong_opcode,
        garbage]


@pytest.mark.parametrize("lie", LIES, ids=lambda f: f.__name__)
def test_lies_are_not_believed(baleen, upstream, lie):
    """The answer that fits comes after the lie, and wins; nothing of the lie is kept."""
    upstream.on["www.test"] = lambda q, t: [(0, lie(copy.deepcopy(q), t)),
                                           (0.2, address("192.0.2.1")(q, t))]
    upstream.on["victim.test"] = address("192.0.2.1")
    daemon = baleen(upstream=upstream)
    result = daemon.ask("www.test")
    assert "203.0.113.66" not in addresses(result)
    if lie is not garbage:  # which may count as that server's failure
        assert addresses(result) == ["192.0.2.1"]
    assert addresses(daemon.ask("victim.test")) == ["192.0.2.1"]


def test_additional_data_about_other_names_is_not_kept(baleen, upstream):
    def poison(query, transport):
        message = address("192.0.2.1")(query, transport)
        message.answer.append(dns.rrset.from_text("victim.test.", 300, "IN", "A", "203.0.113.66"))
        message.additional.append(dns.rrset.from_text("victim2.test.", 300, "IN", "A", "203.0.113.66"))
        return message
    upstream.on["www.test"] = poison
    daemon = baleen(upstream=upstream)
    daemon.ask("www.test")
    for name in ("victim.test", "victim2.test"):
        assert addresses(daemon.ask(name)) == ["192.0.2.1"]


def cut_mid_record(query, transport):
    return answer("@ 300 TXT " + "x" * 200, "@ 300 TXT " + "y" * 200)(query, transport).to_wire()[:-50]


def length_past_the_end(query, transport):
    data = bytearray(address()(query, transport).to_wire())
    data[-6:-4] = b"\xff\xff"
    return bytes(data)


def pointer_loop(query, transport):
    message = reply(query).to_wire()
    return message[:6] + b"\0\1" + message[8:] + b"\xc0" + bytes([len(message)]) + b"\0\1\0\1\0\0\0\1\0\4abcd"


@pytest.mark.parametrize("broken", [cut_mid_record, length_past_the_end, pointer_loop],
                         ids=lambda f: f.__name__)
def test_what_cannot_be_read_is_never_passed_on(baleen, upstream, broken):
    upstream.on["www.test"] = broken
    daemon = baleen(upstream=upstream, policies={"default": {
        "group": "default", "rules": [{"block": {"answers": ["203.0.113.0/24"]}}]}})
    result, taken = timed(lambda: daemon.ask("www.test"))
    check_servfail(result, taken, codes={22, 23, 24})
    assert addresses(daemon.ask("other.test")) == ["192.0.2.1"]


def test_ports_and_ids_are_random(baleen, upstream):
    upstream.keep = []
    daemon = baleen(upstream=upstream)
    for i in range(200):
        daemon.ask(f"n{i}.test")
    ids, ports = zip(*upstream.keep)
    assert len(set(ids)) > 190
    assert len(set(ports)) > 8
    assert len({b - a for a, b in zip(ids, ids[1:])}) > 180


# ---- equal questions in flight ----

def test_500_equal_cold_questions(baleen, upstream):
    upstream.on["cold.test"] = delayed(1, address("192.0.2.5"))
    daemon = baleen(upstream=upstream)
    got, spellings = {}, ["cold.test", "COLD.test", "Cold.Test"]
    sockets = []
    for client in range(50):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18)
        s.settimeout(10)
        sockets.append(s)
    for i in range(500):
        ask = question(spellings[i % 3], edns=i % 2 == 0)
        ask.id = i
        sockets[i % 50].sendto(ask.to_wire(), ("127.0.0.1", daemon.port))
    for i in range(500):
        result = dns.message.from_wire(sockets[i % 50].recv(4096))
        got[result.id] = result
    for s in sockets:
        s.close()
    assert sorted(got) == list(range(500))
    for i, result in got.items():
        assert addresses(result) == ["192.0.2.5"]
        assert result.question[0].name.to_text() == spellings[i % 3] + "."
        assert (result.edns >= 0) == (i % 2 == 0)
    # At most one for each worker, plus those repeated because a second is long.
    assert upstream.count("cold.test") <= 2 * 3


def test_failure_is_shared_too(baleen, upstream):
    upstream.default = silent
    daemon = baleen(upstream=upstream)
    results = []
    threads = [threading.Thread(target=lambda: results.append(daemon.ask("cold.test", timeout=15)))
               for _ in range(40)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 40
    assert {r.rcode() for r in results} == {dns.rcode.SERVFAIL}
    assert upstream.count("cold.test") <= 2 * 8


def test_a_dead_zone_starves_nobody(baleen, upstreams):
    """Thousands of names that nobody answers, and the others are served all the while."""
    dead, good = upstreams(default=silent), upstreams()
    daemon = baleen(start=False, upstream=good)
    daemon.config["upstreams"]["dead"] = {"zones": ["dead.test"], "servers": [dead.endpoint]}
    daemon.save()
    daemon.start()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.66", 0))
        for i in range(5000):
            s.sendto(question(f"n{i}.dead.test").to_wire(), ("127.0.0.1", daemon.port))
            if i % 100 == 0:
                time.sleep(0.005)
        for i in range(30):
            assert addresses(daemon.ask(f"n{i}.test")) == ["192.0.2.1"]


def test_own_question_through_a_real_recursion(baleen, knot):
    """A second Baleen as upstream: what one says the other understands."""
    first = baleen(upstream=knot.endpoint)
    second = baleen(upstream=f"127.0.0.1:{first.port}")
    assert addresses(second.ask("alias.test")) == ["192.0.2.1"]
    assert second.ask("nope.test").rcode() == dns.rcode.NXDOMAIN
    with TcpClient(second.port) as client:
        client.send(question("many.test"))
        assert len(client.receive().answer[0]) == 120


def test_upstream_over_ipv6(baleen, knot):
    for endpoint in knot.endpoints():
        daemon = baleen(upstream=endpoint)
        assert addresses(daemon.ask("www.test")) == ["192.0.2.1"]
        daemon.stop()


def test_our_own_query_upstream_is_clean(baleen, upstream):
    """Nothing of the client's OPT goes upstream but DO; RD is set."""
    kept = []

    def keep(query, transport):
        kept.append(query)
        return address()(query, transport)
    upstream.default = keep
    daemon = baleen(upstream=upstream)
    import dns.edns
    daemon.ask("www.test", options=[dns.edns.GenericOption(65001, b"secret"),
                                    dns.edns.ECSOption("192.0.2.0", 24)])
    assert kept[0].flags & dns.flags.RD
    assert not kept[0].options
    assert udp_exchange(question("www.test").to_wire(), daemon.port)
