#!/usr/bin/env python3
"""held.py: a process that took over forks while its other threads change sets of epoll; its
children, which have none of these threads, do the same."""
import os
import socket
import subprocess

from load import Wrong
from session import ROOT, Session, free_port


def ask(port, what):
    with socket.create_connection(("127.0.0.1", port), 10) as s:
        s.settimeout(60)
        s.sendall(what + b"\n")
        return s.recv(32).decode()


def build(tag):
    out = f"{os.getcwd()}/held-{tag}"
    subprocess.run(["gcc", "-O1", "-pthread", f"-DTAG={tag}", "-o", out,
                    ROOT + "/tests/takeover/held.c"], check=True)
    return out


def main():
    port = free_port()
    session = Session("kv", 1, (), [build(1), str(port)], f"{build(2)} {port}", port)
    try:
        session.promote("f1")
        ask(port, b"threads")
        came = ask(port, b"forks")
        if came != "3000 of 3000\n":
            raise Wrong(f"children that came to their end: {came}")
        session.stop()
    except (Wrong, OSError) as e:
        raise SystemExit(f"{e}\n{session.log()}")
    finally:
        session.clean()
    print("held: ok")


if __name__ == "__main__":
    main()
