#!/usr/bin/env python3
"""killed.py SERVER POINTS [alone]: the monitor is killed while a twin is made, the twin is, and
one of those that heal a session is, at points spread over the time of that, from its first
instant on.  The server serves on every time unless it was killed itself; no request is lost,
doubled or wrong, and no copy is left.  `alone`: it was begun without followers."""
import glob
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../takeover"))
from load import Wrong                  # noqa: E402
from session import MVE, Session        # noqa: E402

REPLIES = 40
SPREAD_S = 0.08     # a join, and some time behind it
SEEN_S = 0.5        # a copy that has not come by then was not made


def words(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read()
    except OSError:
        return b""


def copies(said, leader=0):
    """Processes of the server's command, which has its port: nobody else's are these."""
    found = [int(path.split("/")[2]) for path in glob.glob("/proc/[0-9]*/cmdline")]
    return [pid for pid in found if pid != leader and words(pid) == said]


def end_all(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def joining(session):
    return subprocess.Popen([MVE, "follow", session.name], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


def kill_monitor(session, leader, after_s):
    asks = joining(session)
    time.sleep(after_s)
    session.mve.kill()
    session.mve.wait()
    asks.wait(30)


def kill_twin(session, leader, after_s):
    said, asks, until = words(leader), joining(session), time.monotonic() + SEEN_S
    while not copies(said, leader) and time.monotonic() < until:
        pass
    time.sleep(after_s)
    end_all(copies(said, leader))
    asks.wait(90)


def kill_healing(session, leader, after_s):
    """Whoever there is but the old leader, from which all is taken, and the new one."""
    said = words(leader)
    os.kill(leader, signal.SIGSEGV)
    session.wait_for(lambda: session.leader()["pid"] != leader, "another leads")
    time.sleep(after_s)
    end_all(pid for pid in copies(said, session.leader()["pid"]) if pid != leader)


def none_left(said, leader=0, seconds=20):
    end = time.monotonic() + seconds
    while copies(said, leader):
        if time.monotonic() > end:
            raise Wrong(f"copies are left: {copies(said, leader)}")
        time.sleep(0.05)


def point(kind, alone, kill, after_s):
    heals = kill is kill_healing
    session = Session(kind, 0 if alone or heals else 1, ("--spare", "1") if heals else ())
    leader = session.leader()["pid"]
    said = words(leader)
    try:
        if not alone and not heals:
            subprocess.run([MVE, "drop", session.name, "f1"], check=True)
        load = session.load(pause=0.001)
        load.more(REPLIES)
        if heals:
            session.wait_for(session.following, "a spare")
        kill(session, leader, after_s)
        load.more(REPLIES)
        if kill is kill_monitor:
            none_left(said, leader)
            load.stop()
            return
        if heals:
            session.wait_for(session.following, "another spare", 90)
        load.more(REPLIES)
        load.stop()
        session.stop()
        none_left(said)
    except Wrong as e:
        raise SystemExit(f"{kill.__name__} after {after_s:.4f} s: {e}\n{session.log()}\n"
                         f"{session.status_text()[:1500]}")
    finally:
        session.clean()
        end_all(copies(said))


def main():
    kind, points, alone = sys.argv[1], int(sys.argv[2]), "alone" in sys.argv[3:]
    for kill in (kill_monitor, kill_twin, kill_healing):
        for n in range(points):
            point(kind, alone, kill, SPREAD_S * (n + random.random()) / points)
        print(f"{kill.__name__}: {points} points", file=sys.stderr)
    print("killed: ok")


main()
