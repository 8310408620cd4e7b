# SPDX-License-Identifier: Apache-2.0
"""What a blocked query gets, in every form, whatever type, transport and family asked for it."""

import dns.flags
import dns.rcode
import dns.rdatatype
import pytest

from ports import ADDRESSES
from wire import addresses, check_blocked, edes, silent, soa

TYPES = ["A", "AAAA", "HTTPS", "TXT", "SRV", "MX", "CAA", "ANY", "TYPE65280"]

FORMS = {
    "nxdomain": "nxdomain",
    "nodata": "nodata",
    "zero": "zero-ip",
    "refused": "refused",
    "drop": "drop",
    "truncate": "truncate",
    "cname": {"cname": "www.test"},
    "page": {"a": "192.0.2.80", "aaaa": "2001:db8::80", "ttl": "77s"},
}


@pytest.fixture(scope="module")
def baleen(shared_baleen, knot):
    rules = [{"block": [f"{name}.form.test"], "answer": form} for name, form in FORMS.items()]
    rules += [
        {"block": ["asked.test"], "ede": 17, "ede-text": "you asked for it"},
        {"block": ["=exact.test"]},
        {"block": ["*.under.test"]},
        {"allow": ["good.mixed.test"]},
        {"block": ["mixed.test"]},
        {"block": {"feeds": "all"}},
    ]
    return shared_baleen(upstream=knot.endpoint,
                         policies={"default": {"group": "default", "rules": rules}},
                         lists={"ours": "blocked.test\n"})


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])
def test_listed_name(baleen, address, tcp):
    for name in ("blocked.test", "a.b.blocked.test", "BLOCKED.test."):
        check_blocked(baleen.ask(name, address=address, tcp=tcp))


@pytest.mark.parametrize("rdtype", TYPES)
def test_every_type_of_a_listed_name(baleen, rdtype):
    check_blocked(baleen.ask("blocked.test", rdtype))


def test_no_opt_to_a_client_without_edns(baleen):
    answer = baleen.ask("blocked.test", edns=False)
    check_blocked(answer)
    assert answer.edns == -1


def test_do_and_cd_do_not_skip_policy(baleen):
    check_blocked(baleen.ask("blocked.test", dnssec=True))


@pytest.mark.parametrize("name", ["notblocked.test", "blocked.test.evil.test", "www.test"])
def test_a_suffix_is_matched_at_label_boundaries(baleen, name):
    answer = baleen.ask(name)
    assert edes(answer) == []


def test_case_is_kept_as_asked(baleen):
    for name in ("WwW.tEsT", "bLoCkEd.TeSt"):
        answer = baleen.ask(name)
        assert answer.question[0].name.to_text() == name + "."
    # The same answer from the cache, in the second client's own spelling.
    assert baleen.ask("wWw.TeSt").question[0].name.to_text() == "wWw.TeSt."
    assert baleen.ask("wWw.TeSt").answer[0].name.to_text() == "wWw.TeSt."


def test_ede_of_the_rule(baleen):
    answer = baleen.ask("asked.test")
    assert edes(answer) == [(17, "you asked for it")]


def test_nodata(baleen):
    check_blocked(baleen.ask("nodata.form.test"), "NOERROR")


def test_zero_ip(baleen):
    for rdtype, zero in (("A", "0.0.0.0"), ("AAAA", "::")):
        answer = baleen.ask("zero.form.test", rdtype)
        check_blocked(answer, "NOERROR")
        assert addresses(answer) == [zero]
    check_blocked(baleen.ask("zero.form.test", "TXT"), "NOERROR")


def test_refused(baleen):
    answer = baleen.ask("refused.form.test")
    assert answer.rcode() == dns.rcode.REFUSED
    assert [code for code, _ in edes(answer)] == [15]


def test_drop(baleen):
    assert silent(lambda: baleen.ask("drop.form.test", timeout=1))


def test_truncate_sends_real_clients_to_tcp(baleen):
    answer = baleen.ask("truncate.form.test")
    assert answer.flags & dns.flags.TC and not answer.answer
    # Over TCP there is nothing to truncate: the client is real, so the name resolves.
    assert not baleen.ask("truncate.form.test", tcp=True).flags & dns.flags.TC


def test_cname(baleen):
    answer = baleen.ask("cname.form.test")
    assert answer.answer[0].rdtype == dns.rdatatype.CNAME
    assert answer.answer[0][0].target.to_text() == "www.test."
    assert addresses(answer) == ["192.0.2.1"]


def test_addresses(baleen):
    answer = baleen.ask("page.form.test")
    check_blocked(answer, "NOERROR")
    assert addresses(answer) == ["192.0.2.80"] and answer.answer[0].ttl == 77
    assert addresses(baleen.ask("page.form.test", "AAAA")) == ["2001:db8::80"]
    other = baleen.ask("page.form.test", "MX")
    check_blocked(other, "NOERROR")
    assert soa(other).ttl == 77


def test_nodata_where_names_below_must_live(baleen):
    """RFC 8020: NXDOMAIN would deny what lies below."""
    check_blocked(baleen.ask("exact.test"), "NOERROR")
    check_blocked(baleen.ask("mixed.test"), "NOERROR")
    assert edes(baleen.ask("good.mixed.test")) == []
    assert edes(baleen.ask("x.exact.test")) == []


def test_below_only(baleen):
    assert edes(baleen.ask("under.test")) == []
    check_blocked(baleen.ask("x.under.test"))


def test_what_is_not_listed_resolves(baleen):
    assert addresses(baleen.ask("www.test")) == ["192.0.2.1"]
    assert addresses(baleen.ask("www.test", "AAAA")) == ["2001:db8::1"]
    answer = baleen.ask("alias.test")
    assert [r.rdtype for r in answer.answer] == [dns.rdatatype.CNAME, dns.rdatatype.A]
    assert baleen.ask("nope.test").rcode() == dns.rcode.NXDOMAIN
    assert soa(baleen.ask("nope.test")) is not None
    assert not answer.flags & dns.flags.AA and answer.flags & dns.flags.RA
