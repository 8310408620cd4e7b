# SPDX-License-Identifier: Apache-2.0
"""Knot DNS as an authoritative upstream, with zones that hold one of everything."""

import shutil
import signal
import subprocess

import dns.exception

from daemon import wait_for
from ports import ADDRESSES, bracketed, free_port
from wire import query

TEST_ZONE = """
$ORIGIN test.
$TTL 300
@           SOA   ns hostmaster 1 3600 600 86400 30
@           NS    ns
ns          A     127.0.0.1
www         A     192.0.2.1
www         AAAA  2001:db8::1
example     A     192.0.2.2
short       2 A   192.0.2.3
alias       CNAME www
cloak       CNAME hop
hop         CNAME beacon.tracker
beacon.tracker A  203.0.113.5
tracker     A     203.0.113.6
svc         HTTPS 1 . alpn=h2 ipv4hint=192.0.2.20 ipv6hint=2001:db8::20
svcalias    HTTPS 0 beacon.tracker
twoaddr     A     192.0.2.10
twoaddr     A     192.0.2.11
inside      A     10.1.2.3
mail        MX    10 www
text        TXT   "hello"
loop1       CNAME loop2
loop2       CNAME loop1
*.wild      A     192.0.2.77
ent.below   A     192.0.2.78
big         TXT   {big}
{many}"""

CORP_ZONE = """
$ORIGIN corp.
$TTL 300
@           SOA   ns hostmaster 1 3600 600 86400 30
@           NS    ns
ns          A     127.0.0.1
intranet    A     10.9.9.9
"""


class Knot:
    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        self.endpoint = f"127.0.0.1:{self.port}"
        self.process = None
        big = " ".join(f'"{chr(97 + i % 26) * 200}"' for i in range(10))
        many = "".join(f"many A 198.51.100.{i}\n" for i in range(1, 121))
        (folder / "test.zone").write_text(TEST_ZONE.format(big=big, many=many))
        (folder / "corp.zone").write_text(CORP_ZONE)
        listen = ", ".join(f"{a}@{self.port}" for a in ADDRESSES)
        (folder / "knot.conf").write_text(f"""
server:
    rundir: "{folder}"
    listen: [ {listen} ]
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
database:
    storage: "{folder}/db"
log:
  - target: stderr
    any: warning
template:
  - id: default
    storage: "{folder}"
    semantic-checks: off
    zonefile-load: whole
    zonefile-sync: -1
    journal-content: none
zone:
  - domain: test
    file: test.zone
  - domain: corp
    file: corp.zone
""")

    def endpoints(self):
        return [bracketed(a, self.port) for a in ADDRESSES]

    def start(self):
        program = shutil.which("knotd") or "/usr/sbin/knotd"
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen([program, "-c", str(self.folder / "knot.conf")],
                                            stdout=log, stderr=log)

        def answers():
            try:
                return query("www.test", port=self.port, timeout=0.5).answer
            except (dns.exception.Timeout, OSError):
                return None
        assert wait_for(answers, 20), (self.folder / "log").read_text()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)
