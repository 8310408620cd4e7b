# SPDX-License-Identifier: Apache-2.0
"""Ports that are free for UDP and TCP on both families, and whether there is a second family."""

import itertools
import os
import random
import socket


def _has_v6():
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
            s.bind(("::1", 0))
        return True
    except OSError:
        return False


HAVE_V6 = _has_v6()
ADDRESSES = ["127.0.0.1"] + (["::1"] if HAVE_V6 else [])

# Below the ephemeral range, so that no outgoing socket takes one meanwhile.
_candidates = itertools.cycle(random.Random(os.getpid()).sample(range(12000, 31000), 19000))


def free_port():
    for port in _candidates:
        try:
            for address in ADDRESSES:
                family = socket.AF_INET6 if ":" in address else socket.AF_INET
                for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
                    with socket.socket(family, kind) as s:
                        s.bind((address, port))
            return port
        except OSError:
            continue


def bracketed(address, port):
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
