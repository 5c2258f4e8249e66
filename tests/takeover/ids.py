#!/usr/bin/env python3
"""ids.py: the kernel gives a new leader's child, then a thread, the id that its program has from
the leader before: the child is waited for, and the thread met by its signal, all the same."""
import os
import socket
import subprocess

from load import Wrong
from session import ROOT, Session, free_port, says

LAST = "/proc/sys/kernel/ns_last_pid"
TRIES = 1000    # another process may be given the number


def made(session, peer, word, end, held, want):
    """One with the number is asked for until there is one; each ends as it should."""
    pid = session.leader()["pid"]
    for _ in range(TRIES):
        with open(LAST, "w") as last:
            last.write(str(held - 1))
        says(peer, word)
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            there = children.read().split() + os.listdir(f"/proc/{pid}/task")
        heard = says(peer, end)
        if heard != want:
            raise Wrong(f"{word}: {heard!r}, not {want!r}; held {held}, there {there}\n"
                        f"{session.log()}")
        if str(held) in there:
            return
    raise Wrong(f"{word}: the number {held} was not given in {TRIES} tries")


def main():
    port = free_port()
    program = os.getcwd() + "/ids"
    subprocess.run(["gcc", "-O1", "-pthread", "-D_GNU_SOURCE", "-o", program,
                    ROOT + "/tests/takeover/ids.c"], check=True)
    session = Session("ids", 2, (), [program, str(port)], None, port)
    try:
        held = session.leader()["pid"]
        session.promote("f1")
        with socket.create_connection(("127.0.0.1", port), 20) as s, s.makefile("rw") as peer:
            made(session, peer, "fork", "wait", held, "its child, status 7")
            made(session, peer, "thread", "join", held, "its process, its signal")
            if session.following() != ["f2"]:
                raise Wrong(session.status_text() + session.log())
        session.stop()
    except (Wrong, OSError) as e:
        raise SystemExit(str(e))
    finally:
        session.clean()
    print("ids: ok")


if __name__ == "__main__":
    main()
