#!/usr/bin/env python3
"""The server's process sleeps, or is killed, between being asked for its copy and having it: mve
follow says so, and a server that lives goes on as soon as that is known, with its next twin.
strace holds its thread, or kills it, where it is handed what the copy is to have.
A server that crashes before its copy follows has no successor, and mve says that the
copy has not begun to follow."""
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../takeover"))
from load import Wrong                                  # noqa: E402
from session import MVE, Session                        # noqa: E402

RECVMSG = 47


def follow(session, *more):
    return subprocess.run([MVE, "follow", session.name, *more], capture_output=True, text=True,
                          timeout=120)


def traced(pid, call, inject):
    tracer = subprocess.Popen(["strace", "-f", "-o", "trace", "-e", f"trace={call}", "-e",
                               f"inject={call}:{inject}", "-p", str(pid)],
                              stderr=subprocess.PIPE, text=True)
    while "attached" not in (line := tracer.stderr.readline()):
        if not line:
            raise Wrong("strace does not attach")
    return tracer


def crashes(session):
    """Before its copy follows, which is held where it is about to."""
    leader = session.leader()["pid"]
    tracer = traced(leader, "setsid", "delay_enter=60000000")
    asks = subprocess.Popen([MVE, "follow", session.name], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)
    session.wait_for(lambda: len(session.versions()) > 1 and
                     session.versions()[-1]["role"] == "starting", "a copy that does not follow")
    os.kill(leader, signal.SIGSEGV)
    session.mve.wait(60)
    asks.wait(60)
    tracer.terminate()
    tracer.wait(20)
    if not re.search(r"v0 crashed: SIGSEGV.*; twin\d+ does not go on in its place: "
                     "it has not begun to follow\n", session.log()):
        raise Wrong(session.log())


def held(pid):
    """It is where it is handed what the copy is to have, or has ended there."""
    try:
        with open(f"/proc/{pid}/syscall", encoding="ascii") as f:
            return f.read().startswith(f"{RECVMSG} ")
    except (FileNotFoundError, ProcessLookupError):
        return True


def refused(session, inject, words):
    pid = session.leader()["pid"]
    tracer = traced(pid, "recvmsg", inject)
    done = follow(session, "--wait", "0")
    # strace stops it twice at each of its calls: its time may be over before it comes there.
    while "does not stand" in done.stderr and not held(pid):
        done = follow(session, "--wait", "0")
    tracer.terminate()
    tracer.wait(20)
    if done.returncode != 1 or not re.search(words, done.stderr):
        raise Wrong(f"{inject}: {done.returncode}: {done.stdout}{done.stderr}")


def main():
    session = Session("kv", 1)
    try:
        load = session.load(pause=0.001)
        # Its time may be over when strace holds it there.
        refused(session, "delay_enter=60000000",
                "does not come to have a copy in time|does not stand: it (is stopped|runs)")
        load.more(40)
        done = follow(session)
        if done.returncode:
            raise Wrong(f"{done.stdout}{done.stderr}")
        load.stop()
        refused(session, "signal=KILL", "process \\d+ has ended")
    finally:
        session.clean()
    session = Session("kv", 1)
    try:
        subprocess.run([MVE, "drop", session.name, "f1"], check=True)
        crashes(session)
    finally:
        session.clean()
    print("copying: ok")


main()
