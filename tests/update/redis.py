#!/usr/bin/env python3
"""Redis, updated between Debian's security revisions of it while clients ask: nothing but code
changed, so nothing is said of its state.

  redis.py OLD NEW [TIMES]      versions: servers/update/versions

A client that waits in BLPOP, a subscriber and a transaction that is open stand across all of it.
In the end every key is what a server of that version, which was given the same, has.
"""
import os
import sys

import real
from redis_client import Client, words


class Load(real.Load):
    """Commands of several types, each reply known beforehand."""

    def step(self, n):
        c, key = self.client, f"load-{self.number}"
        c.expect(b"OK", "SET", f"{key}-{n % 100}", n)
        c.expect(b"%d" % n, "GET", f"{key}-{n % 100}")
        c.expect(n + 1, "INCR", f"{key}-count")
        c.expect(n + 1, "RPUSH", f"{key}-list", n)
        c.expect(b"%d" % n, "LINDEX", f"{key}-list", -1)
        c.expect(1, "ZADD", f"{key}-set", n, f"m{n}")
        c.expect(n + 1, "EVAL", "return redis.call('hincrby', KEYS[1], 'n', 1)", 1, f"{key}-hash")
        c.expect(b"%d-1" % (n + 1), "XADD", f"{key}-stream", f"{n + 1}-1", "n", n)
        c.expect(n * 2, "FCALL", "twice", 0, n)


LIBRARY = """#!lua name=ours
redis.register_function('twice', function(keys, args) return tonumber(args[1]) * 2 end)
"""


def fill(c):
    """Of each type and encoding."""
    c.expect(b"ours", "FUNCTION", "LOAD", LIBRARY)
    for i in range(200):
        c.ask("SET", f"text-{i}", f"value {i}" * (i + 1))
        c.ask("SET", f"ends-{i}", i, "PXAT", 4102444800000 + i)
        c.ask("RPUSH", f"list-{i}", *range(i + 1), "x" * 100)
        c.ask("HSET", f"hash-{i}", *(w for k in range(i + 1) for w in (f"field {k}", k)))
        c.ask("SADD", f"set-{i}", *range(i + 1))
        c.ask("SADD", f"names-{i}", *(f"name {k}" for k in range(i + 1)))
        c.ask("ZADD", f"sorted-{i}", *(w for k in range(i + 1) for w in (k / 7, f"m{k}")))
        c.ask("XADD", f"stream-{i}", f"{i + 1}-1", "field", i)
        c.ask("XGROUP", "CREATE", f"stream-{i}", "group", "0")
        c.ask("XREADGROUP", "GROUP", "group", "one", "STREAMS", f"stream-{i}", ">")
        c.ask("PFADD", f"counted-{i}", *range(i + 1))
        c.ask("GEOADD", "places", i / 10, i / 20, f"place {i}")


def state(c):
    """All keys but those of loads, as they are dumped; sets by their members, whose order may
    be another's."""
    found = {}
    for key in sorted(c.ask("KEYS", "*")):
        if key.startswith(b"load-"):
            continue
        value = c.ask("DUMP", key)
        kind = c.ask("TYPE", key)
        encoding = c.ask("OBJECT", "ENCODING", key)
        if kind == b"set":
            value = sorted(c.ask("SMEMBERS", key))
        elif kind == b"hash" and encoding == b"hashtable":
            pairs = c.ask("HGETALL", key)
            value = sorted(zip(pairs[::2], pairs[1::2]))
        elif kind == b"stream":     # a consumer's times are the clock's
            value = c.ask("XRANGE", key, "-", "+"), c.ask("XPENDING", key, "group")
        found[key] = kind, encoding, c.ask("PEXPIRETIME", key), value
    return found


def loads_are(c, loads):
    for one in loads:
        key, n = f"load-{one.number}", one.done
        for i in range(max(0, n - 100), n):
            c.expect(b"%d" % i, "GET", f"{key}-{i % 100}")
        c.expect([b"%d" % i for i in range(n)], "LRANGE", f"{key}-list", 0, -1)
        c.expect([b"m%d" % i for i in range(n)], "ZRANGE", f"{key}-set", 0, -1)
        c.expect(b"%d" % n, "HGET", f"{key}-hash", "n")
        c.expect(n, "XLEN", f"{key}-stream")


class Standing:
    """Clients in the middle of something."""

    def __init__(self, port):
        self.waits, self.hears, self.gathers = (Client(port) for _ in range(3))
        self.waits.send("BLPOP", "awaited", 0)
        self.hears.expect([b"subscribe", b"channel", 1], "SUBSCRIBE", "channel")
        self.gathers.expect(b"OK", "WATCH", "watched")
        self.gathers.expect(b"OK", "MULTI")
        self.gathers.expect(b"QUEUED", "SET", "gathered", "yes")

    def over(self, c):
        c.expect(1, "RPUSH", "awaited", "it")
        assert self.waits.read() == [b"awaited", b"it"]
        c.expect(1, "PUBLISH", "channel", "word")
        assert self.hears.read() == [b"message", b"channel", b"word"]
        self.gathers.expect([b"OK"], "EXEC")
        c.expect(1, "DEL", "gathered")


def main():
    builds = [real.built("redis", v) for v in sys.argv[1:3]]
    times = int(sys.argv[3]) if len(sys.argv) > 3 else len(real.ENDS)
    if os.environ.get("FETCH_ONLY"):
        return
    with real.Server(builds[0], words, True) as server:
        first = Client(server.port)
        fill(first)
        standing = Standing(server.port)
        loads = [Load(Client(server.port), i) for i in range(3)]
        for one in loads:
            one.start()
        runs = real.rounds(server, builds, loads, times)
        for one in loads:
            one.stop()
        loads_are(Client(server.port), loads)
        standing.over(first)
        with real.Server(builds[runs], words, False) as natively:
            other = Client(natively.port)
            fill(other)
            ours, theirs = state(first), state(other)
            assert len(theirs) > 1800 and ours.keys() == theirs.keys(), (len(ours), len(theirs))
            for key, value in theirs.items():
                assert ours[key] == value, f"{key}: {ours[key]} natively {value}"
    print("update_redis: ok")


main()
