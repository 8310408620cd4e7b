# SPDX-License-Identifier: Apache-2.0
"""The real lists of ../shared/data through `feeds compile`, against a second reading of them.

The reading here is written from the formats' definitions, not from the C code: which lines give
names, which are rejected, and what each name then matches. Names, rejects and lookups must agree.
Skipped where the data is not there.
"""
import collections
import ipaddress
import json
import os
import pathlib
import random
import re
import subprocess

import pytest

import daemon

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data" / "blocklists"
PSL = ROOT.parent / "shared" / "data" / "psl"
BALEEN = os.environ.get("BALEEN", str(pathlib.Path(os.environ.get("B", ROOT / "build")) / "baleen"))

pytestmark = [
    pytest.mark.skipif(not DATA.is_dir(), reason="the real lists are not beside the checkout"),
    pytest.mark.skipif(not os.access(BALEEN, os.X_OK), reason="baleen is not built"),
]

LOCAL = {"localhost", "localhost.localdomain", "localhost4", "localhost4.localdomain4",
         "localhost6", "localhost6.localdomain6", "localdomain", "local", "broadcasthost"}
NAME = re.compile(r"[A-Za-z0-9_.\-]+\Z")

Rule = collections.namedtuple("Rule", "name how")  # how: exact, subtree, below


class Reading:
    def __init__(self):
        self.rules = collections.defaultdict(set)  # name -> hows
        self.rejects = collections.Counter()

    def reject(self, reason):
        self.rejects[reason] += 1

    def add(self, text, how):
        """One name, with the checks that every format shares."""
        if is_address(text):
            return self.reject("address")
        if not text or not NAME.match(text):
            return self.reject("name")
        name = text.lower()
        name = name[:-1] if name.endswith(".") else name
        if name == "" or name in LOCAL or re.match(r"ip6-[^.]+\Z", name):
            return self.reject("local")
        labels = name.split(".")
        if any(not 0 < len(label) < 64 for label in labels) or len(name) > 253:
            return self.reject("name")
        if len(labels) == 1 or (how != "exact" and is_icann_suffix(name)):
            return self.reject("suffix")
        self.rules[name].add(how)


def is_address(text):
    text = text.split("%")[0]
    try:
        ipaddress.ip_network(text, strict=False)
        return True
    except ValueError:
        return False


_suffixes = None


def is_icann_suffix(name):
    """Section ICANN of the public suffix list, as publicsuffix.org defines the algorithm; a name
    without any rule is none here."""
    global _suffixes
    if _suffixes is None:
        _suffixes = set()
        for path in ("/usr/share/publicsuffix/public_suffix_list.dat",
                     *map(str, PSL.glob("**/public_suffix_list.dat"))):
            if not os.path.exists(path):
                continue
            icann = False
            for line in open(path, encoding="utf-8"):
                if "===BEGIN ICANN" in line:
                    icann = True
                elif "===END ICANN" in line:
                    icann = False
                elif icann and line.strip() and not line.startswith("//"):
                    rule = line.split()[0]
                    try:
                        _suffixes.add(".".join(
                            p if p.isascii() else p.encode("idna").decode()
                            for p in rule.split(".")))
                    except UnicodeError:
                        pass
            break
        else:
            pytest.skip("no public suffix list to compare with")
    if "!" + name in _suffixes:
        return False
    parent = name.split(".", 1)[1] if "." in name else ""
    return name in _suffixes or "*." + parent in _suffixes


def lines_of(path):
    return re.split(r"\r\n|\n|\r", path.read_bytes().decode("utf-8-sig"))


def read_hosts(path):
    reading = Reading()
    for line in lines_of(path):
        words = line.split("#")[0].split()
        if not words:
            continue
        if not is_address(words[0]) or len(words) < 2:
            reading.reject("syntax")
            continue
        address = ipaddress.ip_address(words[0].split("%")[0])
        blocks = address.is_unspecified or address.is_loopback
        for word in words[1:]:
            if blocks:
                reading.add(word, "exact")
            elif word.lower() in LOCAL or re.match(r"ip6-[^.]+\Z", word.lower()):
                reading.reject("local")
            else:
                reading.reject("redirect")
    return reading


def read_domains(path):
    reading = Reading()
    for line in lines_of(path):
        words = line.split("#")[0].split()
        if not words or words[0].startswith(";"):
            continue
        if len(words) > 1 and not words[1].startswith(";"):
            reading.reject("syntax")
        elif words[0].startswith("*.") and len(words[0]) > 2:
            reading.add(words[0][2:], "below")
        else:
            reading.add(words[0][1:] if words[0].startswith(".") else words[0], "subtree")
    return reading


COSMETIC = re.compile(r"#@?\??#|#@?\$\??#|#\$\?#|#@?%#|\$\$|\$@\$")


def read_adblock(path):
    """Blocking rules only: the lists at hand have no exceptions that apply."""
    reading = Reading()
    for line in lines_of(path):
        line = line.strip()
        if not line or line[0] == "!" or (line[0] == "[" and line[-1] == "]"):
            continue
        if COSMETIC.search(line):
            reading.reject("cosmetic")
            continue
        if line[0] == "#":
            continue
        words = line.split("#")[0].split()
        if len(words) > 1:
            reading.reject("syntax")
            continue
        exception = words[0].startswith("@@")
        words[0] = words[0].removeprefix("@@")
        if "#" in line and not NAME.match(words[0]):
            reading.reject("syntax")
            continue
        pattern, dollar, modifiers = words[0].partition("$")
        rule = re.fullmatch(r"(\|\|?)?(\*\.)?([^|^*/]+?)(\^)?(\|)?", pattern)
        start, star, name, caret, bar = rule.groups() if rule else (None,) * 5
        bad = (not rule or name.endswith(".") or (":" in name and not is_address(name))
               or (star and start == "|")
               or (not start and not star and (caret or bar)))
        if bad:
            reading.reject("unsupported")
        elif dollar and modifiers != "important":
            reading.reject("modifier")
        else:
            assert not exception, "an exception that applies: this reading does not know them"
            reading.add(name, "below" if star else "subtree" if start == "||" else "exact")
    return reading


