# SPDX-License-Identifier: Apache-2.0
"""Load through dnsperf: starts it, and reads its closing report."""

import re
import shutil
import subprocess


class Load:
    def __init__(self, folder, port, rate, seconds, names, clients=8):
        queries = folder / f"queries-{port}.txt"
        queries.write_text("".join(f"{name} A\n" for name in names))
        program = shutil.which("dnsperf") or "/usr/bin/dnsperf"
        self.process = subprocess.Popen(
            [program, "-s", "127.0.0.1", "-p", str(port), "-d", str(queries), "-l", str(seconds),
             "-Q", str(rate), "-c", str(clients), "-q", "500", "-t", "5"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.report = ""

    def finish(self):
        """(sent, lost, {rcode: count})"""
        self.report = self.process.communicate(timeout=120)[0]
        number = {key: int(re.search(rf"Queries {key}:\s+(\d+)", self.report)[1])
                  for key in ("sent", "lost")}
        codes = {word: int(count) for word, count in
                 re.findall(r"([A-Z]+) (\d+) \(", self.report)}
        return number["sent"], number["lost"], codes
