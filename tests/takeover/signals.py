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
HELD = 2000
WAIT_S = 120       # for what hangs


def build(folder):
    out = f"{folder}/signals"
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-o", out,
                    ROOT + "/tests/takeover/signals.c"], check=True)
    return out


class Client:
    """A connection: its helper is made by one leader, and killed by the next."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), WAIT_S)
        self.socket.settimeout(WAIT_S)

    def came(self, word=b"GET"):
        self.socket.sendall(word + b"\n")
        answer = self.socket.recv(64).decode()
        word, _, number = answer.partition(" ")
        if word != "CAME":
            time.sleep(0.5)
            self.socket.sendall(b"GET\n")
            answer += self.socket.recv(64).decode()
            raise Wrong(f"the server says: {answer!r}")
        return int(number)

    def more(self):
        end, first = time.monotonic() + WAIT_S, self.came()
        while self.came() < first + MORE:
            if time.monotonic() > end:
                raise Wrong(f"no more signals come: {self.came()} after {first}")

    def end(self):
        self.socket.close()


def leads(session, name):
    moves = session.log().count(" leads (")
    client = Client(session.port)
    client.more()
    client.came(b"HOLD")
    session.promote(name, keep=True)
    end = time.monotonic() + WAIT_S
    while client.came(b"LET") < HELD:
        if time.monotonic() > end:
            raise Wrong(f"{client.came(b'LET')} signals that waited came, and not {HELD}")
    client.more()
    client.end()
    session.wait_for(lambda: session.log().count(" leads (") > moves and
                     session.leader()["name"] == name and
                     len(session.following()) == 1, f"{name} leads and is followed")


def main():
    port = free_port()
    session = Session("kv", 1, (), [build(os.getcwd()), str(port)], None, port)
    try:
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
