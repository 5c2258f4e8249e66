#!/usr/bin/env python3
"""signals.py ROUNDS: a server whose child sends it numbered signals, and which kills another
child for each connection, is promoted to and fro: each signal comes once and in its turn."""
import os
import socket
import subprocess
import sys
import time

from load import Wrong
from session import ROOT, Session, free_port

MORE = 50
WAIT_S = 20


def build(folder):
    out = f"{folder}/signals"
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-o", out,
                    ROOT + "/tests/takeover/signals.c"], check=True)
    return out


def came(port):
    """How many have come, asked in a connection of its own."""
    with socket.create_connection(("127.0.0.1", port), WAIT_S) as s:
        s.settimeout(WAIT_S)
        s.sendall(b"GET\n")
        word, number = s.recv(64).decode().split(maxsplit=1)
        if word != "CAME":
            raise Wrong(f"{word} {number}")
        return int(number)


def more(port):
    end, first = time.monotonic() + WAIT_S, came(port)
    while came(port) < first + MORE:
        if time.monotonic() > end:
            raise Wrong(f"no more signals come: {came(port)} after {first}")


def leads(session, name):
    session.promote(name, keep=True)
    more(session.port)
    session.wait_for(lambda: session.leader()["name"] == name and
                     len(session.following()) == 1, f"{name} leads and is followed")


def main():
    port = free_port()
    session = Session("kv", 1, (), [build(os.getcwd()), str(port)], None, port)
    try:
        more(port)
        for _ in range(int(sys.argv[1])):
            leads(session, "f1")
            leads(session, "v0")
        for word in ("dropped", "diverged"):
            if word in session.log():
                raise Wrong(f"a follower was {word}")
        session.stop()
    except (Wrong, OSError, ValueError) as e:
        raise SystemExit(f"{e}\n{session.log()}")
    finally:
        session.clean()
    print("signals: ok")


if __name__ == "__main__":
    main()
