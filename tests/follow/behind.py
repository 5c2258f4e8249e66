#!/usr/bin/env python3
"""behind.py: a follower whose thread waits for another that is far behind, or computes for long,
is neither out of order nor lost: what it waits for comes."""
import json
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MVE = os.environ.get("MVE", os.path.join(ROOT, "build/mve"))
NAME = os.environ.get("MVE_SESSION", f"behind-{os.getpid()}")
STILL_MS = 1500
COMES_S = 90


def wrong(words):
    subprocess.run([MVE, "report", NAME], check=False)
    print(f"behind: {words}")
    sys.exit(1)


def versions():
    done = subprocess.run([MVE, "status", NAME, "--json"], capture_output=True, check=False)
    return json.loads(done.stdout)["versions"] if not done.returncode else []


def follower():
    rows = versions()
    if len(rows) != 2 or rows[1]["role"] != "follower":
        wrong(f"the follower is lost: {[row['why'] for row in rows]}")
    return rows[1]


def begun():
    rows = versions()
    return len(rows) == 2 and rows[1]["role"] == "follower" and not rows[1]["lag_cells"]


def wait_for(what, words):
    end = time.monotonic() + COMES_S
    while not what():
        if time.monotonic() > end:
            wrong(f"not in {COMES_S} s: {words}")
        time.sleep(0.02)


def met():
    return {w["kind"]: w["met"] for w in follower()["waits"] if w["met"]}


def over():
    """Says so in the follower's memory, where no call of its own can."""
    names = subprocess.run(["nm", "behind"], capture_output=True, check=True, text=True).stdout
    at = next(int(line.split()[0], 16) for line in names.splitlines() if line.endswith(" over"))
    with open(f"/proc/{follower()['pid']}/mem", "r+b", 0) as memory:
        memory.seek(at)
        memory.write(b"x")


def many(order):
    """Its other thread has many events to take, and computes before each."""
    order("m")
    wait_for(lambda: follower()["lag_cells"], "the leader is ahead")
    wait_for(lambda: not follower()["lag_cells"], "it has read all")


def asks(order):
    """It asks something of its own in front of an event that comes behind the other thread's, and
    that thread waits for it, by memory alone."""
    order("q")
    wait_for(lambda: follower()["lag_cells"], "the leader is ahead")
    wait_for(lambda: not follower()["lag_cells"], "it has read all")


def computes(order):
    """Its other thread holds a lock and computes, for longer than --still."""
    order("c")
    wait_for(lambda: follower()["lag_cells"], "the leader is ahead")
    end = time.monotonic() + 3 * STILL_MS / 1000
    while time.monotonic() < end:
        follower()
        time.sleep(0.1)
    over()
    wait_for(lambda: not follower()["lag_cells"], "it has read all")


def session(way):
    server = subprocess.Popen([MVE, "run", "-n", NAME, "--still", str(STILL_MS),
                               "-f", "./behind slow", "--", "./behind", "fast"], stdin=subprocess.PIPE)

    def order(what):
        server.stdin.write(what.encode())
        server.stdin.flush()

    try:
        wait_for(begun, "it begins")
        way(order)
        limits = met()
    finally:
        server.stdin.close()
        status = server.wait(COMES_S)
    if status:
        wrong(f"status {status}")
    return limits


def main():
    subprocess.run(["gcc", "-O1", "-no-pie", "-pthread", "-o", "behind",
                    ROOT + "/tests/follow/behind.c"], check=True)
    for way in many, asks:
        limits = session(way)
        if limits:
            wrong(f"{way.__name__}: a wait came to its limit: {limits}")
    session(computes)
    print("behind: ok")


main()
