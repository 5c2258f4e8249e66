#!/usr/bin/env python3
"""memcached, updated between Debian's revisions of it while clients ask: nothing but code
changed that is at work, and that is all that is said of its state (u1.xf).

  memcached.py OLD NEW [TIMES]      versions: servers/update/versions

A client in the middle of a value stands across all of it.  In the end every item is what a
server of that version, which was given the same, has.
"""
import os
import socket
import sys

import real

ITEMS = 3000


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), real.served.HANGS_S)
        self.file = self.socket.makefile("rb")

    def line(self):
        line = self.file.readline()
        if not line:
            raise EOFError("the connection was closed")
        return line[:-2].decode()

    def ask(self, request):
        self.socket.sendall(request.encode() + b"\r\n")
        return self.line()

    def expect(self, reply, request):
        got = self.ask(request)
        assert got == reply, f"{request!r}: {got!r}, expected {reply!r}"

    def put(self, key, value, flags=0, verb="set", reply="STORED"):
        self.expect(reply, f"{verb} {key} {flags} 0 {len(value)}\r\n{value}")

    def get(self, key):
        """Its flags and value, or None."""
        line = self.ask(f"get {key}")
        if line == "END":
            return None
        word, name, flags, size = line.split()
        assert word == "VALUE" and name == key, line
        value = self.file.read(int(size) + 2)[:-2].decode()
        assert self.line() == "END"
        return int(flags), value


class Load(real.Load):
    """Numbered values, each reply known beforehand."""

    def step(self, n):
        c, key = self.client, f"load-{self.number}"
        value = f"value {n} " * (n % 50 + 1)
        c.put(f"{key}-{n % 100}", value, n % 7)
        assert c.get(f"{key}-{n % 100}") == (n % 7, value), n
        if not n:
            c.put(f"{key}-count", "0")
            c.put(f"{key}-text", "")
        c.expect(str(n + 1), f"incr {key}-count 1")
        c.put(f"{key}-text", f"{n} ", verb="append")
        c.put(f"{key}-gone", "x", verb="add")
        c.expect("DELETED", f"delete {key}-gone")
        c.expect("HD", f"ms {key}-meta 6\r\n{n:06}")
        c.expect("HD t-1 s6", f"mg {key}-meta t s")
        if n % 500 == 499:
            c.put(f"{key}-text", f"from {n} ")


def words(port):
    return ["-u", "root", "-l", "127.0.0.1", "-p", str(port), "-t", "4", "-m", "256"]


def fill(c):
    for i in range(ITEMS):
        c.put(f"item-{i}", f"value {i} " * (i % 200 + 1), i % 65536)


def state(c):
    return {f"item-{i}": c.get(f"item-{i}") for i in range(ITEMS)}


def text_of(n):
    """What was appended since the last time that it began anew."""
    begun = n // 500 * 500
    first = f"from {begun - 1} " if begun else ""
    return first + "".join(f"{i} " for i in range(begun, n))


def loads_are(c, loads):
    for one in loads:
        key, n = f"load-{one.number}", one.done
        for i in range(max(0, n - 100), n):
            assert c.get(f"{key}-{i % 100}") == (i % 7, f"value {i} " * (i % 50 + 1)), (key, i)
        assert c.get(f"{key}-count")[1] == str(n), (key, n)
        assert c.get(f"{key}-text")[1] == text_of(n), (key, n)


def main():
    builds = [real.built("memcached", v) for v in sys.argv[1:3]]
    times = int(sys.argv[3]) if len(sys.argv) > 3 else len(real.ENDS)
    if os.environ.get("FETCH_ONLY"):
        return
    with real.Server(builds[0], words, True) as server:
        first, half = Client(server.port), Client(server.port)
        fill(first)
        half.socket.sendall(b"set half 0 0 10\r\n12345")
        loads = [Load(Client(server.port), i) for i in range(3)]
        for one in loads:
            one.start()
        runs = real.rounds(server, builds, loads, times, lambda new: (
            "--code", "--xform", f"{real.served.ROOT}/servers/update/memcached/u1.xf"))
        for one in loads:
            one.stop()
        loads_are(Client(server.port), loads)
        half.socket.sendall(b"67890\r\n")
        assert half.line() == "STORED" and first.get("half") == (0, "1234567890")
        with real.Server(builds[runs], words, False) as natively:
            other = Client(natively.port)
            fill(other)
            ours, theirs = state(first), state(other)
            for key, value in theirs.items():
                assert value and ours[key] == value, f"{key}: {ours[key]} natively {value}"
    print("update_memcached: ok")


if __name__ == "__main__":
    main()
