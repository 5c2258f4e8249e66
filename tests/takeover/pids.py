#!/usr/bin/env python3
"""A server with processes in a pid namespace of its own, as in a container: no follower leads
while there are any, which is said before anything is done, and no twin is made."""
import os
import signal
import subprocess
import sys
import tempfile

from load import Wrong
from session import MVE, Session, free_port, kv_build

WHY = "processes in another pid namespace"


def refused(session):
    done = subprocess.run([MVE, "promote", session.name, "f1"], capture_output=True, text=True,
                          timeout=60)
    if done.returncode != 1 or WHY not in done.stderr:
        raise Wrong(f"promote: {done.returncode}: {done.stderr}\n{session.log()}")
    if session.leader()["name"] != "v0" or session.following() != ["f1"]:
        raise Wrong(session.status_text())
    session.load().more(20)


def child(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return int(file.read().split()[0])


def child_apart(hold):
    """Until then nothing is against a follower that leads."""
    for pid in subprocess.run(["pgrep", "-f", hold], capture_output=True).stdout.split():
        try:
            if os.readlink(b"/proc/%s/ns/pid" % pid) != os.readlink(b"/proc/self/ns/pid"):
                return True
        except FileNotFoundError:
            pass    # it has ended
    return False


def inner(kv):
    """The server is in it: its crash is what it is without followers."""
    port = free_port()
    session = Session("kv", port=port, command=[
        "unshare", "-p", "-f", "sh", "-c", f"{kv} {port}; exit 7"])
    try:
        if "no follower leads while it has a process there" not in session.log():
            raise Wrong(session.log())
        refused(session)
        # Not the namespace's first one, which no such signal ends.
        os.kill(child(child(session.leader()["pid"])), signal.SIGSEGV)
        if session.mve.wait(30) != 7 or "does not go on in its place" not in session.log():
            raise Wrong(session.log())
    finally:
        session.clean()


def beside(kv):
    """A child is in it; once that has ended a follower leads."""
    port, hold = free_port(), f"{os.getcwd()}/hold"
    os.mkfifo(hold)
    session = Session("kv", port=port, command=[
        "sh", "-c", f"unshare -p -f sh -c 'read line <{hold}' & exec {kv} {port}"])
    try:
        session.wait_for(lambda: child_apart(hold), "its child")
        refused(session)
        with open(hold, "w") as file:
            file.write("\n")
        session.wait_for(lambda: not subprocess.run(
            [MVE, "promote", session.name, "f1", "--wait=60"], capture_output=True).returncode,
            "promoted, once the child has ended")
        if session.leader()["name"] != "f1":
            raise Wrong(session.status_text())
        session.load().more(20)
        session.stop()
    finally:
        session.clean()


def main():
    kv = kv_build(tempfile.mkdtemp(dir=os.getcwd()))
    try:
        for name in sys.argv[1:] or ["inner", "beside"]:
            {"inner": inner, "beside": beside}[name](kv)
    except Wrong as e:
        raise SystemExit(str(e))
    print("pids: ok")


main()
