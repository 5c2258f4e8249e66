"""A client of Redis, and how one is started here: what the tests of its updates share."""
import socket

import served


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), served.HANGS_S)
        self.file = self.socket.makefile("rb")

    def send(self, *words):
        words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
        self.socket.sendall(b"*%d\r\n" % len(words) +
                            b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))

    def read(self):
        line = self.file.readline()
        if not line:
            raise EOFError("the connection was closed")
        kind, rest = line[:1], line[1:-2]
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind in b"*":
            return None if rest == b"-1" else [self.read() for _ in range(int(rest))]
        return int(rest) if kind == b":" else line[:-2] if kind == b"-" else rest

    def ask(self, *words):
        self.send(*words)
        return self.read()

    def expect(self, reply, *words):
        got = self.ask(*words)
        assert got == reply, f"{words}: {got!r}, expected {reply!r}"


def words(port):
    return ["--port", str(port), "--save", "", "--enable-debug-command", "yes",
            "--io-threads", "1"]
