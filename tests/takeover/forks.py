#!/usr/bin/env python3
"""forks.py: after a takeover, with the old leader gone and with it as a follower, a child's
close() is its own affair: its parent's epoll set hears of all that it heard of before."""
import os
import signal
import socket
import subprocess

from load import Wrong
from session import ROOT, Session, free_port

WAYS = (b"fork\n", b"vfork\n", b"raw\n")


def say(client, line):
    client.sendall(line)
    if client.recv(100) != line:
        raise Wrong(f"no answer to {line}")


def serves(port, clients):
    """On connections of before, and on new ones, before and behind each kind of child."""
    for line in WAYS:
        for client in clients:
            say(client, line)
        with socket.create_connection(("127.0.0.1", port), 5) as client:
            say(client, line)


def takes(session, how, name):
    if how == "crash":
        os.kill(session.leader()["pid"], signal.SIGSEGV)
    else:
        session.promote(name, keep=how == "keep")
    session.wait_for(lambda: session.leader()["name"] == name, f"{name} leads")


def main():
    out, port = f"{os.getcwd()}/forks", free_port()
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-o", out,
                    ROOT + "/tests/takeover/forks.c"], check=True)
    session = Session("forks", 2, (), [out, str(port)], None, port)
    try:
        clients = [socket.create_connection(("127.0.0.1", port), 5) for _ in range(2)]
        for how, name in (("none", ""), ("keep", "f1"), ("keep", "v0"), ("end", "f1"),
                          ("crash", "f2")):
            if name:
                takes(session, how, name)
            serves(port, clients)
        session.stop()
        if "dropped" in session.log():
            raise Wrong("a follower was dropped")
    except (Wrong, OSError) as e:
        raise SystemExit(f"{e!r} after {how} {name}\n{session.log()}\n{session.status_text()}")
    finally:
        session.clean()
    print(session.log() if os.environ.get("SHOW_LOG") else "forks: ok")


if __name__ == "__main__":
    main()
