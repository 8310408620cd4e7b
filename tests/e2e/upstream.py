# SPDX-License-Identifier: Apache-2.0
"""An upstream that misbehaves as told: delays, drops, lies, truncates, closes.

`upstream.on[name]` is a behaviour or a list of them (one for each further query, the last stays);
names without one get `upstream.default`. A behaviour is a function of the query (dns.message) and
the transport ("udp" or "tcp") that returns what to send: a message, raw octets, None (silence),
CLOSE, or a list of (seconds, what).
"""

import socket
import struct
import threading

import dns.flags
import dns.message
import dns.rcode
import dns.rrset

from ports import ADDRESSES, bracketed, free_port

CLOSE = object()


def reply(query):
    message = dns.message.make_response(query, recursion_available=True)
    message.use_edns(-1)
    return message


def answer(*records, rcode="NOERROR", authority=(), also=None):
    """Records in presentation form, `@` standing for the asked name."""
    def behaviour(query, transport):
        message = reply(query)
        message.set_rcode(dns.rcode.from_text(rcode))
        asked = query.question[0].name.to_text()
        for section, rows in ((message.answer, records), (message.authority, authority)):
            for row in rows:
                owner, ttl, rdtype, *rdata = row.replace("@", asked, 1).split()
                section.append(dns.rrset.from_text(owner, int(ttl), "IN", rdtype, " ".join(rdata)))
        if also:
            also(message)
        return message
    return behaviour


def address(text="192.0.2.1", ttl=300):
    return answer(f"@ {ttl} {'AAAA' if ':' in text else 'A'} {text}")


def fails(rcode):
    return answer(rcode=rcode)


def silent(query, transport):
    return None


def closes(query, transport):
    return CLOSE


def delayed(seconds, behaviour):
    return lambda query, transport: [(seconds, behaviour(query, transport))]


def truncated_over_udp(behaviour):
    def act(query, transport):
        if transport == "tcp":
            return behaviour(query, transport)
        message = reply(query)
        message.flags |= dns.flags.TC
        return message
    return act


def garbage(query, transport):
    return struct.pack("!H", query.id) + b"\x81\x80" + b"\xff" * 40


class ScriptedUpstream:
    def __init__(self, address_="127.0.0.1", default=None, port=None):
        self.host = address_
        self.default = default or address()
        self.on = {}
        self.seen = []  # (name, type, transport) in order
        self.keep = None  # a list: collects (id, source port) of datagrams
        self.lock = threading.Lock()
        self.stopping = False
        self.port = port or free_port()
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        self.udp = socket.socket(family, socket.SOCK_DGRAM)
        self.udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.udp.bind((self.host, self.port))
        self.tcp = socket.socket(family, socket.SOCK_STREAM)
        self.tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.tcp.bind((self.host, self.port))
        self.tcp.listen(64)
        for run in (self._serve_udp, self._serve_tcp):
            threading.Thread(target=run, daemon=True).start()

    @property
    def endpoint(self):
        return bracketed(self.host, self.port)

    def stop(self):
        self.stopping = True
        for s in (self.udp, self.tcp):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()

    def count(self, name=None, transport=None):
        with self.lock:
            return sum(1 for n, _, t in self.seen
                       if name in (None, n) and transport in (None, t))

    def _react(self, data, transport, send):
        try:
            query = dns.message.from_wire(data)
        except Exception:
            return
        name = query.question[0].name.to_text(omit_final_dot=True).lower()
        with self.lock:
            self.seen.append((name, int(query.question[0].rdtype), transport))
            behaviour = self.on.get(name, self.default)
            if isinstance(behaviour, list):
                behaviour = behaviour.pop(0) if len(behaviour) > 1 else behaviour[0]
        what = behaviour(query, transport)
        for seconds, item in (what if isinstance(what, list) else [(0, what)]):
            if seconds:
                timer = threading.Timer(seconds, self._send, (item, send))
                timer.daemon = True
                timer.start()
            else:
                self._send(item, send)

    @staticmethod
    def _send(item, send):
        if item is None:
            return
        try:
            send(item if item is CLOSE or isinstance(item, bytes) else item.to_wire())
        except OSError:
            pass

    def _serve_udp(self):
        while not self.stopping:
            try:
                data, peer = self.udp.recvfrom(65535)
            except OSError:
                return
            if self.stopping:
                return

            if self.keep is not None:
                self.keep.append((struct.unpack("!H", data[:2])[0], peer[1]))

            def send(octets, peer=peer):
                if octets is not CLOSE:
                    self.udp.sendto(octets, peer)

            self._react(data, "udp", send)

    def _serve_tcp(self):
        while not self.stopping:
            try:
                connection, _ = self.tcp.accept()
            except OSError:
                return
            threading.Thread(target=self._serve_connection, args=(connection,), daemon=True).start()

    def _serve_connection(self, connection):
        def send(octets):
            if octets is CLOSE:
                connection.shutdown(socket.SHUT_RDWR)
            else:
                connection.sendall(struct.pack("!H", len(octets)) + octets)

        buffer = b""
        while True:
            try:
                more = connection.recv(65535)
            except OSError:
                more = b""
            if not more:
                connection.close()
                return
            buffer += more
            while len(buffer) >= 2 and len(buffer) >= 2 + struct.unpack("!H", buffer[:2])[0]:
                size = struct.unpack("!H", buffer[:2])[0]
                data, buffer = buffer[2:2 + size], buffer[2 + size:]
                self._react(data, "tcp", send)
