# SPDX-License-Identifier: Apache-2.0
"""Packets that are not queries: FORMERR, NOTIMP or silence as the RFCs say, and never a plugin."""

import random
import struct

import dns.message
import dns.rcode
import dns.rdatatype
import pytest

from wire import TcpClient, addresses, question, udp_exchange

NAME = b"\x07example\x04test\x00"
QUESTION = NAME + b"\0\1\0\1"


def packet(flags=0x0100, counts=(1, 0, 0, 0), body=QUESTION):
    return struct.pack("!HH4H", 0x1234, flags, *counts) + body


SILENCE = {
    "nothing": b"",
    "1 octet": b"\x12",
    "2 octets": b"\x12\x34",
    "3 octets": b"\x12\x34\x01",
    "5 octets": b"\x12\x34\x01\0\0",
    "11 octets": packet()[:11],
    "a response": packet(flags=0x8180),
    "a FORMERR response": packet(flags=0x8181),
}

FORMERR = {
    "header only": packet()[:12],
    "header says no question": packet(counts=(0, 0, 0, 0), body=b""),
    "13 octets": packet()[:13],
    "two questions": packet(counts=(2, 0, 0, 0), body=QUESTION * 2),
    "65535 questions": packet(counts=(65535, 0, 0, 0)),
    "name cut off": packet(body=b"\x07exam"),
    "no type": packet(body=NAME),
    "class cut off": packet(body=NAME + b"\0\1\0"),
    "pointer to itself": packet(body=b"\xc0\x0c\0\1\0\1"),
    "pointers at each other": packet(body=b"\xc0\x0e\xc0\x0c\0\1\0\1"),
    "pointer forward": packet(body=b"\xc0\x20\0\1\0\1" + b"\0" * 32),
    "pointer into the header": packet(body=b"\x01a\xc0\x00\0\1\0\1"),
    "label type 01": packet(body=b"\x41a\0\0\1\0\1"),
    "label type 10": packet(body=b"\x81a\0\0\1\0\1"),
    "name of 256 octets": packet(body=b"\x3f" + b"a" * 63 + (b"\x3f" + b"a" * 63) * 3 + b"\0\0\1\0\1"),
    "an OPT too many": packet(counts=(1, 0, 0, 2), body=QUESTION + (b"\0\0\x29\x04\xd0\0\0\0\0\0\0") * 2),
    "OPT with a name": packet(counts=(1, 0, 0, 1), body=QUESTION + b"\1a\0\0\x29\x04\xd0\0\0\0\0\0\0"),
    "OPT cut off": packet(counts=(1, 0, 0, 1), body=QUESTION + b"\0\0\x29\x04\xd0\0\0"),
    "option longer than its OPT": packet(
        counts=(1, 0, 0, 1), body=QUESTION + b"\0\0\x29\x04\xd0\0\0\0\0\0\4\0\3\0\x10"),
    "additional record missing": packet(counts=(1, 0, 0, 1)),
}

NOTIMP = {word: packet(flags=code << 11) for word, code in
          (("IQUERY", 1), ("STATUS", 2), ("NOTIFY", 4), ("UPDATE", 5), ("opcode 15", 15))}


@pytest.fixture(scope="module")
def baleen(shared_baleen, knot):
    daemon = shared_baleen(upstream=knot.endpoint)
    yield daemon
    # Whatever came before, it serves.
    assert addresses(daemon.ask("www.test")) == ["192.0.2.1"]


@pytest.mark.parametrize("what", SILENCE)
def test_silence(baleen, what):
    assert udp_exchange(SILENCE[what], baleen.port, timeout=0.3) is None


@pytest.mark.parametrize("what", FORMERR)
def test_formerr(baleen, what):
    data = udp_exchange(FORMERR[what], baleen.port)
    assert data is not None
    id_, flags, *counts = struct.unpack("!HH4H", data[:12])
    assert id_ == 0x1234 and flags & 0x8000 and flags & 15 == dns.rcode.FORMERR
    assert counts[1] == counts[2] == 0
    assert len(data) <= max(len(FORMERR[what]), 12) + 11  # never an amplifier


@pytest.mark.parametrize("what", NOTIMP)
def test_notimp(baleen, what):
    data = udp_exchange(NOTIMP[what], baleen.port)
    id_, flags = struct.unpack("!HH", data[:4])
    assert id_ == 0x1234 and flags & 0x8000 and flags & 15 == dns.rcode.NOTIMP
    assert flags >> 11 & 15 == struct.unpack("!H", NOTIMP[what][2:4])[0] >> 11 & 15


def test_tcp_response_closes_the_connection(baleen):
    with TcpClient(baleen.port) as client:
        client.send(SILENCE["a response"])
        assert client.receive_octets() == b""


@pytest.mark.parametrize("size", [0, 1, 11])
def test_tcp_too_short(baleen, size):
    """A message that cannot hold a header ends the connection, and only that."""
    with TcpClient(baleen.port) as client:
        client.send(b"\0" * size)
        assert client.receive_octets() == b""
    assert addresses(baleen.ask("www.test", tcp=True)) == ["192.0.2.1"]


def test_tcp_formerr_and_on(baleen):
    with TcpClient(baleen.port) as client:
        client.send(FORMERR["pointer to itself"])
        assert client.receive_octets()[3] & 15 == dns.rcode.FORMERR


def test_random_octets(baleen):
    """Whatever comes, nothing of it is answered with data, and the daemon lives."""
    chance = random.Random(7)
    for i in range(300):
        base = bytearray(packet() if i % 2 else bytes(chance.randrange(256) for _ in range(64)))
        for _ in range(chance.randrange(1, 4)):
            base[chance.randrange(len(base))] = chance.randrange(256)
        udp_exchange(bytes(base), baleen.port, timeout=0.001)
    assert addresses(baleen.ask("www.test")) == ["192.0.2.1"]


def test_other_classes(baleen):
    ask = dns.message.make_query("version.bind", "TXT", "CH")
    answer = dns.message.from_wire(udp_exchange(ask.to_wire(), baleen.port))
    assert answer.rcode() in (dns.rcode.REFUSED, dns.rcode.NOTIMP) and not answer.answer


@pytest.mark.parametrize("rdtype", ["AXFR", "IXFR", "OPT", "TSIG", "MAILA"])
def test_types_that_are_no_questions(baleen, rdtype):
    ask = question("www.test")
    ask.question[0].rdtype = dns.rdatatype.from_text(rdtype)
    for tcp in (False, True):
        if tcp:
            with TcpClient(baleen.port) as client:
                client.send(ask)
                answer = dns.message.from_wire(client.receive_octets())
        else:
            answer = dns.message.from_wire(udp_exchange(ask.to_wire(), baleen.port))
        assert answer.rcode() in (dns.rcode.REFUSED, dns.rcode.NOTIMP, dns.rcode.FORMERR)
        assert not answer.answer


def test_nothing_malformed_reaches_the_log_as_a_query(baleen):
    """Malformed packets are counted, not shown to plugins."""
    stats = baleen.json("stats")
    assert "malformed" in str(stats)
