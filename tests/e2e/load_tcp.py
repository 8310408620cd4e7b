# SPDX-License-Identifier: Apache-2.0
"""TCP clients that pipeline, and do what RFC 7766 6.2.4 asks of them: when the server closes, the
questions that are still open go over a new connection. A question is lost when it got no answer in
five seconds whatever its client did."""

import threading
import time

import dns.rcode

from wire import TcpClient, question

PIPELINE = 16
PATIENCE_S = 5


class TcpLoad:
    def __init__(self, port, names, seconds, connections=4):
        self.port, self.names, self.end = port, names, time.monotonic() + seconds
        self.answered = self.reconnected = 0
        self.problems = []
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._client, args=(i,), daemon=True)
                        for i in range(connections)]
        for thread in self.threads:
            thread.start()

    def finish(self):
        for thread in self.threads:
            thread.join()

    def _client(self, number):
        open_ = {}  # id: (message, when first asked)
        serial = number * 1000
        connection = TcpClient(self.port, timeout=PATIENCE_S)
        while time.monotonic() < self.end or open_:
            try:
                while len(open_) < PIPELINE and time.monotonic() < self.end:
                    message = question(self.names[serial % len(self.names)])
                    message.id = serial = (serial + 1) % 65536
                    open_[message.id] = (message, time.monotonic())
                    connection.send(message)
                data = connection.receive_octets()
            except OSError:
                data = b""
            if not data:
                connection.socket.close()
                try:
                    connection = TcpClient(self.port, timeout=PATIENCE_S)
                    for message, _ in open_.values():
                        connection.send(message)
                except OSError:
                    time.sleep(0.01)
                with self.lock:
                    self.reconnected += 1
            else:
                asked = open_.pop(int.from_bytes(data[:2], "big"), None)
                with self.lock:
                    self.answered += 1
                    if asked is None or data[3] & 15 not in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN):
                        self.problems.append(data.hex())
            late = [id_ for id_, (_, since) in open_.items() if time.monotonic() - since > PATIENCE_S]
            for id_ in late:
                with self.lock:
                    self.problems.append(f"no answer: {open_.pop(id_)[0].question}")
        connection.socket.close()
