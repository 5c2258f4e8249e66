#!/usr/bin/env python3
"""Who does not stand is named: a server of which a thread is stopped has no twin, on its way to
company and in company, and mve follow says which thread, and what it is in."""
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../takeover"))
from load import Wrong                                  # noqa: E402
from session import MVE, Session                        # noqa: E402


def follow(session, *more):
    return subprocess.run([MVE, "follow", session.name, *more], capture_output=True, text=True,
                          timeout=120)


def refused(session):
    pid = session.leader()["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        while "are being looked at" in (done := follow(session, "--wait", "0")).stderr:
            pass        # of the time before it is made to stand
    finally:
        os.kill(pid, signal.SIGCONT)
    words = f"thread \\d+ of process {pid} does not stand: it is stopped\n"
    if done.returncode != 1 or not re.search(words, done.stderr):
        raise Wrong(f"{done.returncode}: {done.stdout}{done.stderr}")


def main():
    session = Session("kv", 0)
    try:
        for _ in range(2):      # alone; in company
            refused(session)
            done = follow(session)
            if done.returncode:
                raise Wrong(f"{done.stdout}{done.stderr}")
        session.stop()
    finally:
        session.clean()
    print("straggler: ok")


main()
