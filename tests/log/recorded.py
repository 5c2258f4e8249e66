"""What tests of recordings share: a Redis that is recorded, and a replay of what it did."""
import os
import re
import shutil
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.append(ROOT + "/tests/servers")
from free_port import free_port     # noqa: E402

MVE = os.environ.get("MVE", f"{ROOT}/build/mve")
NAME = f"log-{os.getpid()}"
EQUAL = re.compile(r"^replayed (\d+) calls, equal( up to there)?$", re.M)
NOT_WHOLE = 3


def fail(why):
    print(f"FAILED: {why}")
    sys.exit(1)


def run(*words, status=None, **more):
    p = subprocess.run(words, capture_output=True, text=True, errors="replace", **more)
    if status is not None and p.returncode != status:
        fail(f"{' '.join(words)}: {p.returncode} instead of {status}\n{p.stdout}{p.stderr}")
    return p


def replay(folder, *words, status=0):
    p = run(MVE, "replay", "-n", f"{NAME}-r", folder, *words, status=status, timeout=100)
    m = EQUAL.search(p.stdout)
    if bool(m) != (status != 1) or (m and bool(m[2]) != (status == NOT_WHOLE)) or \
       ("not whole" in p.stderr) != (status == NOT_WHOLE):
        fail(f"replay says {p.stdout!r} {p.stderr!r}")
    return int(m[1]) if m else 0, p.stderr


class Redis:
    def __init__(self, folder, *more):
        self.port = free_port()
        self.words = ["redis-server", "--port", str(self.port), "--save", ""]
        self.err = open(f"{NAME}.err", "w+")
        self.mve = subprocess.Popen([MVE, "run", "-n", NAME, "--record", folder, *more, "--",
                                     *self.words], stdout=subprocess.DEVNULL, stderr=self.err,
                                    # libc maps a file shared for it
                                    env={**os.environ, "LC_ALL": "C.UTF-8"})
        for _ in range(200):
            try:
                self.link = socket.create_connection(("127.0.0.1", self.port))
                return
            except OSError:
                time.sleep(0.05)
        fail("the server does not come")

    def ask(self, line):
        self.link.sendall(line.encode() + b"\r\n")
        return self.link.recv(4096).decode()

    def load(self, n):
        for i in range(n):
            if self.ask(f"SET k{i % 50} {'v' * (i % 300)}{i}") != "+OK\r\n":
                fail("a SET fails")
            if i % 7 == 0 and not self.ask(f"GET k{i % 50}").endswith(f"{i}\r\n"):
                fail("a GET fails")

    def end(self):
        self.link.sendall(b"SHUTDOWN NOSAVE\r\n")
        self.mve.wait(60)
        self.err.seek(0)
        return self.err.read()


def fresh(name):
    shutil.rmtree(name, ignore_errors=True)
    return name
