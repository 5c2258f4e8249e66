#!/usr/bin/env python3
"""roomless.py: a process that allows itself no further descriptor (sshd's, before a user is
known) keeps its connection when another version takes over, and its limit.  One that led and
may never raise its limit again cannot take: its version is refused while it lives, and the
leader goes on serving."""
import os
import socket
import subprocess

from load import Wrong
from session import ROOT, Session, free_port


def said(s, line):
    s.sendall(line)
    if s.recv(100) != line:
        raise Wrong(f"{line}: the connection is lost")


def connect(port, how):
    s = socket.create_connection(("127.0.0.1", port), 10)
    s.settimeout(10)
    said(s, how)
    said(s, b"led by v0\n")
    return s


def soft(session, port):
    with connect(port, b"soft") as s:
        for turn, leader in enumerate(("f1", "v0", "f1", "v0")):
            session.promote(leader, keep=True)
            said(s, b"turn %d\n" % turn)


def hard(session, port):
    with connect(port, b"hard") as s:
        session.promote("f1", keep=True)
        said(s, b"led by f1\n")
        try:
            session.promote("v0", keep=True)  # with CAP_SYS_RESOURCE
        except Wrong as e:
            if "RLIMIT_NOFILE" not in str(e):
                raise
        said(s, b"led by either\n")
    with connect(port, b"hard") as s:
        said(s, b"and another\n")


def main():
    port, out = free_port(), os.getcwd() + "/roomless"
    subprocess.run(["gcc", "-O1", "-g", "-o", out, ROOT + "/tests/takeover/roomless.c"], check=True)
    session = Session("roomless", 1, (), [out, str(port)], None, port)
    try:
        soft(session, port)
        hard(session, port)
        session.stop()
    except (Wrong, OSError) as e:
        raise SystemExit(f"{e!r}\n{session.log()}")
    finally:
        session.clean()
    print("roomless: ok")


if __name__ == "__main__":
    main()
