# SPDX-License-Identifier: Apache-2.0
"""The shared answer cache: what it keeps, how long, and what it never keeps."""

import time

import dns.edns
import dns.flags
import dns.rcode
import pytest

from daemon import PATIENCE, wait_for
from upstream import address, answer, delayed, fails, silent
from wire import addresses, edes, soa

SOA = "test. 40 SOA a. b. 1 2 3 4 30"


def test_hit_is_shared_by_all_workers(baleen, upstream):
    daemon = baleen(upstream=upstream)
    for i in range(40):  # one socket each: both workers get some
        assert addresses(daemon.ask("www.test", tcp=i % 2 == 1)) == ["192.0.2.1"]
    assert upstream.count("www.test") == 1
    assert {e["cache"] for e in daemon.events(40)} == {"hit", "miss"}


def test_ttl_counts_down(baleen, upstream):
    upstream.on["www.test"] = address(ttl=300)
    daemon = baleen(upstream=upstream)
    first = daemon.ask("www.test").answer[0].ttl
    time.sleep(2.1)
    second = daemon.ask("www.test").answer[0].ttl
    assert first == 300 and 2 <= first - second <= 10


def test_expires(baleen, upstream):
    upstream.on["www.test"] = [address("192.0.2.1", ttl=1), address("192.0.2.2", ttl=1)]
    daemon = baleen(upstream=upstream)
    assert addresses(daemon.ask("www.test")) == ["192.0.2.1"]
    assert wait_for(lambda: addresses(daemon.ask("www.test")) == ["192.0.2.2"], 5, 0.3)


@pytest.mark.parametrize("rcode", ["NXDOMAIN", "NOERROR"])
def test_negative_answers(baleen, upstream, rcode):
    """RFC 2308: the smaller of the SOA's TTL and its MINIMUM."""
    upstream.on["none.test"] = answer(rcode=rcode, authority=[SOA])
    daemon = baleen(upstream=upstream)
    for _ in range(3):
        result = daemon.ask("none.test")
        assert result.rcode() == dns.rcode.from_text(rcode) and not result.answer
        assert soa(result).ttl <= 30
    assert upstream.count("none.test") == 1


def test_negative_without_soa_is_not_kept(baleen, upstream):
    upstream.on["none.test"] = answer(rcode="NXDOMAIN")
    daemon = baleen(upstream=upstream)
    for _ in range(2):
        assert daemon.ask("none.test").rcode() == dns.rcode.NXDOMAIN
    assert upstream.count("none.test") == 2


@pytest.mark.parametrize("ttl", [0, 0x80000000 - 1])
def test_odd_ttls(baleen, upstream, ttl):
    upstream.on["www.test"] = address(ttl=ttl)
    daemon = baleen(upstream=upstream)
    assert daemon.ask("www.test").answer[0].ttl <= 86400
    daemon.ask("www.test")
    assert upstream.count("www.test") == (2 if ttl == 0 else 1)


def test_ttl_with_the_top_bit_is_zero(baleen, upstream):
    def high(query, transport):
        data = bytearray(address(ttl=0x12345678)(query, transport).to_wire())
        at = bytes(data).index(b"\x12\x34\x56\x78")
        data[at] = 0x80
        return bytes(data)
    upstream.on["www.test"] = high
    daemon = baleen(upstream=upstream)
    for _ in range(2):
        assert daemon.ask("www.test").answer[0].ttl == 0
    assert upstream.count("www.test") == 2


def test_failures_are_not_kept(baleen, upstream):
    upstream.on["www.test"] = [fails("SERVFAIL")] * 2 + [address()]
    daemon = baleen(upstream=upstream)
    assert daemon.ask("www.test").rcode() == dns.rcode.SERVFAIL
    assert wait_for(lambda: addresses(daemon.ask("www.test")) == ["192.0.2.1"], 20, 0.5)


def test_stale_when_no_upstream_answers(baleen, upstream):
    """RFC 8767: an expired answer is better than none; the client is told (EDE 3), TTL 30."""
    upstream.on["www.test"] = [address(ttl=1)] + [silent]
    daemon = baleen(upstream=upstream, config={"cache": {"size": "8MiB", "stale": "1h"}})
    assert addresses(daemon.ask("www.test")) == ["192.0.2.1"]
    time.sleep(2.2)
    result = daemon.ask("www.test")
    assert addresses(result) == ["192.0.2.1"], result
    assert 3 in [code for code, _ in edes(result)]
    assert 0 < result.answer[0].ttl <= 30
    assert daemon.events(2)[-1]["cache"] == "stale"


def test_stale_is_replaced_when_upstream_is_back(baleen, upstream):
    upstream.on["www.test"] = [address("192.0.2.1", ttl=1), fails("SERVFAIL"),
                               address("192.0.2.2")]
    daemon = baleen(upstream=upstream, config={"cache": {"size": "8MiB", "stale": "1h"}})
    daemon.ask("www.test")
    time.sleep(2.2)
    assert wait_for(lambda: addresses(daemon.ask("www.test")) == ["192.0.2.2"], 40, 0.5)


