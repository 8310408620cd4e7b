# SPDX-License-Identifier: Apache-2.0
"""Fixtures: the real daemon, real upstreams, a scripted one. Each test owns its ports and folders."""

import pytest

from daemon import Daemon
from knot import Knot
from upstream import ScriptedUpstream


@pytest.fixture
def baleen_own(tmp_path):
    """A factory: baleen_own(upstream=..., policies=...) gives a started daemon, stopped at the end."""
    started = []

    def make(start=True, **parts):
        daemon = Daemon(tmp_path / f"site{len(started)}", **parts)
        started.append(daemon)
        return daemon.start() if start else daemon

    yield make
    for daemon in started:
        daemon.stop()


@pytest.fixture
def baleen(baleen_own):
    """baleen_own, unless the file has one daemon for all its tests under this name."""
    return baleen_own


@pytest.fixture(scope="module")
def shared_baleen(tmp_path_factory):
    """The same for tests that only ask: one daemon for all tests of a file."""
    started = []

    def make(**parts):
        daemon = Daemon(tmp_path_factory.mktemp("site"), **parts)
        started.append(daemon)
        return daemon.start()

    yield make
    for daemon in started:
        daemon.stop()


@pytest.fixture(scope="session")
def knot(tmp_path_factory):
    """An authoritative server of the distribution with the zones of knot.py."""
    server = Knot(tmp_path_factory.mktemp("knot"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def upstream():
    server = ScriptedUpstream()
    yield server
    server.stop()


@pytest.fixture
def upstreams():
    """A factory for several scripted upstreams."""
    started = []

    def make(**options):
        started.append(ScriptedUpstream(**options))
        return started[-1]

    yield make
    for server in started:
        server.stop()
