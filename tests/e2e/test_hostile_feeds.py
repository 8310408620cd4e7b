# SPDX-License-Identifier: Apache-2.0
"""Servers of lists that want to do harm: to the list, to the other lists, to whoever reads them."""

import time

import pytest

from daemon import wait_for
from feedserver import FeedServer


@pytest.fixture
def web():
    server = FeedServer()
    yield server
    server.stop()


def silent_for(seconds):
    def act(handler):
        time.sleep(seconds)
        handler.reply(b"nothing here", code=503)
    return act


def test_lists_that_fail_again_and_again_do_not_keep_the_others_out(baleen_own, upstream, web):
    """Slow servers that fail, at the top of the list, and no list below them was ever fetched."""
    feeds = []
    for i in range(18):
        web.bodies[f"/slow{i}"] = silent_for(0.5)
        feeds.append({"name": f"slow{i}", "url": web.url(f"/slow{i}"), "refresh": "1s"})
    web.bodies["/good"] = b"bad.example\n"
    feeds.append({"name": "good", "url": web.url("/good")})
    daemon = baleen_own(upstream=upstream, config={"feeds": feeds})
    assert wait_for(lambda: daemon.ask("bad.example").rcode() == 3, 8), daemon.log()
