#!/usr/bin/env python3
"""newborn.py ROUNDS: a child that is killed right before another version comes to lead, as it is
born or some time later: its parent, in the new leader, hears that it was killed, and nobody
lives on in its place."""
import os
import signal
import socket
import subprocess
import sys

from load import Wrong
from session import ROOT, Session, free_port, says


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(word) for word in f.read().split()]


def followed(session):
    return not any(v["lag_cells"] for v in session.versions())


def once(program, crash, young):
    port = free_port()
    session = Session("newborn", 1, (), [program, str(port)], None, port)
    try:
        with socket.create_connection(("127.0.0.1", port), 20) as s, s.makefile("rw") as peer:
            made = says(peer, "make")
            if not young:
                session.wait_for(lambda: followed(session), "all is read")
            leader = session.leader()["pid"]
            for pid in children(leader):
                os.kill(pid, signal.SIGKILL)
            if crash:
                os.kill(leader, signal.SIGSEGV)
            else:
                session.promote("f1")
            session.wait_for(lambda: session.leader()["name"] == "f1", "f1 leads")
            heard, left = says(peer, "wait"), children(session.leader()["pid"])
        if heard != f"{made} {int(signal.SIGKILL)}" or left:
            raise Wrong(f"crash {crash}, young {young}: {made}, heard {heard}, left {left}\n"
                        f"{session.log()}")
        session.stop()
    finally:
        session.clean()


def main():
    program = os.getcwd() + "/newborn"
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-o", program,
                    ROOT + "/tests/takeover/newborn.c"], check=True)
    try:
        for n in range(int(sys.argv[1])):
            once(program, n & 1, not n & 2)
    except (Wrong, OSError) as e:
        raise SystemExit(str(e))
    print("newborn: ok")


main()
