# SPDX-License-Identifier: Apache-2.0
"""Groups, rule order, answers that are looked at, monitoring, options that differ for a group."""

import itertools

import dns.rcode
import pytest

from upstream import address, answer
from wire import addresses, check_blocked, edes

DEFAULT, OTHER, THIRD = "127.0.0.1", "127.0.0.2", "127.0.0.3"


def group(name, rules, **more):
    return {"group": name, "rules": rules, **more}


# ---- who ----

def test_longest_prefix_wins_over_all_files(baleen, upstream):
    daemon = baleen(upstream=upstream, policies={
        "default": group("default", [{"block": ["default.test"]}]),
        "wide": group("wide", [{"block": ["wide.test"]}], clients=["127.0.0.0/16"]),
        "narrow": group("narrow", [{"block": ["narrow.test"]}], clients=["127.0.0.2/31"]),
        "one": group("one", [{"block": ["one.test"]}], clients=["127.0.0.3"]),
        "v6": group("v6", [{"block": ["v6.test"]}], clients=["::1"]),
    })
    for source, mine in (("127.0.0.1", "wide"), ("127.0.0.2", "narrow"), ("127.0.0.3", "one"),
                         ("127.1.0.1", "default")):
        for name in ("default", "wide", "narrow", "one"):
            blocked = daemon.ask(f"{name}.test", source=source).rcode() == dns.rcode.NXDOMAIN
            assert blocked == (name == mine), (source, name)


def test_group_by_listener(baleen, upstream):
    from ports import free_port
    daemon = baleen(start=False, upstream=upstream, policies={
        "lab": group("lab", [{"block": ["www.test"]}], clients=["listener:lab"])})
    lab = free_port()
    daemon.config["listen"].append({"address": f"127.0.0.1:{lab}", "name": "lab"})
    daemon.save()
    daemon.start()
    assert addresses(daemon.ask("www.test")) == ["192.0.2.1"]
    own, daemon.port = daemon.port, lab
    check_blocked(daemon.ask("www.test"))
    daemon.port = own


# ---- two groups, one name, every order ----

ORDERS = list(itertools.permutations(["default", "other", "default-tcp"]))


@pytest.mark.parametrize("order", ORDERS, ids=lambda o: ",".join(o))
def test_two_groups_in_every_cache_order(baleen_two, order):
    daemon, upstream = baleen_two
    # A fresh name for each order, by question and by the alias's target.
    number = ORDERS.index(order)
    for stem in ("listed", "cloaked"):
        name = f"{stem}.n{number}.test"
        upstream.on[name] = (address() if stem == "listed" else
                             answer("@ 300 CNAME beacon.tracker.test.",
                                    "beacon.tracker.test. 300 A 192.0.2.1"))
        for who in order + order:
            tcp = who.endswith("tcp")
            if who == "other":
                check_blocked(daemon.ask(name, source=OTHER))
            else:
                assert "192.0.2.1" in addresses(daemon.ask(name, tcp=tcp)), (who, name)


@pytest.fixture(scope="module")
def baleen_two(shared_baleen):
    from upstream import ScriptedUpstream
    server = ScriptedUpstream()
    yield shared_baleen(upstream=server, policies={
        "default": group("default", []),
        "other": group("other", [{"block": ["tracker.test"]}] +
                       [{"block": [f"listed.n{i}.test"]} for i in range(len(ORDERS))],
                       clients=[OTHER])}), server
    server.stop()


# ---- order ----

def test_first_match_wins(baleen, upstream):
    daemon = baleen(upstream=upstream, lists={"ours": "ads.test\n"}, policies={
        "default": group("default", [
            {"allow": ["good.ads.test", "=ads.test"]},
            {"block": {"feeds": ["ours"]}},
            {"allow": ["bad.ads.test"]},
            {"block": ["late.test"], "answer": "nodata"},
            {"block": ["late.test"], "answer": "refused"},
        ])})
    assert edes(daemon.ask("x.good.ads.test")) == []
    assert edes(daemon.ask("ads.test")) == []
    check_blocked(daemon.ask("bad.ads.test"))
    check_blocked(daemon.ask("late.test"), "NOERROR")


def test_allow_only_does_not_mean_deny_the_rest(baleen, upstream):
    daemon = baleen(upstream=upstream, policies={
        "default": group("default", [{"allow": ["good.test"]}])})
    assert addresses(daemon.ask("unlisted.test")) == ["192.0.2.1"]


