#!/usr/bin/env python3
"""directory.py: who takes over works in the directory that the old leader worked in, whatever
its name is by now, and has its oom_score_adj."""
import os
import socket
import subprocess

from load import Wrong
from session import ROOT, Session, free_port


def make(port, name):
    with socket.create_connection(("127.0.0.1", port), 10) as s:
        s.settimeout(10)
        s.sendall(name.encode() + b"\n")
        if s.recv(8) != b"OK\n":
            raise Wrong(f"{name} was not made")
    if not os.path.exists(f"b/{name}"):
        raise Wrong(f"{name} is not where the server works: {os.listdir('a')}")


def first_to_die(session):
    with open(f"/proc/{session.leader()['pid']}/oom_score_adj") as f:
        if f.read() != "123\n":
            raise Wrong("the new leader has another oom_score_adj")


def main():
    out = os.getcwd() + "/directory"
    subprocess.run(["gcc", "-O1", "-o", out, ROOT + "/tests/takeover/directory.c"], check=True)
    port = free_port()
    session = Session("kv", 1, (), [out, str(port)], None, port)
    try:
        make(port, "before")
        session.promote("f1", keep=True)
        make(port, "behind")
        first_to_die(session)
        session.wait_for(lambda: len(session.following()) == 1, "the old leader follows")
        session.promote("v0")
        make(port, "back")
        session.stop()
    except (Wrong, OSError) as e:
        raise SystemExit(f"{e}\n{session.log()}")
    finally:
        session.clean()
    print("directory: ok")


if __name__ == "__main__":
    main()
