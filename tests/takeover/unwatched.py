#!/usr/bin/env python3
"""unwatched.py ROUNDS: the monitor is killed at a random moment of a failover or of a
promotion.  Whatever serves then is what `mve ps` shows: a server that answers is never
forgotten, and mve stop ends it."""
import os
import random
import signal
import subprocess
import sys
import time

from load import Wrong
from session import MVE, Session


def answers(session):
    try:
        load = session.load()
        load.more(3)
        load.stop()
        return True
    except Exception:       # nobody listens, or the connection breaks
        return False


def ps(session):
    done = subprocess.run([MVE, "ps"], capture_output=True, text=True, timeout=20)
    return next((l for l in done.stdout.splitlines() if l.split()[0] == session.name), "")


def first_reply(session, leader):
    """The moment in which another serves, as its client sees it."""
    before = time.monotonic()
    while time.monotonic() < before + 5:
        try:
            with open(f"/proc/{leader}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] in "ZX":
                    break
        except OSError:
            break
        try:
            load = session.load()
            load.more(1)
        except Exception:
            pass


def one_round(n):
    session = Session("kv", 1)
    rows = session.versions()
    pids = [v["pid"] for v in rows]
    asker = None
    try:
        if n % 2:
            os.kill(pids[0], signal.SIGSEGV)
        else:
            asker = subprocess.Popen([MVE, "promote", session.name, "f1"],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if n % 4 < 2:
            time.sleep(random.uniform(0, 0.03))
        else:
            first_reply(session, pids[0])
        session.mve.kill()
        session.mve.wait()
        if asker:
            asker.wait(30)
        serves = answers(session)
        line = ps(session)
        if serves and "unwatched" not in line:
            raise Wrong(f"round {n}: it serves, and ps says {line!r}\n{session.log()}")
        if serves:
            done = subprocess.run([MVE, "stop", session.name, "--kill"], capture_output=True,
                                  text=True, timeout=60)
            if done.returncode or answers(session):
                raise Wrong(f"round {n}: stop: {done.stderr}")
        return serves
    finally:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        session.clean()
        ps(session)


def main():
    try:
        served = sum(one_round(n) for n in range(int(sys.argv[1])))
    except Wrong as e:
        raise SystemExit(str(e))
    print(f"{served} of {sys.argv[1]} served on", file=sys.stderr)
    print("unwatched: ok")


if __name__ == "__main__":
    main()
