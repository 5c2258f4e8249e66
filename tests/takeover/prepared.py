#!/usr/bin/env python3
"""prepared.py CASE...: until all processes of a successor have all descriptors, a takeover can
be undone.  A server of two processes.

    monitor    a promotion, and the monitor may have too few descriptors to fetch them: the
               leader goes on as if nothing had been; with the limit back another is promoted
    crash      the leader crashes, and a process of the first follower cannot have as many: the
               next one leads, in both processes
    dies       the same, and that process is killed: the other one waits for it in vain
    alone      the same as crash with one follower: that process ends, and the other one leads,
               though it is late
"""
import os
import resource
import signal
import socket
import subprocess
import sys
import time

from load import Wrong
from session import ROOT, Session, free_port

MORE = 60
FEW = 20


class Client:
    """A connection to each of the two processes, and how many lines they have answered."""

    def __init__(self, *ports):
        self.lines = 0
        self.sockets = [self.connect(port) for port in ports]

    @staticmethod
    def connect(port):
        end = time.monotonic() + 10
        while True:
            try:
                s = socket.create_connection(("127.0.0.1", port), 10)
                s.settimeout(20)
                return s
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)

    def look(self, when, most=2):
        self.lines += 1
        for which, s in enumerate(self.sockets[:most]):
            s.sendall(b"look\n")
            said = s.recv(100).decode().strip()
            if said != f"{self.lines} lines, 0 wrong":
                raise Wrong(f"{when}: process {which} says: {said!r}, after {self.lines} lines")


def limit(pid, most):
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, most))


def child(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return int(file.read().split()[0])


def pid_of(session, name):
    return next(v["pid"] for v in session.versions() if v["name"] == name)


def lag(session, name):
    return next(v["lag_cells"] for v in session.versions() if v["name"] == name)


def followed(session, n):
    session.wait_for(lambda: len(session.following()) == n and
                     not any(v["lag_cells"] for v in session.versions()), "all have read on")


def monitor(session, client):
    was = resource.prlimit(session.mve.pid, resource.RLIMIT_NOFILE)
    used = len(os.listdir(f"/proc/{session.mve.pid}/fd"))
    resource.prlimit(session.mve.pid, resource.RLIMIT_NOFILE, (used + FEW, was[1]))
    try:
        session.promote("f1")
        raise Wrong("f1 was promoted")
    except Wrong as e:
        if "Too many open files" not in str(e):
            raise
    resource.prlimit(session.mve.pid, resource.RLIMIT_NOFILE, was)
    client.look("f1 was not promoted")
    if session.leader()["name"] != "v0":
        raise Wrong(f"{session.leader()['name']} leads")
    session.promote("f2")
    client.look("f2 was promoted")


def crashed(session, client):
    """f2 stands still until it is needed, so that it is f1 that is least behind."""
    head = pid_of(session, "f2")
    for pid in (head, child(head)):
        os.kill(pid, signal.SIGSTOP)
    client.look("f2 stands still")
    session.wait_for(lambda: lag(session, "f1") < lag(session, "f2"), "f1 reads on")
    os.kill(pid_of(session, "v0"), signal.SIGSEGV)
    client.look("the leader crashed")
    session.wait_for(lambda: session.leader()["name"] == "f2", "f2 leads")
    client.look("f2 leads")


def crash(session, client):
    limit(child(pid_of(session, "f1")), FEW)
    crashed(session, client)
    if "could not: process" not in session.log():
        raise Wrong("f1 was not asked")


def dies(session, client):
    os.kill(child(pid_of(session, "f1")), signal.SIGKILL)
    crashed(session, client)
    if "f1: dropped: it was to lead" not in session.log():
        raise Wrong("f1 was not asked")


def alone(session, client):
    """The first process of f1 sleeps until somebody wakes it: the second one asks before it."""
    limit(child(pid_of(session, "f1")), FEW)
    os.kill(pid_of(session, "f1"), signal.SIGSTOP)
    os.kill(pid_of(session, "v0"), signal.SIGSEGV)
    client.look("the leader crashed", 1)
    session.wait_for(lambda: session.leader()["name"] == "f1", "f1 leads")
    client.look("f1 leads", 1)


def run(case, program):
    port, other = free_port(), free_port()
    followers = 1 if case is alone else 2
    session = Session("prepared", followers, (), [program, str(port), str(other), str(MORE)], None, port)
    try:
        client = Client(port, other)
        client.look("at first")
        followed(session, followers)
        case(session, client)
        session.stop()
    except (Wrong, OSError) as e:
        raise SystemExit(f"{case.__name__}: {e!r}\n{session.log()}")
    finally:
        session.clean()


def main():
    out = os.getcwd() + "/prepared"
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-o", out,
                    ROOT + "/tests/takeover/prepared.c"], check=True)
    cases = {"monitor": monitor, "crash": crash, "dies": dies, "alone": alone}
    for name in sys.argv[1:] or cases:
        run(cases[name], out)
    print("prepared: ok")


if __name__ == "__main__":
    main()
