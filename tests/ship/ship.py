#!/usr/bin/env python3
"""ship.py CASE...: a session is shipped over NATS JetStream, and followed from there.

equal		kv under load; two followers, one from the beginning, one that comes late
restarted	the NATS server is killed and started again under load, and so is mve-ship
gone		the NATS server never comes, then goes for good: the leader serves on
"""
import os
import shutil
import signal
import sys

from nats import Leader, MVE, Nats, Session, build, equal, fail, needed, until

SUBJECT = f"mve.test-{os.getpid()}"


def follow(nats, name, *more):
    return Session(f"follow-{name}", "follow", "--from", nats.url(SUBJECT), "-n",
                   f"ship-f-{os.getpid()}-{name}", *more)


def spools():
    folder = os.environ["XDG_CACHE_HOME"] + "/mve/spool"
    return os.listdir(folder) if os.path.isdir(folder) else []


def equal_case():
    nats = Nats("nats-equal")
    first = follow(nats, "first")
    first.waits("no stream has the subject")
    leader = Leader(nats.url(SUBJECT))
    leader.load(500)
    late = follow(nats, "late")
    leader.load(500)
    leader.stop()
    calls = [equal(f.end()) for f in (first, late)]
    if calls[0] < 4000 or calls[0] != calls[1]:
        fail(f"{calls} calls")
    nats.kill()
    if spools():
        fail(f"left behind: {spools()}")


def child_named(pid, name):
    for p in os.listdir("/proc"):
        try:
            with open(f"/proc/{p}/stat") as f:
                words = f.read().rsplit(")", 1)
            if words[0].split("(", 1)[1] == name and int(words[1].split()[1]) == pid:
                return int(p)
        except (OSError, ValueError, IndexError):
            pass
    return None


def restarted():
    nats = Nats("nats-restarted")
    leader = Leader(nats.url(SUBJECT))
    follower = follow(nats, "cut")
    leader.load(200)
    for turn in range(3):
        nats.kill()
        leader.load(300)
        nats.start()
        leader.load(300)
        if turn == 1:
            os.kill(until(lambda: child_named(leader.process.pid, "mve-ship"), "no mve-ship"),
                    signal.SIGKILL)
        leader.load(100)
        until(lambda: '"waiting": 0' in leader.status(), "what waits is not shipped")
    leader.stop()
    calls = equal(follower.end())
    if calls < 8400:
        fail(f"{calls} calls")
    nats.kill()
    if spools():
        fail(f"left behind: {spools()}")


def main():
    needed()
    os.environ["XDG_CACHE_HOME"] = os.path.abspath("cache")
    build("kv")
    cases = {"equal": equal_case, "restarted": restarted}
    for name in sys.argv[1:]:
        cases[name]()
        print(f"{name}: ok")


main()
