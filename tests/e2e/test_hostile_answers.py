# SPDX-License-Identifier: Apache-2.0
"""Answers made to slip a blocked name past the policy, and answers made to break who reads them."""

import dns.rrset
import pytest

from upstream import ScriptedUpstream, reply
from wire import check_blocked

POLICY = {"default": {"group": "default", "rules": [
    {"block": ["bad.example"]}, {"block": {"answers": ["203.0.113.0/24"]}}]}}


def records(*rows):
    """A behaviour: the records exactly as given, in their order."""
    def act(query, transport):
        message = reply(query)
        if transport == "udp" and len(rows) > 12:
            message.flags |= 0x0200
            return message
        for row in rows:
            owner, ttl, rdtype, *rdata = row.split()
            message.answer.append(dns.rrset.from_text(owner, int(ttl), "IN", rdtype, " ".join(rdata)))
        return message
    return act


def chain(first, hops, last):
    names = [first] + [f"h{i}.test." for i in range(hops)] + [last]
    return [f"{a} 60 CNAME {b}" for a, b in zip(names, names[1:])] + [f"{last} 60 A 192.0.2.66"]


@pytest.fixture(scope="module")
def world(shared_baleen):
    upstream = ScriptedUpstream()
    yield shared_baleen(upstream=upstream, policies=POLICY), upstream
    upstream.stop()


@pytest.mark.parametrize("hops", [1, 16, 17, 30, 100])
def test_a_long_cname_chain_hides_no_blocked_target(world, hops):
    daemon, upstream = world
    name = f"long{hops}.test"
    upstream.on[name] = records(*chain(name + ".", hops, "x.bad.example."))
    for _ in range(2):
        check_blocked(daemon.ask(name))


@pytest.mark.parametrize("count", [17, 60, 300])
def test_many_service_records_hide_no_blocked_target(world, count):
    daemon, upstream = world
    name = f"svc{count}.test"
    upstream.on[name] = records(
        *[f"{name}. 60 HTTPS {i + 1} t{i}.test." for i in range(count)],
        f"{name}. 60 HTTPS {count + 1} x.bad.example.")
    for _ in range(2):
        check_blocked(daemon.ask(name, "HTTPS"))


@pytest.mark.parametrize("count", [17, 60, 300])
def test_many_service_records_hide_no_blocked_hint(world, count):
    daemon, upstream = world
    name = f"hint{count}.test"
    upstream.on[name] = records(
        *[f"{name}. 60 HTTPS {i + 1} t{i}.test." for i in range(count)],
        f"{name}. 60 HTTPS {count + 1} . ipv4hint=203.0.113.5")
    for _ in range(2):
        check_blocked(daemon.ask(name, "HTTPS"))


def beside(section, *rows, asked):
    """A behaviour: a harmless record, and others in a section that answers are not read from."""
    def act(query, transport):
        message = records(asked)(query, transport)
        for row in rows:
            owner, ttl, rdtype, *rdata = row.split()
            getattr(message, section).append(
                dns.rrset.from_text(owner, int(ttl), "IN", rdtype, " ".join(rdata)))
        return message
    return act


@pytest.mark.parametrize("section", ["authority", "additional"])
@pytest.mark.parametrize("rdtype, asked", [
    ("HTTPS", "beside.test. 60 HTTPS 1 svc.test."),
    ("SRV", "beside.test. 60 SRV 1 1 443 x.bad.example."),
    ("MX", "beside.test. 60 MX 1 x.bad.example."),
    ("NS", "beside.test. 60 NS x.bad.example.")])
def test_no_address_slips_by_beside_the_answer(world, section, rdtype, asked):
    daemon, upstream = world
    name = f"{section}.{rdtype}.test".lower()
    upstream.on[name] = beside(
        section, "svc.test. 60 A 203.0.113.5", "x.bad.example. 60 A 192.0.2.66",
        f"{name}. 60 CNAME x.bad.example.", asked=asked.replace("beside.test", name))
    for _ in range(2):
        answer = daemon.ask(name, rdtype)
        assert len(answer.answer) == 1, answer
        assert not answer.authority and not answer.additional, answer
