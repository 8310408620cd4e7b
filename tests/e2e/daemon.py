# SPDX-License-Identifier: Apache-2.0
"""The real daemon in a folder of its own: writes its files, starts it, watches its output, stops it.

Configuration and policies given as dicts are written as JSON, which is YAML.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

from ports import ADDRESSES, bracketed, free_port
from wire import query

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("B", ROOT / "build")).resolve()
PROGRAM = BUILD / "baleen"
SANITIZED = b"__asan_init" in PROGRAM.read_bytes() if PROGRAM.exists() else False
PATIENCE = 3 if SANITIZED else 1  # sanitizers are slow; so may the machine be
AS_ROOT = os.geteuid() == 0
REPORT = re.compile(r"AddressSanitizer|LeakSanitizer|runtime error:|stack smashing|assertion", re.I)


def wait_for(what, seconds=10, every=0.05):
    """Call `what` until it gives something true; gives that back. The last value on time-out."""
    end = time.monotonic() + seconds * PATIENCE
    while True:
        value = what()
        if value or time.monotonic() > end:
            return value
        time.sleep(every)


class Daemon:
    def __init__(self, folder, upstream=None, policies=None, lists=None, config=None, text=None,
                 user="nobody", wrapper=()):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.user = user
        self.wrapper = list(wrapper)
        self.program = PROGRAM
        self.process = None
        self.output = []
        self.crash_expected = False
        self.config = {
            "listen": [{"address": bracketed(a, self.port)} for a in ADDRESSES],
            "workers": 2,
            "upstreams": {"default": {"servers": [], "timeout": "2s"}},
            "cache": {"size": "8MiB"},
            "plugins": ["blocklist", {"logging": {"file": "log/queries.log"}}],
            "feeds": [],
            "policies": "policies/",
            "state": "state",
            "control": "control.sock",
            "user": user,
        }
        if upstream is not None:
            servers = upstream if isinstance(upstream, list) else [upstream]
            self.config["upstreams"]["default"]["servers"] = [
                s if isinstance(s, str) else s.endpoint for s in servers]
        for name, content in (lists or {}).items():
            self.write(f"lists/{name}.txt", content)
            self.config["feeds"].append(
                {"name": name, "file": f"lists/{name}.txt", "format": "domains"})
        (self.folder / "policies").mkdir(exist_ok=True)
        for name, content in (policies or {}).items():
            self.write(f"policies/{name}.yaml", content)
        self.config.update(config or {})
        self.config_file = self.folder / "baleen.yaml"
        self.save(text)

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
        return path

    def save(self, text=None):
        self.write("baleen.yaml", self.config if text is None else text)

    @property
    def state(self):
        return self.folder / "state"

    # ---- life ----

    def start(self, ready=True, seconds=20):
        self.output = []
        env = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "detect_leaks=0")}
        self.process = subprocess.Popen(
            [*self.wrapper, str(self.program), "run", "-c", str(self.config_file)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True, env=env)
        self.reader = threading.Thread(target=self._read, args=(self.process.stdout, self.output),
                                       daemon=True)
        self.reader.start()
        if ready:
            up = wait_for(lambda: self.said("ready: ") or self.process.poll() is not None, seconds)
            assert up and self.process.poll() is None, "not ready:\n" + self.log()
        return self

    @staticmethod
    def _read(pipe, output):
        for line in pipe:
            output.append(line.decode("utf-8", "backslashreplace").rstrip("\n"))

    def said(self, text, since=0):
        return [line for line in list(self.output)[since:] if text in line]

    def log(self):
        return "\n".join(self.output)

    def stop(self, code=0):
        if self.process is None:
            return
        process, self.process = self.process, None
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(15 * PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise AssertionError("does not stop:\n" + self.log())
        self.reader.join(5)
        assert process.returncode == code, f"exit {process.returncode}:\n{self.log()}"
        if not self.crash_expected:
            assert not REPORT.search(self.log()), self.log()

    # ---- use ----

    def ask(self, name, rdtype="A", **how):
        return query(name, rdtype, port=self.port, **how)

    def run(self, *words, code=0, stdin=None):
        """A client command with this configuration; `code` None: any."""
        done = subprocess.run([str(self.program), *words, "-c", str(self.config_file)],
                              capture_output=True, text=True, input=stdin, timeout=60)
        output = done.stdout + done.stderr
        assert not REPORT.search(output), output
        if code is not None:
            assert done.returncode == code, f"{words}: exit {done.returncode}\n{output}"
        return done

    def json(self, *words, code=0):
        return json.loads(self.run(*words, "--json", code=code).stdout)

    def status(self):
        return self.json("status")

    def reload(self, code=0):
        return self.run("reload", code=code)

    def events(self, count=1, seconds=5, where=lambda event: True):
        """The logging plugin's events so far; waits for `count` of those that `where` holds for."""
        def read():
            path = self.state / "log/queries.log"
            lines = path.read_text().splitlines() if path.exists() else []
            found = [e for e in map(json.loads, lines) if where(e)]
            return found if len(found) >= count else None
        found = wait_for(read, seconds)
        assert found, f"fewer than {count} events\n{self.log()}"
        return found

    def processes(self):
        """Process ids below the supervisor, by title."""
        found = {}
        children = {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                stat = (entry / "stat").read_text()
                title = (entry / "cmdline").read_bytes().split(b"\0")[0].decode()
            except OSError:
                continue
            parent = int(stat[stat.rindex(")") + 2:].split()[1])
            children.setdefault(parent, []).append((int(entry.name), title))
        waiting = [self.process.pid]
        while waiting:
            for pid, title in children.get(waiting.pop(), []):
                found.setdefault(title, []).append(pid)
                waiting.append(pid)
        return found

    def workers(self):
        return sorted(pid for title, pids in self.processes().items() if "worker" in title
                      for pid in pids)