def test_an_outage_is_not_made_worse_by_stale_names(baleen, upstream):
    upstream.on["www.test"] = [address(ttl=1)] + [silent]
    daemon = baleen(upstream=upstream, config={"cache": {"size": "8MiB", "stale": "1h"}})
    daemon.ask("www.test")
    time.sleep(2.2)
    daemon.ask("www.test")
    before = upstream.count("www.test")
    end = time.monotonic() + 2
    asked = 0
    while time.monotonic() < end:
        assert addresses(daemon.ask("www.test")) == ["192.0.2.1"]
        asked += 1
    assert asked > 50
    assert upstream.count("www.test") - before <= 20


def test_no_stale_when_not_wanted(baleen, upstream):
    upstream.on["www.test"] = [address(ttl=1)] + [silent]
    daemon = baleen(upstream=upstream, config={"cache": {"size": "8MiB", "stale": "0s"}})
    daemon.ask("www.test")
    time.sleep(2.2)
    assert daemon.ask("www.test").rcode() == dns.rcode.SERVFAIL


def test_min_and_max_ttl(baleen, upstream):
    upstream.on["low.test"] = address(ttl=1)
    upstream.on["high.test"] = address(ttl=90000)
    daemon = baleen(upstream=upstream,
                    config={"cache": {"size": "8MiB", "min-ttl": "60s", "max-ttl": "1h"}})
    daemon.ask("low.test")
    time.sleep(2.1)
    daemon.ask("low.test")
    assert upstream.count("low.test") == 1
    assert daemon.ask("high.test").answer[0].ttl <= 3600


def test_cd_is_part_of_the_key(baleen, upstream):
    """What was fetched with CD set is not served to clients that want it checked."""
    import dns.message
    from wire import question, udp_exchange
    upstream.on["bogus.test"] = lambda q, t: (
        address()(q, t) if q.flags & dns.flags.CD else fails("SERVFAIL")(q, t))
    daemon = baleen(upstream=upstream)
    ask = question("bogus.test")
    ask.flags |= dns.flags.CD
    assert addresses(dns.message.from_wire(udp_exchange(ask.to_wire(), daemon.port))) == ["192.0.2.1"]
    assert daemon.ask("bogus.test").rcode() == dns.rcode.SERVFAIL


def test_do_is_part_of_the_key(baleen, upstream):
    def signed(query, transport):
        rows = ["@ 300 A 192.0.2.1"]
        if query.ednsflags & dns.flags.DO:
            rows.append("@ 300 RRSIG A 8 2 300 20300101000000 20200101000000 1 test. YWJj")
        return answer(*rows)(query, transport)
    upstream.default = signed
    daemon = baleen(upstream=upstream)
    for _ in range(2):
        assert len(daemon.ask("www.test", dnssec=True).answer) == 2
        assert len(daemon.ask("www.test").answer) == 1


def test_ad_only_for_those_who_ask(baleen, upstream):
    def authenticated(message):
        message.flags |= dns.flags.AD
    upstream.default = answer("@ 300 A 192.0.2.1", also=authenticated)
    daemon = baleen(upstream=upstream)
    for _ in range(2):
        assert not daemon.ask("www.test").flags & (dns.flags.AD | dns.flags.AA)
        assert daemon.ask("www.test", dnssec=True).flags & dns.flags.AD


def test_options_of_upstream_and_of_others_are_not_replayed(baleen, upstream):
    def with_options(message):
        message.use_edns(0, options=[dns.edns.GenericOption(10, b"12345678abcdefgh"),
                                     dns.edns.GenericOption(65002, b"x")])
    upstream.default = answer("@ 300 A 192.0.2.1", also=with_options)
    daemon = baleen(upstream=upstream)
    for _ in range(2):
        assert not daemon.ask("www.test").options
        assert daemon.ask("www.test", edns=False).edns == -1


def test_types_are_apart(baleen, upstream):
    upstream.on["www.test"] = lambda q, t: (
        address("2001:db8::5")(q, t) if q.question[0].rdtype == 28 else address()(q, t))
    daemon = baleen(upstream=upstream)
    for _ in range(2):
        assert addresses(daemon.ask("www.test", "A")) == ["192.0.2.1"]
        assert addresses(daemon.ask("www.test", "AAAA")) == ["2001:db8::5"]


def test_survives_a_reload_and_a_lost_upstream(baleen, upstream):
    upstream.on["www.test"] = [address(ttl=300), silent]
    daemon = baleen(upstream=upstream)
    daemon.ask("www.test")
    daemon.reload()
    assert addresses(daemon.ask("www.test")) == ["192.0.2.1"]
    assert upstream.count("www.test") == 1


def test_no_cache(baleen, upstream):
    daemon = baleen(upstream=upstream, config={"cache": {"size": "0"}})
    for _ in range(3):
        assert addresses(daemon.ask("www.test")) == ["192.0.2.1"]
    assert upstream.count("www.test") == 3


def test_small_cache_overflows_gracefully(baleen, upstream):
    upstream.default = delayed(0, address())
    daemon = baleen(upstream=upstream, config={"cache": {"size": "1MiB"}})
    for i in range(3000 // PATIENCE):
        assert addresses(daemon.ask(f"n{i}.test")) == ["192.0.2.1"]
