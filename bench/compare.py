#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Baleen against the bare responder: CPU microseconds a query of the serving process, in pairs.

One worker on the first CPU, the generator on the second, closed loop, rounds interleaved. The
figure to read is the ratio: machines differ, and a noisy neighbour hits both sides of a round.
Scenarios: cached (10,000 clean names), blocked (10,000 listed names), mix (90 % and 10 %).
Prints a table, writes bench/results/compare.json.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def cpu_seconds(pid):
    """From schedstat: nanoseconds on the CPU, user and system together."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0]) / 1e9


def children(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child)] + children(int(child))
    return found


def title(pid):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()


def pin(pids, cpu):
    for pid in pids:
        try:
            os.sched_setaffinity(pid, {cpu})
        except OSError:
            pass


def load(program, port, names, seconds, cpu):
    command = [program, "-s", "127.0.0.1", "-p", str(port), "-f", names, "-d", str(seconds),
               "-w", "128", "-c", "4"]
    out = subprocess.run(command, check=True, capture_output=True, text=True,
                         preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
    return json.loads(out.stdout)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--build", default="build")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--listed", type=int, default=200_000, help="names on the list")
    a = p.parse_args()
    build = pathlib.Path(a.build).resolve()
    programs = build / "bench"
    cpus = sorted(os.sched_getaffinity(0))
    server_cpu, load_cpu = cpus[0], cpus[-1]
    work = pathlib.Path(tempfile.mkdtemp(prefix="baleen-bench-"))
    random.seed(1)

    clean = [f"{random.choice('abcdefgh')}{i}.site{i % 3000}.example" for i in range(10_000)]
    listed = [f"ads{i}.tracker{i % 40_000}.test" for i in range(a.listed)]
    (work / "list.txt").write_text("\n".join(listed) + "\n")
    blocked = random.sample(listed, 10_000)
    mix = [blocked[i] if i % 10 == 0 else clean[i] for i in range(10_000)]
    streams = {"cached": clean, "blocked": blocked, "mix": mix}
    for name, names in streams.items():
        (work / f"{name}.q").write_text("".join(f"{n} A\n" for n in names))

    bare_port, upstream_port, port = free_port(), free_port(), free_port()
    started = []
    try:
        for bare in (bare_port, upstream_port):
            started.append(subprocess.Popen([programs / "bare", "127.0.0.1", str(bare)],
                                            stdout=subprocess.PIPE))
            started[-1].stdout.readline()
        bare_pid = started[0].pid
        pin([bare_pid], server_cpu)
        (work / "baleen.yaml").write_text(f"""
listen: [{{address: "127.0.0.1:{port}"}}]
workers: 1
user: nobody
upstreams: {{default: {{servers: ["127.0.0.1:{upstream_port}"]}}}}
cache: {{size: 64MiB}}
plugins:
  - ratelimit: {{queries-per-second: 1000000, burst: 10000000}}
  - blocklist
  - threatfeed
  - logging: {{file: log/queries.log}}
feeds: [{{name: bench, file: list.txt, format: domains}}]
state: state
control: {work}/control.sock
""")
        daemon = subprocess.Popen([build / "baleen", "run", "-c", work / "baleen.yaml"],
                                  stdout=subprocess.PIPE, stderr=open(work / "log", "wb"))
        started.append(daemon)
        line = daemon.stdout.readline()
        if not line.startswith(b"ready"):
            sys.exit(f"baleen did not start: {(work / 'log').read_text()}")
        family = children(daemon.pid)
        workers = [pid for pid in family if "worker" in title(pid)]
        pin(workers, server_cpu)
        pin([pid for pid in family if pid not in workers], load_cpu)
        for name in streams:
            load(programs / "load", port, work / f"{name}.q", 1, load_cpu)

        rounds = {name: [] for name in streams}
        for _ in range(a.rounds):
            for name in streams:
                row = {}
                for side, pids, target in (("bare", [bare_pid], bare_port),
                                           ("baleen", workers, port)):
                    everyone = pids if side == "bare" else [daemon.pid] + children(daemon.pid)
                    before = sum(map(cpu_seconds, pids)), sum(map(cpu_seconds, everyone))
                    result = load(programs / "load", target, work / f"{name}.q", a.seconds, load_cpu)
                    after = sum(map(cpu_seconds, pids)), sum(map(cpu_seconds, everyone))
                    row[side] = {"us": (after[0] - before[0]) / result["answered"] * 1e6,
                                 "us_all": (after[1] - before[1]) / result["answered"] * 1e6,
                                 **result}
                row["ratio"] = row["baleen"]["us"] / row["bare"]["us"]
                row["ratio_all"] = row["baleen"]["us_all"] / row["bare"]["us"]
                rounds[name].append(row)

        model = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo", encoding="ascii")
                      if l.startswith("model name")), "unknown")
        print(f"{os.cpu_count()} CPUs, {model}; {a.rounds} rounds of {a.seconds} s, medians (min to max)")
        print(f"{'scenario':9} {'bare us':>18} {'worker us':>18} {'ratio':>20} {'all processes':>20} lost")
        for name, rows in rounds.items():
            def span(values):
                return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"
            print(f"{name:9} {span([r['bare']['us'] for r in rows]):>18}"
                  f" {span([r['baleen']['us'] for r in rows]):>18}"
                  f" {span([r['ratio'] for r in rows]):>20}"
                  f" {span([r['ratio_all'] for r in rows]):>20}"
                  f" {sum(r['baleen']['lost'] for r in rows)}")
        results = pathlib.Path("bench/results")
        results.mkdir(exist_ok=True)
        (results / "compare.json").write_text(json.dumps(
            {"machine": model, "cpus": os.cpu_count(), "rounds": rounds}, indent=1) + "\n")
    finally:
        for process in reversed(started):
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=15)
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
