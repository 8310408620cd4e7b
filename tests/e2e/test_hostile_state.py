# SPDX-License-Identifier: Apache-2.0
"""Damage in the state folder, while the daemon runs and over restarts: names stay blocked."""

import os

import pytest

from daemon import wait_for
from wire import addresses

NAMES = 20000
LIST = "".join(f"n{i}.blocked.example\n" for i in range(NAMES))


def let_through(daemon, count=40):
    """Of some listed names, those that got an address. No answer, or SERVFAIL, is none."""
    found = []
    for i in range(count):
        name = f"n{i * 487 % NAMES}.blocked.example"
        try:
            if addresses(daemon.ask(name, timeout=1)):
                found.append(name)
        except Exception:  # a worker died with it
            pass
    return found


def sets(daemon):
    return sorted((daemon.state / "sets").glob("domains.*.mdb"),
                  key=lambda p: int(p.name.split(".")[1]))


def flip(path, size):
    with open(path, "r+b") as f:
        for at in range(4096, size, 256):
            f.seek(at)
            old = f.read(1)
            f.seek(at)
            f.write(bytes([old[0] ^ 0x55]))


HARMS = {
    "cut": lambda path, size: os.truncate(path, size // 2),
    "empty": lambda path, size: os.truncate(path, 0),
    "flip": flip,
    "remove": lambda path, size: path.unlink(),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_set_lets_no_name_through(baleen_own, upstream, monkeypatch, harm):
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0:handle_sigbus=0")
    daemon = baleen_own(upstream=upstream, lists={"ours": LIST})
    [path] = sets(daemon)
    HARMS[harm](path, path.stat().st_size)
    if harm == "remove":
        daemon.reload()
    if harm == "flip":  # nobody can doubt a filter that says "not listed"; the blocks tell
        let_through(daemon)
    else:
        for _ in range(3):
            assert not let_through(daemon), daemon.log()
    assert wait_for(lambda: [p for p in sets(daemon) if p != path]), daemon.log()
    # The file is there before it is published, and each worker adopts it at its own tick.
    assert wait_for(lambda: not let_through(daemon)), daemon.log()
    assert daemon.ask("n1.blocked.example").rcode() == 3, daemon.log()
    assert addresses(daemon.ask("clean.example")) == ["192.0.2.1"]
    assert not daemon.said("out of the chain"), daemon.log()
    daemon.reload()
    assert not let_through(daemon)
    daemon.stop()
    daemon.start()
    assert not let_through(daemon)
