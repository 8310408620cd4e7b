# SPDX-License-Identifier: Apache-2.0
"""Processes that are stopped instead of killed, and an admin that is sat on."""

import os
import signal
import socket
import time

import pytest

from daemon import wait_for
from ports import free_port
from wire import addresses


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("role", ["worker 0", "logger", "fetcher", "admin", "template"])
def test_a_stopped_process_is_replaced(baleen_own, upstream, role):
    """A stopped worker kept its share of the queries, a stopped admin let `status` wait for ever."""
    daemon = baleen_own(upstream=upstream)
    [pid] = [pids[0] for title, pids in daemon.processes().items() if role in title]
    os.kill(pid, signal.SIGSTOP)
    assert wait_for(lambda: not runs(pid), 5), daemon.log()
    assert wait_for(lambda: all(any(word in title for title in daemon.processes()) for word in (
        "worker 0", "worker 1", "logger", "fetcher", "admin", "template"))), daemon.log()
    for i in range(10):
        assert addresses(daemon.ask(f"n{i}.test")) == ["192.0.2.1"]
    daemon.status()


def test_a_process_that_goes_on_at_once_stays(baleen_own, upstream):
    daemon = baleen_own(upstream=upstream)
    before = daemon.processes()
    for pids in before.values():
        os.kill(pids[0], signal.SIGSTOP)
    time.sleep(0.2)
    for pids in before.values():
        os.kill(pids[0], signal.SIGCONT)
    time.sleep(1.5)
    assert daemon.processes() == before, daemon.log()


def test_idle_connections_do_not_shut_the_help_desk_out(baleen_own, upstream):
    """Anybody in the socket's group could keep `status` and `override` from working."""
    daemon = baleen_own(upstream=upstream)
    idle = []
    for _ in range(60):
        idle.append(socket.socket(socket.AF_UNIX))
        idle[-1].connect(str(daemon.state / "control.sock"))
    daemon.status()
    for s in idle:
        s.close()


def test_idle_http_connections_leave_the_control_socket_alone(baleen_own, upstream):
    port = free_port()
    daemon = baleen_own(upstream=upstream, config={"admin": {"listen": f"127.0.0.1:{port}"}})
    idle = []
    for _ in range(860):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", port))
        idle.append(s)
    time.sleep(0.5)
    begun = time.monotonic()
    daemon.status()
    assert time.monotonic() - begun < 5
    [admin] = daemon.processes()["baleen: admin"]
    assert len(os.listdir(f"/proc/{admin}/fd")) < 1000
    for s in idle:
        s.close()


def test_a_feed_s_name_is_no_path(baleen_own, upstream):
    daemon = baleen_own(upstream=upstream, lists={"ours": "a.example\n"})
    assert daemon.run("feeds", "show", "ours")
    daemon.run("feeds", "show", "../feeds/ours", code=1)
