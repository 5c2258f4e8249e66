#!/usr/bin/env python3
"""killed.py N: a leader that has crashed is killed a moment later, N times: its follower leads and
serves, or the session ends.  It does not lead without what the leader had."""
import os
import random
import signal
import socket
import sys
import time

from load import Wrong
from session import Session

LEAST_US, MOST_US = 150, 500    # from the crash on: the descriptors are fetched in that time


def serves(session):
    try:
        with socket.create_connection(("127.0.0.1", session.port), 2) as peer:
            peer.settimeout(2)
            peer.sendall(b"GET a\n")
            return bool(peer.recv(100))
    except OSError:
        return False


def one():
    session = Session("kv")
    try:
        session.wait_for(session.following, "it follows")
        pid = session.leader()["pid"]
        os.kill(pid, signal.SIGSEGV)
        until = time.perf_counter() + random.randint(LEAST_US, MOST_US) / 1e6
        while time.perf_counter() < until:
            pass
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        end = time.monotonic() + 20
        while not session.mve_ended() and not (session.ended(pid, 0.1) and serves(session)):
            if time.monotonic() > end:
                raise Wrong(f"nobody serves, and it does not end\n{session.log()}")
            time.sleep(0.01)
        return session.mve_ended()
    finally:
        session.clean()


def main():
    n = int(sys.argv[1])
    try:
        ended = sum(one() for _ in range(n))
    except Wrong as e:
        raise SystemExit(str(e))
    print(f"{n} killed, {ended} sessions ended", file=sys.stderr)
    print("killed: ok")


main()
