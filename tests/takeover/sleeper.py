#!/usr/bin/env python3
"""sleeper.py: a thread that sleeps in a futex of its own takes the server's signals: in the
leader, in what follows it, in one that was promoted, and in one that led before.

`ticks`: as the clock comes to a new second whoever leads does not wait for the thread that has
slept since it followed."""
import os
import signal
import socket
import subprocess
import sys

from load import Wrong
from session import ROOT, Session, free_port


def build(folder):
    out = f"{folder}/sleeper"
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-pthread", "-o", out,
                    ROOT + "/tests/takeover/sleeper.c"], check=True)
    return out


class Server:
    def __init__(self):
        self.came, self.port = 0, free_port()
        self.session = Session("sleeper", 1, (), [build(os.getcwd()), str(self.port)], None,
                               self.port)

    def told(self):
        with socket.create_connection(("127.0.0.1", self.port), 10) as client:
            return [int(word) for word in client.makefile().readline().split()]

    def signals(self, n):
        for _ in range(n):
            os.kill(self.session.leader()["pid"], signal.SIGUSR1)
            self.came += 1
            self.session.wait_for(lambda: self.told()[0] == self.came,
                                  f"signal {self.came} of {self.session.leader()['name']}")
        self.session.wait_for(lambda: not any(v["lag_cells"] for v in self.session.versions()),
                              "all have come so far")

    def leads(self, name):
        self.session.promote(name, keep=True)
        self.session.wait_for(lambda: self.session.leader()["name"] == name, f"{name} leads")

    def seconds(self, n):
        """So many new ones have been told."""
        _, end = self.told()
        self.session.wait_for(lambda: self.told()[1] > end + n, "the clock goes")

    def ticks(self):
        for name in ("f1", "v0", "f1"):
            self.leads(name)
            self.seconds(2)
        for v in self.session.versions():
            ticks = next(w for w in v["waits"] if w["kind"] == "tick")
            if ticks["met"]:
                raise Wrong(f"{v['name']} has waited for a thread that sleeps: {ticks}")
        self.session.stop()

    def run(self):
        self.signals(2)
        for name in ("f1", "v0", "f1"):
            self.leads(name)
            self.signals(2)
        was = self.session.leader()["pid"]
        os.kill(was, signal.SIGSEGV)
        self.session.wait_for(lambda: self.session.leader()["pid"] != was, "another leads")
        self.signals(2)
        self.session.stop()
        for word in ("dropped", "diverged"):
            if word in self.session.log():
                raise Wrong(f"a follower was {word}")


def main():
    server = Server()
    try:
        server.ticks() if "ticks" in sys.argv else server.run()
    except (Wrong, OSError) as e:
        raise SystemExit(f"{e}\n{server.session.log()}")
    finally:
        server.session.clean()
    print("sleeper: ok")


if __name__ == "__main__":
    main()
