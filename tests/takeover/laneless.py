#!/usr/bin/env python3
"""laneless.py: a version took over and nobody follows it: threads that it makes then are told to
nobody, and yet sets of epoll and processes have the data and the ids of the one before."""
import os
import socket
import subprocess

from load import Wrong
from session import ROOT, Session, free_port


def ask(port, when):
    with socket.create_connection(("127.0.0.1", port), 10) as s:
        s.settimeout(20)
        s.sendall(b"go\n")
        said = s.recv(80).decode()
    if said != "ok\n":
        raise Wrong(f"{when}: {said}")


def build(tag):
    out = f"{os.getcwd()}/laneless-{tag}"
    subprocess.run(["gcc", "-O1", "-pthread", f"-DTAG={tag}", "-o", out,
                    ROOT + "/tests/takeover/laneless.c"], check=True)
    return out


def main():
    port = free_port()
    session = Session("kv", 1, (), [build(1), str(port)], f"{build(2)} {port}", port)
    try:
        ask(port, "before")
        session.promote("f1")
        ask(port, "behind")
        session.stop()
    except (Wrong, OSError) as e:
        raise SystemExit(f"{e}\n{session.log()}")
    finally:
        session.clean()
    print("laneless: ok")


if __name__ == "__main__":
    main()
