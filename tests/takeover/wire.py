#!/usr/bin/env python3
"""wire.py CASE...: the leader crashes, and its successor is sent what it takes before it asks.

    alone     one process, one follower: its connection, directory, record locks and descriptors
    many      the same, with more descriptors than the least table of the kernel's
    forked    there are two processes: they are asked for; a follower's child has no wire
    others    there are two followers: the first one is asked
    broken    nobody reads its wire: it is asked
"""
import ctypes
import os
import re
import signal
import socket
import stat
import subprocess
import sys

from load import Wrong
from session import ROOT, Session, free_port, is_locked, says

SYS_PIDFD_GETFD = 438
OURS = 512          # and above: no server's that has opened less


def numbers(pid):
    return {int(fd) for fd in os.listdir(f"/proc/{pid}/fd")}


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(word) for word in f.read().split()]


def wires(pid):
    return [fd for fd in numbers(pid)
            if fd >= OURS and os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:")]


def wire_break(pid):
    """As a program that closes what it did not open."""
    libc, process = ctypes.CDLL(None), os.pidfd_open(pid)
    with socket.socket(fileno=libc.syscall(SYS_PIDFD_GETFD, process, wires(pid)[0], 0)) as wire:
        wire.shutdown(socket.SHUT_RDWR)
    os.close(process)


def device(path):
    """Files to lock: a device is asked in a way of its own; a user cannot make one."""
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        return [path]
    except PermissionError:
        return []


def ask(peer, word, expected="ok"):
    got = says(peer, word)
    if got != expected:
        raise Wrong(f"{word}: {got!r}, not {expected!r}")


def run(followers, more, unasked, breaks=False):
    """Whether it was sent unasked is what the log says, and all that was there is still."""
    out, port = os.getcwd() + "/wire", free_port()
    subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", "-o", out, ROOT + "/tests/takeover/wire.c"],
                   check=True)
    os.environ["MVE_LOG"] = "take"
    session = Session("wire", followers, (), [out, str(port), "fragile"],
                      f"{out} {port} sound", port)
    try:
        folder = session.folder + "/there"
        os.mkdir(folder)
        locks = [session.folder + "/lock", *device(session.folder + "/null")]
        with socket.create_connection(("127.0.0.1", port), 60) as client:
            peer = client.makefile("rw")
            for word in (*(f"lock {path}" for path in locks), f"chdir {folder}", *more):
                ask(peer, word)
            session.wait_for(lambda: len(session.following()) == followers and
                             not any(v["lag_cells"] for v in session.versions()), "all is read")
            before = {v["name"]: v["pid"] for v in session.versions()}
            had = numbers(before["v0"])
            if not wires(before["f1"]):
                raise Wrong("f1 has no wire")
            if "fork" in more and not children(before["f1"]):
                raise Wrong("f1 has no child")
            if any(wires(pid) for pid in children(before["f1"])):
                raise Wrong("a child of f1 has its wire")
            if breaks:
                wire_break(before["f1"])
            ask(peer, "crash")
            ask(peer, "where", folder)
            leader = session.leader()
            has = numbers(leader["pid"])
            if leader["name"] == "v0" or has != had:
                raise Wrong(f"{leader['name']} leads, and has {has ^ had} or lacks it")
            session.wait_for(lambda: all(map(is_locked, locks)), "the locks are held again")
        if bool(re.search(r" [0-9]+ descriptors sent .*, unasked", session.log())) != unasked:
            raise Wrong("it was sent " + ("when it had asked" if unasked else "unasked"))
        for pid in children(leader["pid"]):
            os.kill(pid, signal.SIGKILL)
        session.stop()
    except (Wrong, OSError, KeyError) as e:
        raise Wrong(f"{e!r}\n{session.log()}")
    finally:
        session.clean()


CASES = {
    "alone": lambda: run(1, (), True),
    "many": lambda: run(1, ("open 90",), True),
    "forked": lambda: run(1, ("fork",), False),
    "others": lambda: run(2, (), False),
    "broken": lambda: run(1, (), False, True),
}


def main():
    for case in sys.argv[1:] or CASES:
        try:
            CASES[case]()
        except Wrong as e:
            raise SystemExit(f"{case}: {e}")
        print(f"--- {case}")
    print("wire: ok")


if __name__ == "__main__":
    main()
