#!/usr/bin/env python3
"""rollback.py MVE MVE_CC ROOT [CRASHES]: mve run --rollback takes requests back.

servers/kv with bugs, built by mve-cc, alone and with a follower: of CRASHES requests that fail
among ten times as many good ones each bad one closes its own connection and is counted, each good
one is answered once, memory does not grow, and what is stored is as if they had never been: also
in the follower, which leads at last.
"""
import json
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE + "/../takeover")
from rollback_session import Session, Wrong, build  # noqa: E402

MVE, CC, ROOT = sys.argv[1:4]
CRASHES = int(sys.argv[4]) if len(sys.argv) > 4 else 100
BAD = ["CRASH", "ABORT"]


def load(s, crashes):
    """What is stored at the end, as a dict."""
    peers = [s.connect() for _ in range(5)]
    kept, early = {}, 0
    for n in range(crashes * 10):
        if n % 10 == 5:
            s.bad(BAD[n // 10 % len(BAD)])
        peer, key = peers[n % 5], f"key-{n % 200}"
        if n % 3 == 2 and key in kept:
            s.ask(peer, f"GET {key}", f"VALUE {kept[key]}")
        else:
            kept[key] = n
            s.ask(peer, f"PUT {key} {n}", "OK")
        if n == crashes * 2:
            early = s.memory()
    for peer in peers:
        peer.setblocking(False)
        try:
            raise Wrong(f"more than was asked for: {peer.recv(100)!r}")
        except BlockingIOError:
            pass
    grown = s.memory() - early
    if grown > 2048:
        raise Wrong(f"grown by {grown} KiB")
    return kept


def check(s, kept):
    peer = s.connect()
    for key, value in kept.items():
        s.ask(peer, f"GET {key}", f"VALUE {value}")


def descriptors(s):
    return len(os.listdir(f"/proc/{s.server()}/fd"))


def alone():
    s = Session(MVE, ["--rollback"], ["./kv", "0"])
    early = descriptors(s)
    kept = load(s, CRASHES)
    check(s, kept)
    s.counted(CRASHES)
    time.sleep(0.2)
    if descriptors(s) > early + 8:
        raise Wrong(f"descriptors: {early} at first, {descriptors(s)} then")
    report = s.report()
    if "the request: " not in report or report.count("  #") < 3:
        raise Wrong(f"the report says {report!r}")
    s.end()


def followed():
    s = Session(MVE, ["--rollback", "-f", "same"], ["./kv", "0"])
    kept = load(s, CRASHES)
    s.counted(CRASHES)
    s.follows()
    subprocess.run([MVE, "promote", s.name, "f1"], check=True, timeout=60)
    check(s, kept)
    s.bad("CRASH")
    check(s, kept)
    s.end()


def main():
    if not os.access(CC, os.X_OK):
        print("mve-cc is not built")
        sys.exit(77)
    build(CC, ROOT, "kv", "-DKV_CRASH", "-DKV_ABORT")
    for name in ("alone", "followed"):
        globals()[name]()
        print(name + ": ok", flush=True)


try:
    main()
except Wrong as e:
    sys.exit(f"rollback: {e}")
