# SPDX-License-Identifier: Apache-2.0
"""UDP and TCP to the client: sizes, EDNS, order, limits."""

import socket
import struct
import time

import dns.edns
import dns.flags
import dns.message
import dns.rcode
import pytest

from daemon import wait_for
from ports import ADDRESSES
from upstream import address, delayed, silent
from wire import TcpClient, addresses, edes, question, udp_exchange


@pytest.fixture(scope="module")
def baleen(shared_baleen, knot):
    return shared_baleen(upstream=knot.endpoint)


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])
def test_both_transports_and_families(baleen, address, tcp):
    assert addresses(baleen.ask("www.test", address=address, tcp=tcp)) == ["192.0.2.1"]


@pytest.mark.parametrize("payload,limit", [
    (None, 512), (0, 512), (511, 512), (512, 512), (1232, 1232), (4096, 1232), (65535, 1232)])
@pytest.mark.parametrize("name,rdtype", [("big.test", "TXT"), ("many.test", "A")])
def test_size_and_truncation(baleen, payload, limit, name, rdtype):
    ask = question(name, rdtype, edns=payload is not None, payload=payload)
    for _ in ("from upstream", "from the cache"):
        data = udp_exchange(ask.to_wire(), baleen.port, timeout=8)
        assert len(data) <= limit
        answer = dns.message.from_wire(data)
        assert answer.flags & dns.flags.TC
        assert (answer.edns >= 0) == (payload is not None)
        # Whole RRsets only: a cut one would be taken for complete by some.
        assert not answer.answer
    full = baleen.ask(name, rdtype, tcp=True)
    assert not full.flags & dns.flags.TC and full.answer


def test_opt_is_ours(baleen):
    answer = baleen.ask("www.test", payload=4096)
    assert answer.edns == 0 and answer.payload == 1232
    assert baleen.ask("www.test", edns=False).edns == -1


def test_do_is_mirrored(baleen):
    assert baleen.ask("www.test", dnssec=True).ednsflags & dns.flags.DO
    assert not baleen.ask("www.test").ednsflags & dns.flags.DO


def test_unknown_options_are_not_echoed(baleen):
    options = [dns.edns.GenericOption(code, data) for code, data in
               ((3, b""), (9, b""), (10, b"12345678"), (11, b""), (65001, b"abcdef"), (12, b"\0" * 8))]
    for name in ("www.test", "blocked.test"):
        answer = baleen.ask(name, options=options)
        assert not {int(o.otype) for o in answer.options} & {3, 9, 10, 11, 12, 65001}


def test_edns_version_1_gets_badvers(baleen):
    data = bytearray(question("www.test").to_wire())
    data[-5] = 1
    answer = dns.message.from_wire(udp_exchange(bytes(data), baleen.port))
    assert answer.rcode() == dns.rcode.BADVERS and answer.edns == 0 and not answer.answer


def test_ids_come_back(baleen):
    for id_ in (0, 1, 0x7fff, 0xffff):
        ask = question("www.test")
        ask.id = id_
        assert dns.message.from_wire(udp_exchange(ask.to_wire(), baleen.port)).id == id_


def test_tcp_many_on_one_connection(baleen):
    with TcpClient(baleen.port) as client:
        asks = {}
        for i in range(200):
            ask = question("www.test" if i % 2 else f"x{i}.wild.test")
            ask.id = i
            asks[i] = ask
            client.send(ask)
        for _ in range(200):
            answer = client.receive()
            ask = asks.pop(answer.id)
            assert answer.question == ask.question and answer.answer
    assert not asks


def test_tcp_octet_by_octet(baleen):
    with TcpClient(baleen.port) as client:
        data = question("www.test").to_wire()
        for octet in struct.pack("!H", len(data)) + data:
            client.socket.sendall(bytes([octet]))
            time.sleep(0.002)
        assert addresses(client.receive()) == ["192.0.2.1"]


def test_tcp_half_closed_client_still_gets_answers(baleen):
    with TcpClient(baleen.port) as client:
        client.send(question("y.wild.test"))
        client.socket.shutdown(socket.SHUT_WR)
        assert addresses(client.receive()) == ["192.0.2.77"]
        assert client.receive_octets() == b""


def test_tcp_out_of_order(baleen_own, upstream):
    """A slow name does not hold up the fast ones behind it (RFC 7766)."""
    upstream.on["slow.test"] = delayed(1.5, address("192.0.2.9"))
    daemon = baleen_own(upstream=upstream)
    with TcpClient(daemon.port) as client:
        asks = [question("slow.test")] + [question(f"fast{i}.test") for i in range(5)]
        for i, ask in enumerate(asks):
            ask.id = i
            client.send(ask)
        order = [client.receive().id for _ in asks]
    assert order[-1] == 0 and sorted(order) == list(range(6))


def test_tcp_never_answered_names_jam_nobody(baleen_own, upstream):
    upstream.on["never.test"] = silent
    daemon = baleen_own(upstream=upstream)
    clients = [TcpClient(daemon.port) for _ in range(20)]
    try:
        for client in clients:
            client.send(question("never.test"))
            client.send(question("fast.test"))
        begin = time.monotonic()
        for client in clients:
            assert addresses(client.receive()) == ["192.0.2.1"]
        assert time.monotonic() - begin < 5
    finally:
        for client in clients:
            client.socket.close()


def test_tcp_connections_have_a_limit(baleen_own, upstream):
    """However many connections a client opens, others are still served."""
    daemon = baleen_own(upstream=upstream)
    idle = []
    try:
        for _ in range(600):
            try:
                idle.append(TcpClient(daemon.port))
            except OSError:
                break
        assert addresses(daemon.ask("fast.test")) == ["192.0.2.1"]
        assert addresses(daemon.ask("fast.test", tcp=True, source="127.0.0.3")) == ["192.0.2.1"]
    finally:
        for client in idle:
            client.socket.close()
    # And when they are gone, the client is welcome again.
    assert wait_for(lambda: addresses(daemon.ask("fast.test", tcp=True)) == ["192.0.2.1"])


def test_reply_leaves_from_the_address_that_was_asked(baleen_own, upstream):
    daemon = baleen_own(start=False, upstream=upstream)
    daemon.config["listen"] = [{"address": f"0.0.0.0:{daemon.port}"}]
    daemon.save()
    daemon.start()
    for asked in ("127.0.0.1", "127.0.0.53", "127.1.2.3"):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(5)
            s.sendto(question("fast.test").to_wire(), (asked, daemon.port))
            assert s.recvfrom(4096)[1] == (asked, daemon.port)


def test_every_worker_answers_one_client_port(baleen_own, upstream):
    """One socket's packets are spread over all workers: a downstream resolver uses every core."""
    daemon = baleen_own(upstream=upstream)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(5)
        for i in range(64):
            s.sendto(question(f"n{i}.test").to_wire(), ("127.0.0.1", daemon.port))
            s.recv(4096)
    assert {e["worker"] for e in daemon.events(64)} == {0, 1}


def test_strangers_are_refused(baleen_own, upstream):
    daemon = baleen_own(upstream=upstream, config={"allow-clients": ["127.0.0.1/32"]})
    assert addresses(daemon.ask("fast.test")) == ["192.0.2.1"]
    for tcp in (False, True):
        answer = daemon.ask("fast.test", source="127.0.0.9", tcp=tcp)
        assert answer.rcode() == dns.rcode.REFUSED and not answer.answer
        assert [code for code, _ in edes(answer)] == [18]