def read_dnsmasq(path):
    reading = Reading()
    for line in lines_of(path):
        line = re.sub(r"(^|\s)#.*", "", line).strip()
        if not line:
            continue
        key, _, value = line.partition("=")
        if key in ("server", "local", "address") and value.startswith("/"):
            *names, target = value[1:].split("/")
            assert target == "", "a target: this reading does not know them"
            for name in names:
                reading.add(name, "subtree")
        else:
            assert key == "bogus-nxdomain", line
            reading.reject("unsupported")
    return reading


def read_unbound(path):
    reading = Reading()
    for line in lines_of(path):
        if not line.strip():
            continue
        name, = re.fullmatch(r'local-zone: "([^"]*)" always_nxdomain', line).groups()
        reading.add(name, "subtree")
    return reading


def read_rpz(path):
    """A zone that never says how it is called, of QNAME triggers alone."""
    reading = Reading()
    for line in lines_of(path):
        words = line.split(";")[0].split()
        if not words or words[0] == "$TTL" or "SOA" in words or "NS" in words:
            continue
        assert words[1:] == ["CNAME", "."] and not words[0].endswith("."), line
        if words[0].startswith("*."):
            reading.add(words[0][2:], "below")
        else:
            reading.add(words[0], "exact")
    return reading


READERS = {"hosts": read_hosts, "domains": read_domains, "adblock": read_adblock,
           "dnsmasq": read_dnsmasq, "unbound": read_unbound, "rpz": read_rpz}


# Refused as a whole: not one name in them.
NO_NAMES = {"china-bogus-nxdomain.conf"}


def real_lists():
    for folder, reader in READERS.items():
        for path in sorted((DATA / folder).rglob("*")):
            if path.is_file() and path.name not in NO_NAMES:
                yield folder, path


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    lists = [(folder, path, READERS[folder](path)) for folder, path in real_lists()]
    assert len(lists) >= 10
    out = tmp_path_factory.mktemp("sets") / "all.mdb"
    run = subprocess.run([BALEEN, "feeds", "compile", "--json", "-o", str(out)] +
                         [str(path) for _, path, _ in lists],
                         capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    return out, json.loads(run.stdout), lists


def lookup(set_path, name):
    run = subprocess.run([BALEEN, "feeds", "lookup", name, "--set", str(set_path), "--json"],
                         capture_output=True, text=True, timeout=60)
    assert run.returncode in (0, 1), run.stderr
    answer = json.loads(run.stdout)
    assert answer["found"] == (run.returncode == 0)
    return answer


def expected(lists, name):
    """By brute force: every (feed, entry, how) that takes the name in."""
    labels = name.split(".")
    found = set()
    for _, path, reading in lists:
        feed = path.name.split(".")[0]
        for i in range(len(labels)):
            entry = ".".join(labels[i:])
            for how in reading.rules.get(entry, ()):
                if how == "subtree" or how == ("exact" if i == 0 else "below"):
                    found.add((feed, entry + ".", how))
    return found


def test_names_and_rejects_agree(compiled):
    _, report, lists = compiled
    by_name = {feed["name"]: feed for feed in report["feeds"]}
    assert len(by_name) == len(lists)
    for folder, path, reading in lists:
        feed = by_name[path.name.split(".")[0]]
        assert feed["format"] == folder, path.name
        assert feed["names"] == len(reading.rules), path.name
        assert feed["rejects"] == dict(reading.rejects), path.name
    union = set().union(*(reading.rules for _, _, reading in lists))
    assert report["names"] == len(union)
    assert report["entries"] == sum(len(reading.rules) for _, _, reading in lists)
    # A sanitizer keeps what was freed, so its peak says nothing of ours.
    assert 0 < report["peak_mib"] and (daemon.SANITIZED or report["peak_mib"] < 64)


def test_lookups_agree(compiled):
    set_path, _, lists = compiled
    rng = random.Random(20260101)
    listed = sorted(set().union(*(reading.rules for _, _, reading in lists)))
    names = rng.sample(listed, 60)
    names += ["sub." + n for n in rng.sample(listed, 30)]
    names += [n.split(".", 1)[1] for n in rng.sample(listed, 30)]
    names += ["x" + n for n in rng.sample(listed, 20)]
    names += ["example.com", "www.wikipedia.org", "com", "co.uk"]
    for name in names:
        got = {(m["feed"], m["entry"], m["match"]) for m in lookup(set_path, name)["matches"]}
        assert got == expected(lists, name), name


def test_same_lists_same_octets_in_any_order(compiled, tmp_path):
    set_path, _, lists = compiled
    paths = [str(path) for _, path, _ in lists]
    again = tmp_path / "again.mdb"
    subprocess.run([BALEEN, "feeds", "compile", "-o", str(again)] + paths[::-1], check=True,
                   capture_output=True, timeout=600)
    assert again.read_bytes() == set_path.read_bytes()
