# SPDX-License-Identifier: Apache-2.0
"""Questions and what their answers must look like."""

import socket
import struct

import dns.edns
import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.query
import dns.rcode
import dns.rdatatype

TIMEOUT = 8


def question(name, rdtype="A", edns=True, payload=1232, dnssec=False, options=None, rd=True, **_):
    message = dns.message.make_query(
        name, rdtype, use_edns=0 if edns else -1, payload=payload if edns else None,
        want_dnssec=dnssec, options=options if edns else None)
    if not rd:
        message.flags &= ~dns.flags.RD
    return message


def query(name, rdtype="A", port=53, address="127.0.0.1", tcp=False, source=None, timeout=TIMEOUT,
          **how):
    message = question(name, rdtype, **how)
    ask = dns.query.tcp if tcp else dns.query.udp
    return ask(message, address, port=port, timeout=timeout, source=source)


def silent(ask):
    """True if `ask()` gets no answer at all."""
    try:
        ask()
    except dns.exception.Timeout:
        return True
    return False


def edes(answer):
    return [(int(o.code), o.text or "") for o in answer.options
            if o.otype == dns.edns.OptionType.EDE]


def addresses(answer):
    return sorted(r.address for rrset in answer.answer
                  if rrset.rdtype in (dns.rdatatype.A, dns.rdatatype.AAAA) for r in rrset)


def soa(answer):
    for rrset in answer.authority:
        if rrset.rdtype == dns.rdatatype.SOA:
            return rrset
    return None


def check_blocked(answer, rcode="NXDOMAIN", ede=15):
    """The shape of interface.md, "A blocked answer"."""
    assert answer.rcode() == dns.rcode.from_text(rcode), answer
    assert answer.flags & dns.flags.QR and answer.flags & dns.flags.RA, answer
    assert not answer.flags & (dns.flags.AA | dns.flags.AD | dns.flags.TC), answer
    if answer.edns >= 0:
        assert [code for code, _ in edes(answer)] == [ede], answer
    if rcode in ("NXDOMAIN", "NOERROR") and not answer.answer:
        record = soa(answer)
        assert record is not None, answer
        assert record.ttl == record[0].minimum, answer
        asked = answer.question[0].name
        assert record.name == (asked.parent() if asked != dns.name.root else asked), answer


def udp_exchange(data, port, address="127.0.0.1", timeout=2.0):
    """Send raw octets, give back raw octets; None: silence."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(timeout)
        s.sendto(data, (address, port))
        try:
            return s.recv(65535)
        except socket.timeout:
            return None


class TcpClient:
    """One TCP connection, length-prefixed messages in whatever order they come."""

    def __init__(self, port, address="127.0.0.1", timeout=TIMEOUT):
        self.socket = socket.create_connection((address, port), timeout=timeout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, message):
        data = message if isinstance(message, bytes) else message.to_wire()
        self.socket.sendall(struct.pack("!H", len(data)) + data)

    def receive_octets(self):
        """One message, or b"" when the server has closed."""
        head = self._exactly(2)
        return self._exactly(struct.unpack("!H", head)[0]) if head else b""

    def receive(self):
        return dns.message.from_wire(self.receive_octets())

    def _exactly(self, count):
        data = b""
        while len(data) < count:
            try:
                more = self.socket.recv(count - len(data))
            except ConnectionResetError:
                return b""
            if not more:
                return b""
            data += more
        return data
