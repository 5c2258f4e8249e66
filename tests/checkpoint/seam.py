#!/usr/bin/env python3
"""seam.py MVE_CC: a server with bugs (seam_server.c), a checkpoint at each of its requests.

Good requests are answered once, and as if there were no bad ones; what is not safe is refused by
name, and the server dies of its signal.
"""
import atexit
import ctypes
import os
import signal
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SAID = "a request was taken back"
TAKEN_BACK = ["null", "abort", "overflow", "libc", "length"]

# Who dies, and what is said.
REFUSED = [("sent", "it had sent something"), ("file", "it had sent something"),
           ("spliced", "it had sent something"), ("closed", "it had closed a descriptor"),
           ("fclosed", "it had closed a descriptor"), ("ranged", "it had closed a descriptor"),
           ("waited", "it had gone on to wait"), ("selected", "it had gone on to wait"),
           ("polled", "it had gone on to wait"), ("handler", "it came in a handler"),
           ("sealed", "mapped at a fixed place"), ("thread", "in another thread"),
           ("spawned", "it had made a process"), ("vforked", "it had made a process"),
           ("cloned", "it had made a process"), ("locked", "in memory that processes share"),
           ("system", "it had made a process"), ("piped", "it had made a process")]


class Server:
    def __init__(self, how="first", seam="1"):
        env = dict(os.environ, MVE_CHECKPOINT_SEAM=seam)
        if not seam:
            del env["MVE_CHECKPOINT_SEAM"]
        self.err = open("server.err", "w+")
        self.process = subprocess.Popen(["./seam_server", how], env=env, stdout=subprocess.PIPE,
                                        stderr=self.err, text=True)
        atexit.register(self.process.kill)
        self.port = int(self.process.stdout.readline())
        self.number = self.sum = 0
        self.libc = ctypes.CDLL(None)
        self.libc.srand(1)

    def connect(self):
        peer = socket.create_connection(("127.0.0.1", self.port), 20)
        peer.settimeout(20)
        return peer

    def add(self, peer, what):
        """The answer is the model's."""
        peer.sendall(b"add %d\n" % what)
        self.number += 1
        self.sum += what
        self.answered(peer)

    def answered(self, peer):
        want = f"{self.number} {self.sum} {self.libc.rand()}\n"
        got = b""
        while not got.endswith(b"\n"):
            more = peer.recv(100)
            if not more:
                raise SystemExit(f"closed, not {want!r}: {self.said()}")
            got += more
        if got.decode() != want:
            raise SystemExit(f"answered {got!r}, not {want!r}")

    def said(self):
        self.err.flush()
        with open("server.err") as f:
            return f.read()

    def memory(self):
        with open(f"/proc/{self.process.pid}/statm") as f:
            return int(f.read().split()[1]) * 4

    def died(self, of, words):
        got = self.process.wait(20)
        if got != -of or words not in self.said():
            raise SystemExit(f"ended with {got}, said {self.said()!r}; not {-of}, {words!r}")

    def end(self):
        if self.process.poll() is not None:
            raise SystemExit(f"the server has ended: {self.process.returncode} {self.said()}")
        self.process.kill()
        self.process.wait()


def spoil(server, bug):
    """Its own connection is closed, unanswered."""
    peer = server.connect()
    peer.sendall(bug.encode() + b"\n")
    try:
        got = peer.recv(100)
    except ConnectionResetError:
        got = b""
    if got:
        raise SystemExit(f"{bug} was answered: {got!r}")
    peer.close()


def mixed(how, bugs):
    server = Server(how)
    peers = [server.connect() for _ in range(5)]
    early = 0
    for n in range(1000):
        if n % 50 == 25:
            spoil(server, bugs[n // 50 % len(bugs)])
        server.add(peers[n * 7 % 5], n)
        if n == 300:
            early = server.memory()
    for peer in peers:
        peer.setblocking(False)
        try:
            raise SystemExit(f"{how}: more than was asked for: {peer.recv(100)!r}")
        except BlockingIOError:
            pass
    grown = server.memory() - early
    if server.said().count(SAID) != 20 or grown > 1024:
        raise SystemExit(f"{how}: grown by {grown} KiB, said {server.said()!r}")
    server.end()


def over():
    """Megabytes are written, so for a while they are in memory."""
    server = Server()
    peer = server.connect()
    for n in range(5):
        spoil(server, "over")
        server.add(peer, n)
    if server.said().count(SAID) != 5:
        raise SystemExit(f"over: said {server.said()!r}")
    server.end()


def refused(bug, words, how="first", seam="1"):
    server = Server(how, seam)
    server.add(server.connect(), 5)
    peer = server.connect()
    peer.sendall(bug.encode() + b"\n")
    server.died(signal.SIGABRT if bug.startswith("abort") else signal.SIGSEGV, words)
    if SAID in server.said():
        raise SystemExit(f"{bug}: it was taken back and was not: {server.said()!r}")


def sent_by_another():
    server = Server()
    server.add(server.connect(), 5)
    server.process.send_signal(signal.SIGSEGV)
    server.died(signal.SIGSEGV, "another process has sent it")


def bare():
    """A server without standard error says nothing, least of all to a connection; and what it
    writes to descriptor 1 is an answer."""
    server = Server("bare")
    peers = [server.connect() for _ in range(3)]
    for peer in peers:
        server.add(peer, 1)
    peers[2].sendall(b"null\n")
    got = peers[2].recv(100)
    if got:
        raise SystemExit(f"bare: it was said to a connection: {got!r}")
    peers[1].sendall(b"sent\n")
    server.died(signal.SIGSEGV, "")


def in_a_child():
    server = Server()
    peer = server.connect()
    server.add(peer, 5)
    peer.sendall(b"child\n")
    server.answered(peer)
    spoil(server, "null")
    server.add(peer, 6)
    server.end()


def main():
    cc = sys.argv[1]
    if not os.access(cc, os.X_OK):
        print("mve-cc is not built")
        sys.exit(77)
    subprocess.run([cc, "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-infinite-recursion",
                    HERE + "/seam_server.c", "-o", "seam_server"], check=True)
    mixed("first", TAKEN_BACK + ["deep", "scored"])
    mixed("second", TAKEN_BACK)
    mixed("standing", TAKEN_BACK + ["deep"])
    mixed("humble", TAKEN_BACK + ["deep"])
    mixed("moved", TAKEN_BACK[:2])
    mixed("regains", TAKEN_BACK)
    mixed("handles", TAKEN_BACK)
    over()
    for bug in TAKEN_BACK:
        refused(bug, "the handler ran", "handles", seam="")
    for bug in ("sent", "abort_sent"):
        refused(bug, "the handler ran", "handles")
    for bug in TAKEN_BACK:
        refused(bug, "", seam="")
    refused("null", "", "moved", seam="")
    refused("null", "only each Nth request has a checkpoint", seam="2")
    refused("null", "MVE_CHECKPOINT_SEAM is not a number of requests", seam="yes")
    for bug, words in REFUSED:
        refused(bug, words)
    refused("null", "another thread has run meanwhile", "running")
    sent_by_another()
    in_a_child()
    bare()
    print("seam: ok")


main()
