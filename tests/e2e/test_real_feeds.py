# SPDX-License-Identifier: Apache-2.0
"""The real threat feeds of ../shared/data through `feeds compile`, against a second reading of them
with Python's own csv and json. Names and rejects by reason must agree. Skipped where the data is not
there.
"""
import bz2
import csv
import gzip
import io
import json
import re
import subprocess
import urllib.parse
import zipfile

import pytest

from test_real_lists import BALEEN, DATA, Reading, is_address, pytestmark  # noqa: F401

FEEDS = DATA.parent / "feeds"
DIGEST = re.compile(r"([0-9a-fA-F]{32}|[0-9a-fA-F]{40}|[0-9a-fA-F]{64}|[0-9a-fA-F]{128})\Z")


class Indicators(Reading):
    def indicator(self, text, how, url_how="exact"):
        text = re.sub(r"[\[({]([.:])[\])}]", r"\1", text.strip())
        if is_address(text):
            return self.reject("address")
        if "/" in text:
            parts = urllib.parse.urlsplit(text if "://" in text else "x://" + text)
            host = parts.netloc.rpartition("@")[2]
            host = re.sub(r":\d*\Z", "", host).strip("[]")
            if is_address(host):
                return self.reject("address")
            if parts.path not in ("", "/") or re.search(r"[?#\\@]", text):
                return self.reject("url")
            return self.add(host, url_how)
        if "@" in text or DIGEST.match(text):
            return self.reject("unsupported")
        if text.count(":") == 1:
            text = re.sub(r":\d+\Z", "", text)
        if text.startswith("*."):
            return self.add(text[2:], "below")
        if text.startswith("."):
            return self.add(text[1:], "subtree")
        return self.add(text, how)

    def add(self, text, how):
        if not text.isascii():
            try:
                text = text.encode("idna").decode()
            except UnicodeError:
                return self.reject("name")
        return super().add(text, how)


def read_csv(path, column, separator=","):
    reading = Indicators()
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    header = None
    if lines[0].startswith("#"):
        header = [line for line in lines if line.startswith("#") and column in line][0]
        header = header.removeprefix("#fields\t").lstrip("# ")
        header = next(csv.reader([header], delimiter=separator))
        lines = [line for line in lines if not line.startswith("#")]
    rows = csv.reader(lines, skipinitialspace=separator == ",", delimiter=separator)
    index = (header or next(rows)).index(column)
    for row in rows:
        if not row:
            continue
        if index >= len(row):
            reading.reject("syntax")
        else:
            reading.indicator(row[index], "exact")
    return reading


def read_misp(path):
    reading = Indicators()
    event = json.loads(path.read_text())
    attributes = list(event["Attribute"])
    for item in event["Object"]:
        attributes += item["Attribute"]
    for a in attributes:
        if a["type"] in ("domain", "hostname", "url") and a["to_ids"] is True:
            reading.indicator(a["value"], "exact")
        else:
            reading.reject("unsupported")
    return reading


def read_warninglist(path):
    reading = Indicators()
    for name in json.loads(path.read_text())["list"]:
        reading.indicator(name, "exact")
    return reading


def read_stix(path):
    """Patterns of one comparison: the feeds at hand have no others."""
    reading = Indicators()
    for thing in json.loads(path.read_text())["objects"]:
        if thing["type"] != "indicator":
            continue
        assert not thing.get("revoked") and "valid_until" not in thing
        kind, value = re.fullmatch(r"\[([^=]+?)\s*=\s*'((?:[^'\\]|\\.)*)'\]", thing["pattern"]).groups()
        if kind == "domain-name:value":
            reading.indicator(re.sub(r"\\(.)", r"\1", value), "exact")
        else:
            reading.reject("unsupported")
    return reading


def read_path(path, key):
    reading = Indicators()
    for name in json.loads(path.read_text())[key]:
        reading.indicator(name, "exact")
    return reading


CASES = {
    "threatfox/threatfox-full-excerpt-2024.csv": ("csv", lambda p: read_csv(p, "ioc_value"), []),
    "urlhaus/urlhaus-2025.csv": ("csv", lambda p: read_csv(p, "url"), []),
    "stalkerware/network.csv": ("csv", lambda p: read_csv(p, "indicator"), []),
    "infoblox/combined.csv": ("csv", lambda p: read_csv(p, "indicator"), []),
    "zeek-intel/cps-collected-iocs.intel": ("csv", lambda p: read_csv(p, "indicator", "\t"), []),
    "zeek-intel/doh-domains.intel": ("csv", lambda p: read_csv(p, "indicator", "\t"), []),
    "stalkerware/misp_event.json": ("misp", read_misp, []),
    "stalkerware/stalkerware.stix2": ("stix", read_stix, []),
    "amnesty/2021-07-18_nso/pegasus.stix2": ("stix", read_stix, []),
    "amnesty/2021-12-16_cytrox/cytrox.stix2": ("stix", read_stix, []),
    "crypto/polkadot-all.json": ("json", lambda p: read_path(p, "deny"),
                                 ["--format", "json", "--path", "deny[]"]),
}
for name in ("cisco_top20k", "dynamic-dns", "public-dns-hostname"):
    CASES[f"misp-warninglists/{name}/list.json"] = ("misp", read_warninglist, [])
for found in sorted((FEEDS / "infoblox" / "csv").glob("*.csv")):
    CASES[f"infoblox/csv/{found.name}"] = ("csv", lambda p: read_csv(p, "indicator"), [])


def compile_lists(tmp_path, options, *paths):
    return subprocess.run([BALEEN, "feeds", "compile", "--json", "-o", str(tmp_path / "out.mdb"),
                           *options, *map(str, paths)], capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("case", CASES)
def test_names_and_rejects_agree(case, tmp_path):
    form, read, options = CASES[case]
    reading = read(FEEDS / case)
    run = compile_lists(tmp_path, options, FEEDS / case)
    if not reading.rules:
        assert run.returncode == 1
        assert f"0 of {sum(reading.rejects.values())} accepted" in run.stderr
        return
    assert run.returncode == 0, run.stderr
    feed, = json.loads(run.stdout)["feeds"]
    assert feed["format"] == form
    assert feed["rejects"] == dict(reading.rejects)
    assert feed["names"] == len(reading.rules)


def zipped(data):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("list.csv", data)
    return out.getvalue()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, zipped])
def test_packed_is_the_same(pack, tmp_path):
    path = FEEDS / "infoblox" / "combined.csv"
    packed = tmp_path / "combined.csv.x"
    packed.write_bytes(pack(path.read_bytes()))
    plain = json.loads(compile_lists(tmp_path, [], path).stdout)
    again = json.loads(compile_lists(tmp_path, [], packed).stdout)
    for report in (plain, again):
        for volatile in ("seconds", "peak_mib"):
            report.pop(volatile)
    assert again == plain
