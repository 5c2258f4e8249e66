"""nats.py: what tests of shipping share: a NATS server of our own, kv shipped, its follower."""
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "log")]
from kv import MVE, ROOT, build, connect, fail, free_port     # noqa: E402,F401

SHIP = os.path.join(os.path.dirname(MVE), "mve-ship")
LIMIT_S = 100       # of what hangs


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def needed():
    if not os.access(SHIP, os.X_OK):
        skip("mve-ship is not made: libnats-dev is not installed")


def until(what, why, every=0.05):
    """What it comes to, as soon as that is something."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        time.sleep(every)
    return fail(why)


class Nats:
    """A server with JetStream, on loopback; its streams outlive it."""

    def __init__(self, folder, config="", port=None):
        self.port = port or free_port()
        self.folder = os.path.abspath(folder)
        os.makedirs(self.folder, exist_ok=True)
        with open(f"{self.folder}/nats.conf", "w") as f:
            f.write(f'listen: "127.0.0.1:{self.port}"\n'
                    f'jetstream {{ store_dir: "{self.folder}/store", max_mem: 64M, max_file: 1G }}\n'
                    f'{config}\n')
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ["nats-server", "-c", f"{self.folder}/nats.conf", "-l", f"{self.folder}/log"])
        connect(self.port).close()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def url(self, subject, scheme="nats", user=""):
        return f"{scheme}://{user}127.0.0.1:{self.port}/{subject}"


class Cutter:
    """Passes bytes on to the server, and cuts each connection after some, wherever that is.

    Twice the largest message, at most: so each comes through in one of a few connections."""

    def __init__(self, nats):
        self.nats, self.cuts, self.whole = nats, 0, False
        self.most = 2 * PAYLOAD
        self.listens = socket.create_server(("127.0.0.1", 0))
        self.port = self.listens.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            peer, _ = self.listens.accept()
            try:
                server = socket.create_connection(("127.0.0.1", self.nats.port))
            except OSError:
                peer.close()
                continue
            pair = (peer, server)
            left = [random.randrange(self.most)]
            for a, b in (pair, pair[::-1]):
                threading.Thread(target=self.carry, args=(a, b, left), daemon=True).start()

    def carry(self, a, b, left):
        try:
            while data := a.recv(4096):
                if not self.whole and left[0] < len(data):
                    b.sendall(data[:left[0]])
                    self.cuts += 1
                    break
                left[0] -= len(data)
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def url(self, subject):
        return f"nats://127.0.0.1:{self.port}/{subject}"


class Session:
    """mve in the background, with what it says."""

    def __init__(self, name, *words, **more):
        self.err = open(f"{name}.err", "w+")
        self.process = subprocess.Popen([MVE, *words], stdout=subprocess.PIPE, stderr=self.err,
                                        text=True, **more)

    def said(self):
        with open(self.err.name) as f:
            return f.read()

    def waits(self, text):
        until(lambda: text in self.said() or self.process.poll() is not None,
              f"not said: {text}")
        if text not in self.said():
            fail(f"not said: {text}\n{self.said()}")

    def end(self, status=0):
        """What it printed; it ends by itself."""
        try:
            out, _ = self.process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            fail(f"it does not end\n{self.said()}")
        if self.process.returncode not in (status if isinstance(status, tuple) else (status,)):
            fail(f"ended with {self.process.returncode} instead of {status}\n{out}{self.said()}")
        return out

    def stop(self, status=0):
        self.process.send_signal(signal.SIGTERM)
        return self.end(status)


class Leader(Session):
    """kv, shipped."""

    def __init__(self, url, *more, program="./kv", **keys):
        self.port = free_port()
        self.name = f"ship-{os.getpid()}-{self.port}"
        super().__init__(self.name, "run", "-n", self.name, "--ship", url, *more, "--", program,
                         str(self.port), **keys)
        self.link = connect(self.port)
        self.file = self.link.makefile("rw")

    def ask(self, line, answer):
        self.file.write(line + "\n")
        self.file.flush()
        got = self.file.readline()
        if got != answer + "\n":
            fail(f"{line!r} is answered with {got!r}\n{self.said()}")

    def load(self, n):
        for i in range(n):
            self.ask(f"PUT k{i % 40} v{i}", "OK")
            self.ask(f"GET k{i % 40}", f"VALUE v{i}")

    def status(self):
        p = subprocess.run([MVE, "status", self.name, "--json"], capture_output=True, text=True,
                           check=False)
        return p.stdout

    def stop(self, status=0):
        self.link.close()
        return super().stop(status)


def equal(out):
    m = re.search(r"^followed (\d+) calls, equal$", out, re.M)
    if not m:
        fail(f"not equal: {out}")
    return int(m[1])


# --- who is on the subject beside mve ----------------------------------------------------

HEAD = struct.Struct("<QIIIIQQQQQIIII")     # struct ship_message
VERSIONS = slice(1, 5)
RECORDING, BYTES, PLACE, BEGAN, FLAGS, SIZE, CRC = 5, 7, 8, 9, 10, 11, 13
OVER = 1
PAYLOAD = 256 << 10     # of a segment in one message, at most


def crc32c_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82f63b78 if n & 1 else 0)
        table.append(n)
    return table


TABLE = crc32c_table()


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xff] ^ crc >> 8
    return crc ^ 0xffffffff


def message(head, data, crc=None):
    """A message whose checksum is right, unless another is given."""
    head = list(head)
    bare = HEAD.pack(*head)[:-4]
    head[CRC] = crc32c(bare + data) if crc is None else crc
    return HEAD.pack(*head) + data


class Peer:
    """A client that speaks for itself: what is on a subject, and what is to be."""

    def __init__(self, nats):
        self.link = socket.create_connection(("127.0.0.1", nats.port), LIMIT_S)
        self.file = self.link.makefile("rb")
        self.file.readline()
        self.say(b'CONNECT {"verbose":false}\r\n')

    def say(self, data):
        self.link.sendall(data)

    def settle(self):
        """The server has heard all of it."""
        self.say(b"PING\r\n")
        while self.file.readline() != b"PONG\r\n":
            pass

    def subscribe(self, subject):
        self.say(b"SUB %s 1\r\n" % subject.encode())
        self.settle()

    def hear(self):
        """The next message."""
        while True:
            words = self.file.readline().split()
            if not words:
                fail("the NATS server is gone")
            if words[0] == b"MSG":
                data = self.file.read(int(words[-1]) + 2)
                return data[:-2]
            if words[0] == b"PING":
                self.say(b"PONG\r\n")

    def publish(self, subject, data):
        self.say(b"PUB %s %d\r\n%s\r\n" % (subject.encode(), len(data), data))

    def stream(self, name, subject):
        """A stream that keeps the subject."""
        ask = json.dumps({"name": name, "subjects": [subject], "retention": "limits",
                          "storage": "memory"}).encode()
        self.say(b"SUB made 2\r\n")
        self.say(b"PUB $JS.API.STREAM.CREATE.%s made %d\r\n%s\r\n" %
                 (name.encode(), len(ask), ask))
        answer = json.loads(self.hear())
        if "error" in answer:
            fail(f"no stream: {answer}")
        self.say(b"UNSUB 2\r\n")