def test_types_and_names_are_anded(baleen, upstream):
    daemon = baleen(upstream=upstream, policies={
        "default": group("default", [
            {"block": {"names": ["a.test", "b.test"], "types": ["AAAA", "TYPE65280"]}},
            {"block": {"types": ["ANY"]}, "answer": "refused"}])})
    # NODATA, for NXDOMAIN would deny the types that are not blocked.
    check_blocked(daemon.ask("b.test", "AAAA"), "NOERROR")
    check_blocked(daemon.ask("a.test", "TYPE65280"), "NOERROR")
    assert addresses(daemon.ask("a.test", "A")) == ["192.0.2.1"]
    assert daemon.ask("c.test", "ANY").rcode() == dns.rcode.REFUSED


def test_categories(baleen, upstream):
    daemon = baleen(start=False, upstream=upstream, policies={
        "default": group("default", [{"block": {"categories": ["malware", "phishing"]}}])},
        lists={"one": "m.test\n", "two": "t.test\n"})
    daemon.config["feeds"][0]["category"] = "malware"
    daemon.config["feeds"][1]["category"] = "tracking"
    daemon.save()
    daemon.start()
    check_blocked(daemon.ask("m.test"))
    assert edes(daemon.ask("m.test"))[0][1] == "malware"
    assert addresses(daemon.ask("t.test")) == ["192.0.2.1"]


def test_without_policies_all_feeds_block(baleen, upstream):
    daemon = baleen(start=False, upstream=upstream, lists={"one": "m.test\n", "two": "t.test\n"})
    del daemon.config["policies"]
    daemon.save()
    daemon.start()
    check_blocked(daemon.ask("m.test"))
    check_blocked(daemon.ask("t.test"))


def test_extends(baleen, upstream):
    daemon = baleen(upstream=upstream, policies={
        "default": group("default", [{"block": ["ads.test"]}]),
        "kids": group("kids", [{"block": ["games.test"]}, {"allow": ["ok.ads.test"]}],
                      clients=[OTHER], extends="default")})
    check_blocked(daemon.ask("games.test", source=OTHER))
    check_blocked(daemon.ask("ads.test", source=OTHER), "NOERROR")  # ok.ads.test lives below
    assert addresses(daemon.ask("ok.ads.test", source=OTHER)) == ["192.0.2.1"]
    check_blocked(daemon.ask("ok.ads.test"))


def test_unicode_names(baleen, upstream):
    daemon = baleen(upstream=upstream, policies={
        "default": group("default", [{"block": ["MÜNCHEN.test", "=имя.test."]}])})
    check_blocked(daemon.ask("www.xn--mnchen-3ya.test"))
    check_blocked(daemon.ask("имя.test"), "NOERROR")


# ---- rewriting ----

def test_rewrite(baleen, upstream):
    upstream.on["safe.test"] = address("192.0.2.99")
    daemon = baleen(upstream=upstream, policies={
        "default": group("default", [{"block": ["evil.test"]}]),
        "kids": group("kids", [{"rewrite": {"names": ["=www.search.test"], "to": "safe.test"}},
                               {"rewrite": {"names": ["=bad.test"], "to": "x.evil.test"}},
                               {"block": ["evil.test"]}], clients=[OTHER])})
    for _ in ("cold", "warm"):
        result = daemon.ask("www.search.test", source=OTHER)
        assert result.answer[0].name.to_text() == "www.search.test."
        assert result.answer[0][0].target.to_text() == "safe.test."
        assert addresses(result) == ["192.0.2.99"]
        assert addresses(daemon.ask("www.search.test")) == ["192.0.2.1"]
    # The new name is judged as well.
    assert "192.0.2.1" not in addresses(daemon.ask("bad.test", source=OTHER))
    assert upstream.count("x.evil.test") == 0


# ---- answers ----

@pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])
def test_cloaked_name_is_blocked_every_time(baleen, knot, tcp):
    """First, second, third time; after the target was asked; after the first TTL ran out."""
    daemon = baleen(upstream=knot.endpoint, policies={
        "default": group("default", [{"block": ["beacon.tracker.test"], "answer": "zero-ip"}])})
    for _ in range(3):
        result = daemon.ask("cloak.test", tcp=tcp)
        check_blocked(result, "NOERROR")
        assert addresses(result) == ["0.0.0.0"]
    check_blocked(daemon.ask("beacon.tracker.test", tcp=tcp), "NOERROR")
    check_blocked(daemon.ask("cloak.test", tcp=tcp), "NOERROR")
    event = daemon.events(4, where=lambda e: e["name"] == "cloak.test.")
    assert {(e["verdict"], e["hop"], e["match"]) for e in event} == {
        ("block", "cname", "beacon.tracker.test.")}


def test_cloaked_name_when_the_target_was_asked_first(baleen, knot):
    daemon = baleen(upstream=knot.endpoint, lists={"ours": "tracker.test\n"})
    check_blocked(daemon.ask("tracker.test"))
    for _ in range(3):
        check_blocked(daemon.ask("cloak.test"))


def test_https_target_is_looked_at(baleen, knot):
    daemon = baleen(upstream=knot.endpoint, lists={"ours": "tracker.test\n"})
    for _ in range(2):
        check_blocked(daemon.ask("svcalias.test", "HTTPS"))
    assert daemon.ask("svc.test", "HTTPS").answer


def test_allow_on_the_asked_name_covers_its_targets(baleen, knot):
    daemon = baleen(upstream=knot.endpoint, lists={"ours": "tracker.test\n"}, policies={
        "default": group("default", [{"allow": ["cloak.test"]}, {"block": {"feeds": "all"}}])})
    for _ in range(2):
        assert addresses(daemon.ask("cloak.test")) == ["203.0.113.5"]
    check_blocked(daemon.ask("tracker.test"))


def test_rules_over_answers(baleen, knot):
    daemon = baleen(upstream=knot.endpoint, policies={
        "default": group("default", [
            {"block": {"answers": ["203.0.113.0/24", "2001:db8::20/128"]}},
            {"block": {"answers": ["10.0.0.0/8"]}, "answer": "nodata"}])})
    for _ in ("cold", "warm"):
        check_blocked(daemon.ask("tracker.test"))
        check_blocked(daemon.ask("cloak.test"))
        check_blocked(daemon.ask("inside.test"), "NOERROR")
        assert addresses(daemon.ask("twoaddr.test")) == ["192.0.2.10", "192.0.2.11"]


def test_hints_are_addresses_too(baleen, knot):
    daemon = baleen(upstream=knot.endpoint, policies={
        "default": group("default", [{"block": {"answers": ["192.0.2.20/32"]}}])})
    for _ in range(2):
        check_blocked(daemon.ask("svc.test", "HTTPS"))


def test_question_rules_decide_first_and_ask_nobody(baleen, upstream):
    daemon = baleen(upstream=upstream, policies={
        "default": group("default", [
            {"block": {"answers": ["192.0.2.0/24"]}, "answer": "refused"},
            {"block": ["bad.test"]}])})
    check_blocked(daemon.ask("bad.test"))
    assert upstream.count("bad.test") == 0
    assert daemon.ask("other.test").rcode() == dns.rcode.REFUSED


def test_many_cname_hops(baleen, upstream):
    """The denied name stands at the end of a long chain, in a large answer."""
    rows = [f"n{i}.chain.test. 300 CNAME n{i + 1}.chain.test." for i in range(15)]
    upstream.on["start.test"] = answer("@ 300 CNAME n0.chain.test.", *rows,
                                       "n15.chain.test. 300 CNAME evil.test.",
                                       "evil.test. 300 A 192.0.2.1")
    daemon = baleen(upstream=upstream, lists={"ours": "evil.test\n"})
    for _ in range(2):
        result = daemon.ask("start.test", tcp=True)
        assert "192.0.2.1" not in addresses(result)
        assert result.rcode() in (dns.rcode.NXDOMAIN, dns.rcode.SERVFAIL)


# ---- monitoring ----

def test_monitor_rules_only_record(baleen, upstream):
    daemon = baleen(upstream=upstream, lists={"ours": "ads.test\n"}, policies={
        "default": group("default", [{"monitor": {"feeds": ["ours"]}},
                                     {"block": ["x.ads.test"]}])})
    assert addresses(daemon.ask("ads.test")) == ["192.0.2.1"]
    check_blocked(daemon.ask("x.ads.test"))
    event = daemon.events(1, where=lambda e: e["name"] == "ads.test.")[0]
    assert event["verdict"] == "allow"
    assert [(w["plugin"], w["verdict"]) for w in event["would"]] == [("blocklist", "block")]
    assert event["would"][0]["rule"].startswith("policies/default.yaml:")


