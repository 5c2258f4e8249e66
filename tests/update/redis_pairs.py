#!/usr/bin/env python3
"""What differs between two of Debian's revisions of Redis, in an update by a twin: a command that
the new one refuses, with the pair's rules and without, and one that the old one dies of.

  redis_pairs.py OLD NEW      versions: servers/update/versions
"""
import os
import sys

import real
from redis_client import Client, words

RULES = f"{real.served.ROOT}/rules/redis"
# A hash as old releases wrote it, with a length of one byte said in five, which the old revision
# reads in two ways: both end within it.  Without a checksum.
ZIPMAP = b"\x01\xfe\x01\x00\x00\x00\x00\x01\x00\xff\xff"
DUMP = b"\x09" + bytes([len(ZIPMAP)]) + ZIPMAP + b"\x0a\x00" + b"\x00" * 8
# Before; the command; what the new one says; what is left of it where it was taken, and not.
PAIRS = {
    ("original", "before-46818"): (
        "7.0.15-u7.rules", None, ("ACL", "SETUSER", "u", "%~x"),
        b"-ERR Error in ACL SETUSER modifier '%~x': Syntax error", ("ACL", "USERS")),
    ("u7", "u10"): (
        "u7-u10.rules", ("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "1"),
        ("RESTORE", "zipmap", 0, DUMP), b"-ERR Bad data format", ("TYPE", "zipmap")),
}
DEADLY = ("EVAL", "return {unpack({1,2,3}, -2, 2147483647)}", 0)


def seldom(port):
    """Once a second it looks at its memory: in the midst of a request rules do not hold."""
    return [*words(port), "--hz", "1"]


class Pair:
    def __init__(self, old, new):
        self.builds = [real.built("redis", v) for v in (old, new)]
        self.rules, self.before, self.command, self.refusal, self.look = PAIRS[old, new]

    def server(self, build=0, in_session=True):
        return real.Server(self.builds[build], seldom, in_session)

    def client(self, server):
        client = Client(server.port)
        if self.before:
            client.expect(b"OK", *self.before)
        return client

    def update(self, server, *more):
        server.mve("update", "--to", server.named(self.builds[1]), "--code", "--retry", "8/200",
                   *more)

    def until_alone(self, server):
        real.load.until(lambda: server.status()["update"]["stage"] == "alone", server.status)


def leader(server):
    return next(v["name"] for v in server.status()["versions"]
                if v["role"] in ("leader", "solo"))


def natively(pair):
    with pair.server(1, False) as server:
        c = pair.client(server)
        nothing = c.ask(*pair.look)
        c.expect(pair.refusal, *pair.command)
        assert c.ask(*pair.look) == nothing
    with pair.server(0, False) as server:
        c = pair.client(server)
        c.expect(b"OK", *pair.command)
        assert c.ask(*pair.look) != nothing
    return nothing


def new_leads(pair, nothing, *rules):
    """With rules the old one follows on, and knows nothing of it when it leads again."""
    with pair.server() as server:
        c = pair.client(server)
        pair.update(server, *rules)
        server.mve("promote")
        server.until("new leads")
        for _ in range(3):      # what was due while it stood is done then
            c.expect(b"PONG", "PING")
        c.expect(pair.refusal, *pair.command)
        c.expect(b"OK", "SET", "key", "value")
        if rules:
            server.mve("abort")
            pair.until_alone(server)
            assert leader(server) == "v0", server.status()
        else:
            pair.until_alone(server)
            assert leader(server) != "v0", server.status()
        assert c.ask(*pair.look) == nothing
        c.expect(b"value", "GET", "key")


def old_leads(pair, nothing):
    """It takes it; the new one is dropped, and said to differ."""
    with pair.server() as server:
        c = pair.client(server)
        pair.update(server)
        c.expect(b"OK", *pair.command)
        pair.until_alone(server)
        assert leader(server) == "v0" and "diverged" in server.status()["update"]["why"]
        assert c.ask(*pair.look) != nothing


def old_dies(pair):
    """The new one leads in its place, and answers."""
    with pair.server() as server:
        c = pair.client(server)
        c.expect(b"OK", "SET", "key", "value")
        pair.update(server)
        got = c.ask(*DEADLY)
        assert b"too many results to unpack" in got, got
        c.expect(b"value", "GET", "key")
        pair.until_alone(server)
        assert leader(server) != "v0", server.status()


def main():
    pair = Pair(*sys.argv[1:3])
    if os.environ.get("FETCH_ONLY"):
        return
    nothing = natively(pair)
    new_leads(pair, nothing, "--reverse", f"{RULES}/{pair.rules}")
    new_leads(pair, nothing)
    old_leads(pair, nothing)
    if sys.argv[1] == "original":
        old_dies(pair)
    print("update_redis_pairs: ok")


main()
