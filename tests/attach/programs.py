#!/usr/bin/env python3
"""programs.py ROUNDS: mve comes to a server that forks for each connection and executes a program
there (execs.c), while connections come and go, and leaves it, with all that is on its way.  Each
line is answered; of mve nothing is left in any process."""
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

from left import is_left
from server import MVE, WAIT_S, Wrong, family, free_port, wait_for
from session import listens

HERE = os.path.dirname(os.path.abspath(__file__))
CLIENTS = 4
LINES = 3
TRIES = 20          # it may be forking
SERVED = 12         # connections between two steps


class Clients:
    def __init__(self, port):
        self.port, self.over, self.wrong, self.served = port, False, None, 0
        self.threads = [threading.Thread(target=self.run) for _ in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def run(self):
        try:
            while not self.over and not self.wrong:
                self.serve_one()
        except (OSError, Wrong) as e:
            self.wrong = self.wrong or e

    def serve_one(self):
        with socket.create_connection(("127.0.0.1", self.port), WAIT_S) as s:
            for n in range(LINES):
                s.sendall(b"%d\n" % n)
                got = s.recv(100)
                if got != b"%d\n" % n:
                    raise Wrong(f"answer {got}, expected {n}")
            self.served += 1

    def more(self):
        until = self.served + SERVED
        wait_for(lambda: self.wrong or self.served >= until, "connections are served")
        if self.wrong:
            raise Wrong(f"a client: {self.wrong}")

    def stop(self):
        self.over = True
        for thread in self.threads:
            thread.join()


def attach(pid, name):
    for _ in range(TRIES):
        mve = subprocess.Popen([MVE, "attach", "-n", name, str(pid)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        line = mve.stdout.readline()
        if "holds pid" in line:
            return mve
        words = line + mve.communicate()[0]
    raise Wrong(f"mve attach, {TRIES} times: {words}")


def left(name):
    done = subprocess.run([MVE, "detach", name], capture_output=True, text=True, timeout=WAIT_S)
    if done.returncode and "try again" not in done.stderr:
        raise Wrong(f"mve detach: {done.stderr}")
    return not done.returncode


def detach(mve, name):
    wait_for(lambda: left(name), "it is left", 60)
    words = mve.communicate(timeout=WAIT_S)[0]
    if "cannot" in words:
        raise Wrong(words)


def all_left(server):
    """One that ends, or was between two programs, has another memory when it is looked at again."""
    for pid in family(server):
        try:
            is_left(pid, {})
        except (OSError, Wrong):
            time.sleep(0.05)
            if os.path.exists(f"/proc/{pid}/maps"):
                is_left_or_ended(pid)


def is_left_or_ended(pid):
    try:
        is_left(pid, {})
    except OSError:
        pass


def main():
    name, port = "%s-p" % os.environ.get("MVE_SESSION", f"t-{os.getpid()}"), free_port()
    mve = clients = None
    with tempfile.TemporaryDirectory(prefix="mve-attach-", dir="/tmp") as folder:
        subprocess.run(["gcc", "-O1", "-o", folder + "/execs", HERE + "/execs.c"], check=True)
        server = subprocess.Popen([folder + "/execs", str(port)], stdin=subprocess.DEVNULL)
        try:
            wait_for(lambda: listens(port), "the server listens")
            clients = Clients(port)
            clients.more()
            for _ in range(int(sys.argv[1])):
                mve = attach(server.pid, name)
                clients.more()
                detach(mve, name)
                all_left(server.pid)
                clients.more()
            if server.poll() is not None:
                raise Wrong(f"the server has ended: {server.returncode}")
        except Wrong as e:
            raise SystemExit(str(e))
        finally:
            if clients:
                clients.stop()
            for process in (mve, server):
                if process and process.poll() is None:
                    process.kill()
                    process.wait()
    print(f"{clients.served} connections", file=sys.stderr)
    print("programs: ok")


main()
