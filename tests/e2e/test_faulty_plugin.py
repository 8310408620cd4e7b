# SPDX-License-Identifier: Apache-2.0
"""A plugin that crashes, hangs or talks nonsense costs at most the query it had in its hands."""

import json

import dns.rcode
import pytest

from daemon import BUILD, wait_for
from wire import addresses, check_blocked, silent

FAULTY = str(BUILD / "abi/faulty.so")


@pytest.fixture
def faulty(baleen, upstream):
    def make(**options):
        daemon = baleen(upstream=upstream, lists={"ours": "ads.test\n"}, config={
            "hang-timeout": "500ms",
            "plugins": [{FAULTY: options}, "blocklist", {"logging": {"file": "log/queries.log"}}]})
        daemon.crash_expected = True
        return daemon
    return make


def lost(daemon, name):
    return silent(lambda: daemon.ask(name, timeout=1))


def degraded(daemon):
    return json.dumps(daemon.status()["degraded"])


def serves(daemon):
    check_blocked(daemon.ask("ads.test"))
    return addresses(daemon.ask("www.test")) == ["192.0.2.1"]


@pytest.mark.parametrize("how", ["crash", "hang"])
def test_costs_one_query(faulty, how):
    daemon = faulty()
    before = set(daemon.workers())
    assert lost(daemon, f"{how}.one.test")
    assert serves(daemon)
    assert wait_for(lambda: len(daemon.workers()) == 2 and set(daemon.workers()) != before)
    # The log says which plugin it was, and over what.
    assert wait_for(lambda: daemon.said(f"had in hand: {how}.one.test. A")), daemon.log()
    assert daemon.said("in plugin faulty, hook on_query")
    assert sum(p["restarts"] for p in daemon.status()["processes"]) >= 1


@pytest.mark.parametrize("how", ["crash", "hang"])
def test_the_same_query_again_gets_servfail(faulty, how):
    """A query that kills workers is answered before it reaches a plugin, by every worker."""
    daemon = faulty()
    assert lost(daemon, f"{how}.again.test")
    assert wait_for(lambda: daemon.said(f"{how}.again.test"))
    workers = wait_for(lambda: daemon.workers() if len(daemon.workers()) == 2 else None)
    for _ in range(10):
        assert daemon.ask(f"{how}.again.test").rcode() == dns.rcode.SERVFAIL
    assert daemon.workers() == workers
    assert serves(daemon)


def crash_until_out(daemon):
    for i in range(8):
        if "faulty" in degraded(daemon) and not lost(daemon, f"crash.probe{i}.test"):
            return i
        lost(daemon, f"crash.n{i}.test")
        wait_for(lambda: len(daemon.workers()) == 2)
    raise AssertionError(daemon.log())


def test_out_of_the_chain_after_too_many(faulty):
    daemon = faulty(**{"max-crashes": 2, "within": "10m", "retry-after": "10m"})
    crash_until_out(daemon)
    assert addresses(daemon.ask("crash.after.test")) == ["192.0.2.1"]
    assert serves(daemon)
    assert "faulty" in degraded(daemon)


def test_closed_means_servfail(faulty):
    daemon = faulty(**{"max-crashes": 1, "within": "10m", "retry-after": "10m", "on-failure": "closed"})
    lost(daemon, "crash.first.test")
    lost(daemon, "crash.second.test")
    assert wait_for(lambda: daemon.ask("www.test").rcode() == dns.rcode.SERVFAIL)


def test_comes_back(faulty):
    daemon = faulty(**{"max-crashes": 1, "within": "10m", "retry-after": "2s"})
    crash_until_out(daemon)
    assert wait_for(lambda: "faulty" not in degraded(daemon) or serves(daemon) and
                    "back in the chain" in daemon.log(), 15)


def test_nonsense_follows_on_failure(faulty):
    daemon = faulty()
    assert addresses(daemon.ask("illegal.test")) == ["192.0.2.1"]
    daemon.config["plugins"][0] = {FAULTY: {"on-failure": "closed"}}
    daemon.save()
    daemon.reload()
    assert wait_for(lambda: daemon.ask("illegal.two.test").rcode() == dns.rcode.SERVFAIL)
    assert serves(daemon)


def test_slow_is_no_crash(faulty):
    daemon = faulty()
    workers = daemon.workers()
    assert addresses(daemon.ask("slow.test")) == ["192.0.2.1"]
    assert daemon.workers() == workers
