"""A session of mve run --rollback, and what is asked of it."""
import atexit
import json
import os
import socket
import subprocess
import time


class Wrong(Exception):
    pass


def build(cc, source, name, *flags):
    subprocess.run([cc, "-D_GNU_SOURCE", "-O2", "-g", *flags, source, "-o", name], check=True)


def family(pid):
    """It and its children."""
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [pid] + [int(child) for child in f.read().split()]


def states(pid):
    """A letter for each of its threads; S: it sleeps."""
    letters = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/stat") as f:
            letters.append(f.read().rpartition(") ")[2][0])
    return letters


def asleep(pid):
    letters = states(pid)
    return len(letters) > 1 and set(letters) == {"S"}


def own_memory(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("RssAnon:"))


class Session:
    count = 0

    def __init__(self, mve, options, command, env=None, port=None):
        """Without a port the command says it at the end of its first line."""
        Session.count += 1
        self.mve = mve
        self.name = f"{os.environ.get('MVE_SESSION', f't-{os.getpid()}')}-{Session.count}"
        self.err = open(f"{self.name}.err", "w+")
        self.process = subprocess.Popen([mve, "run", "-n", self.name, *options, "--", *command],
                                        stdout=subprocess.DEVNULL if port else subprocess.PIPE,
                                        stderr=self.err, text=True, env=env)
        atexit.register(self.process.terminate)
        self.port = port or int(self.process.stdout.readline().split()[-1])
        if port:
            self.wait_open()

    def wait_open(self):
        for _ in range(300):
            try:
                self.connect().close()
                return
            except OSError:
                time.sleep(0.1)
        raise Wrong(f"nobody listens; said {self.said()!r}")

    def said(self):
        self.err.flush()
        with open(self.err.name) as f:
            return f.read()

    def says(self, words):
        for _ in range(200):
            if words in self.said():
                return True
            time.sleep(0.1)
        return False

    def connect(self):
        peer = socket.create_connection(("127.0.0.1", self.port), 20)
        peer.settimeout(20)
        return peer

    def ask(self, peer, request, want):
        peer.sendall(request.encode() + b"\n")
        got = b""
        while not got.endswith(b"\n"):
            try:
                more = peer.recv(1000)
            except OSError as e:
                raise Wrong(f"{request!r}: {e}; said {self.said()!r}") from None
            if not more:
                raise Wrong(f"{request!r}: closed; said {self.said()!r}")
            got += more
        if got.decode() != want + "\n":
            raise Wrong(f"{request!r}: {got!r}, not {want!r}")

    def bad(self, request, want=b"", cut=0):
        """Its own connection is closed, and has got what is wanted.  Cut, it may come in pieces."""
        peer = self.connect()
        if cut:
            peer.sendall(request[:cut].encode())
            time.sleep(0.02)
        peer.sendall(request[cut:].encode() + b"\n")
        got = b""
        try:
            while more := peer.recv(1000):
                got += more
        except ConnectionResetError:
            pass
        peer.close()
        if got != want:
            raise Wrong(f"{request!r} was answered: {got!r}, not {want!r}; said {self.said()!r}")

    def status(self):
        got = subprocess.run([self.mve, "status", self.name, "--json"], capture_output=True,
                             text=True, timeout=60)
        if got.returncode:
            raise Wrong(f"mve status: {got.stderr!r}; said {self.said()!r}")
        return json.loads(got.stdout)

    def until(self, what, holds):
        for _ in range(300):
            if holds(self.status()):
                return
            time.sleep(0.1)
        raise Wrong(f"never: {what}: {self.status()}; said {self.said()!r}")

    def server(self):
        return next(v["pid"] for v in self.status()["versions"]
                    if v["role"] not in ("follower", "ended"))

    def stands(self):
        """All its threads sleep, and then its loop has begun anew: nobody has run since."""
        self.until("all threads sleep", lambda now: asleep(self.server()))
        self.connect().close()

    def memory(self):
        """KiB of its processes' own: what versions share is no affair of requests."""
        return sum(own_memory(pid) for pid in family(self.server()))

    def counted(self, number, refused=0):
        got = self.status()["versions"][0]["rollback"]
        if got != {"taken_back": number, "not": 0, "refused": refused}:
            raise Wrong(f"counted {got}, not {number}, {refused}; said {self.said()!r}")

    def follows(self):
        self.until("the follower has started",
                   lambda now: all(v["role"] != "starting" for v in now["versions"]))
        roles = [(v["role"], v["why"]) for v in self.status()["versions"]]
        if len(roles) < 2 or roles[1][0] != "follower":
            raise Wrong(f"who follows: {roles}; said {self.said()!r}")

    def report(self):
        got = subprocess.run([self.mve, "report", self.name], capture_output=True, text=True,
                             timeout=60)
        return got.stdout

    def end(self):
        if self.process.poll() is not None:
            raise Wrong(f"the session has ended: {self.process.returncode} {self.said()}")
        self.process.terminate()
        self.process.wait(20)