def test_plugin_in_monitor_mode(baleen, upstream):
    daemon = baleen(upstream=upstream, lists={"ours": "ads.test\n"}, config={
        "plugins": [{"blocklist": {"mode": "monitor"}}, {"logging": {"file": "log/queries.log"}}]})
    assert addresses(daemon.ask("ads.test")) == ["192.0.2.1"]
    event = daemon.events(1)[0]
    assert event["verdict"] == "allow" and event["would"][0]["plugin"] == "blocklist"


def test_shadow_feed_blocks_nothing(baleen, upstream):
    daemon = baleen(start=False, upstream=upstream, lists={"ours": "ads.test\n"})
    daemon.config["feeds"][0]["mode"] = "shadow"
    daemon.save()
    daemon.start()
    assert addresses(daemon.ask("ads.test")) == ["192.0.2.1"]


# ---- plugins and their options ----

def threat_daemon(baleen, upstream, **options):
    daemon = baleen(start=False, upstream=upstream,
                    lists={"sure": "sure.test\n", "maybe": "maybe.test\n"},
                    policies={"default": group("default", []),
                              "off": group("off", [], clients=[OTHER],
                                           plugins={"threatfeed": False}),
                              "keen": group("keen", [], clients=[THIRD],
                                            plugins={"threatfeed": {"min-confidence": 10}})},
                    config={"plugins": ["blocklist", {"threatfeed": {"min-confidence": 60, **options}},
                                        {"logging": {"file": "log/queries.log"}}]})
    for feed, confidence in zip(daemon.config["feeds"], (90, 30)):
        feed.update(kind="threat", category="malware", confidence=confidence)
    # `off` is what a user writes; JSON has no such word.
    daemon.write("policies/off.yaml",
                 f"group: off-group\nclients: [{OTHER}]\nrules: []\nplugins:\n  threatfeed: off\n")
    daemon.save()
    return daemon.start()


def test_threatfeed_by_group(baleen, upstream):
    daemon = threat_daemon(baleen, upstream)
    check_blocked(daemon.ask("x.sure.test"))
    assert addresses(daemon.ask("maybe.test")) == ["192.0.2.1"]
    assert addresses(daemon.ask("sure.test", source=OTHER)) == ["192.0.2.1"]
    check_blocked(daemon.ask("sure.test", source=THIRD))
    check_blocked(daemon.ask("maybe.test", source=THIRD))
    event = daemon.events(1, where=lambda e: e["name"] == "x.sure.test.")[0]
    assert (event["plugin"], event["feed"], event["category"]) == ("threatfeed", "sure", "malware")


def test_ratelimit_by_group(baleen, upstream):
    daemon = baleen(upstream=upstream, policies={
        "default": group("default", []),
        "slow": group("slow", [], clients=[OTHER],
                      plugins={"ratelimit": {"queries-per-second": 5, "burst": 5}})},
        config={"plugins": [{"ratelimit": {"queries-per-second": 1000, "burst": 2000}}, "blocklist",
                            {"logging": {"file": "log/queries.log"}}]})

    def served(source):
        from wire import silent
        count = 0
        for i in range(40):
            got = []
            if not silent(lambda: got.append(daemon.ask("www.test", source=source, timeout=0.05))):
                count += bool(got[0].answer)
        return count
    assert served(DEFAULT) >= 38
    assert served(OTHER) <= 25


# ---- when ----

def test_schedule_through_explain(baleen, upstream):
    daemon = baleen(upstream=upstream, policies={
        "default": group("default", [{"block": ["games.test"], "when": {
            "days": "mon-fri", "from": "09:00", "to": "17:00", "timezone": "Europe/Zurich"}}])})
    for at, verdict in (("2026-03-02T10:00:00+01:00", "block"), ("2026-03-02T08:59:00+01:00", "allow"),
                        ("2026-03-02T17:00:00+01:00", "allow"), ("2026-03-01T10:00:00+01:00", "allow")):
        assert daemon.json("explain", "games.test", "--at", at)["verdict"] == verdict, at
