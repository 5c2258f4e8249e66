#!/usr/bin/env python3
"""half.py: the leader stands in the middle of what it tells, for longer than --still, as under a
debugger or without a processor.  A follower that has read all there is of it sleeps meanwhile, and
is not to be taken for one that does not move."""
import ctypes
import json
import os
import signal
import subprocess
import sys
import time

MVE = os.environ["MVE"]
NAME = os.environ["MVE_SESSION"]
STILL_MS = 1000
COMES_S = 120       # for what hangs
TRIES = 200         # to hold it there

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 17, 0x4206, 0x4207, 0x40000000


def wrong(words):
    subprocess.run([MVE, "report", NAME], check=False)
    print(f"half: {words}")
    sys.exit(1)


def versions():
    done = subprocess.run([MVE, "status", NAME, "--json"], capture_output=True, check=False)
    return json.loads(done.stdout)["versions"] if not done.returncode else []


def follower():
    row = versions()[1]
    if row["role"] != "follower":
        wrong(f"the follower is lost: {row['why']}")
    return row


def wait_for(what, words):
    end = time.monotonic() + COMES_S
    while not what():
        if time.monotonic() > end:
            wrong(f"not in {COMES_S} s: {words}")
        time.sleep(0.02)


def begun():
    rows = versions()
    return len(rows) == 2 and rows[1]["role"] == "follower" and rows[1]["calls"] > 100


def stands():
    """It sleeps, with as much before it as before."""
    before = follower()
    time.sleep(0.2)
    with open(f"/proc/{before['pid']}/stat", encoding="ascii") as stat:
        sleeps = stat.read().rpartition(")")[2].split()[0] == "S"
    return sleeps and before["lag_cells"] == follower()["lag_cells"]


def ptrace(request, pid, data=0):
    if ctypes.CDLL(None, use_errno=True).ptrace(request, pid, None, ctypes.c_void_p(data)) < 0:
        wrong(f"ptrace: {os.strerror(ctypes.get_errno())}")


def hold(leader):
    """As a debugger does; the signal that it met it at, if any."""
    ptrace(PTRACE_SEIZE, leader)
    ptrace(PTRACE_INTERRUPT, leader)
    sig = os.WSTOPSIG(os.waitpid(leader, WALL)[1])
    return 0 if sig == signal.SIGTRAP else sig


def held_in_the_middle(leader):
    for _ in range(TRIES):
        sig = hold(leader)
        wait_for(stands, "the follower sleeps")
        if follower()["lag_cells"]:
            return sig
        ptrace(PTRACE_DETACH, leader, sig)
        time.sleep(0.003)
    wrong(f"never in the middle of an event, in {TRIES} times")


def main():
    # A megabyte is told by each of its calls, in many pieces: more than a disk may take.
    server = subprocess.Popen([MVE, "run", "-n", NAME, "--still", str(STILL_MS), "--when-full",
                               "block", "-f", "same", "--", "dd", "if=/dev/zero", "of=/dev/null",
                               "bs=1M", "status=none"])
    try:
        wait_for(begun, "it follows")
        leader = versions()[0]["pid"]
        sig = held_in_the_middle(leader)
        time.sleep(4 * STILL_MS / 1000)
        had = follower()["calls"]
        ptrace(PTRACE_DETACH, leader, sig)
        wait_for(lambda: follower()["calls"] > had, "it goes on")
    finally:
        subprocess.run([MVE, "stop", NAME, "--kill"], capture_output=True, check=False)
        server.wait(COMES_S)
    print("half: ok")


main()
