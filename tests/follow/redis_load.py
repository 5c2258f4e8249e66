"""redis_load.py PORT SECONDS [IDLE] [RELEASE]: every data type, expiry, publishing, Lua,
MULTI, blocking pops, pipelines, snapshots and rewrites, from many clients at once.
RELEASE: only what that release of Redis knows; then nothing is saved, and nothing is
larger than what it reads at once.  tests/strangers has the same tasks."""
import sys
import time

from load import Load, Wrong, connect, must

WORDS = sys.argv if __name__ == "__main__" else [__file__, 0]
PORT = int(WORDS[1])
RELEASE = tuple(int(n) for n in WORDS[4].split(".")[:2]) if len(WORDS) > 4 else ()

class Redis:
    def __init__(self):
        self.socket = connect(PORT)
        self.file = self.socket.makefile("rb")

    def send(self, *words):
        out = [b"*%d\r\n" % len(words)]
        for w in words:
            w = w if isinstance(w, bytes) else str(w).encode()
            out.append(b"$%d\r\n%s\r\n" % (len(w), w))
        self.socket.sendall(b"".join(out))

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise Wrong(f"the connection ended: {line!r}")
        kind, rest = line[:1], line[1:-2]
        if kind == b"$":
            return self.file.read(int(rest) + 2)[:-2] if rest != b"-1" else None
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))] if rest != b"-1" else None
        return int(rest) if kind == b":" else line[:-2]

    def ask(self, *words):
        self.send(*words)
        return self.reply()

    def text(self, line):
        return self.ask(*line.split())


def table(rows):
    """A task of one client: commands with the replies that they must have."""
    def make(_, number):
        r, turn = Redis(), [0]

        def step():
            turn[0] += 1
            k = f"{make.__name__}:{number}:{turn[0] % 50}"
            r.ask("del", k)
            for line, expected in rows:
                line = " ".join(w.replace("K", k, 1) if w[0] == "K" else w for w in line.split())
                got = r.text(line)
                if line[:10] == "XREADGROUP":  # it names the key
                    got[0][0] = b"K"
                must(got, expected, line)
            return len(rows) + 1
        return step
    return make


# A command, the release that knows it first, and what an older one is asked in its place.
SINCE = {
    "GETDEL": ((6, 2), ("DEL K", 1)),
    "LMOVE": ((6, 2), ("LPOP K", b"a")),
    "COPY": ((6, 2), ("SET K:c 1", b"+OK")),
    "SINTERCARD": ((7, 0), ("SCARD K", 2)),
    "OBJECT": ((7, 0), ("EXISTS K", 1)),
}


def known(row):
    release, other = SINCE.get(row[0].split()[0], ((), row))
    return row if not RELEASE or release <= RELEASE else other


def task(name, rows):
    make = table([known(row) for row in rows])
    make.__name__ = name
    return make


OK, QUEUED = b"+OK", b"+QUEUED"
TASKS = [
    task("string", [("SET K hello", OK), ("APPEND K -world", 11), ("GET K", b"hello-world"),
                    ("SETRANGE K 6 there", 11), ("GETRANGE K 0 4", b"hello"), ("STRLEN K", 11),
                    ("GETDEL K", b"hello-there"), ("INCRBY K 41", 41), ("INCRBYFLOAT K 0.5", b"41.5"),
                    ("SETBIT K 100 1", 0), ("GETBIT K 100", 1), ("MSET K 1 K:x 2", OK),
                    ("MGET K K:x K:none", [b"1", b"2", None])]),
    task("list", [("RPUSH K a b c d", 4), ("LPUSH K z", 5), ("LRANGE K 0 -1", [b"z", b"a", b"b", b"c", b"d"]),
                  ("LINSERT K BEFORE b y", 6), ("LPOP K", b"z"), ("RPOP K", b"d"), ("LLEN K", 4),
                  ("LMOVE K K LEFT RIGHT", b"a"), ("LTRIM K 0 1", OK), ("LRANGE K 0 -1", [b"y", b"b"])]),
    task("hash", [("HSET K one 1 two 2", 2), ("HGET K two", b"2"), ("HINCRBY K one 9", 10),
                  ("HMGET K one two", [b"10", b"2"]), ("HDEL K two", 1), ("HGETALL K", [b"one", b"10"])]),
    task("set", [("SADD K a b c", 3), ("SADD K c", 0), ("SISMEMBER K b", 1), ("SCARD K", 3),
                 ("SREM K a", 1), ("SINTERCARD 1 K", 2)]),
    task("sorted", [("ZADD K 3 c 1 a 2 b", 3), ("ZRANGE K 0 -1", [b"a", b"b", b"c"]),
                    ("ZINCRBY K 5 a", b"6"), ("ZRANK K a", 2), ("ZPOPMIN K", [b"b", b"2"]),
                    ("ZRANGEBYSCORE K 3 6", [b"c", b"a"])]),
    task("stream", [("XADD K 1-1 f v", b"1-1"), ("XADD K 2-1 f w", b"2-1"), ("XLEN K", 2),
                    ("XRANGE K - +", [[b"1-1", [b"f", b"v"]], [b"2-1", [b"f", b"w"]]]),
                    ("XGROUP CREATE K g 0", OK),
                    ("XREADGROUP GROUP g me COUNT 1 STREAMS K >",
                     [[b"K", [[b"1-1", [b"f", b"v"]]]]]), ("XACK K g 1-1", 1)]),
    task("others", [("PFADD K a b c", 1), ("PFCOUNT K", 3), ("DEL K", 1),
                    ("GEOADD K 13.36 38.11 Palermo 15.08 37.50 Catania", 2), ("ZCARD K", 2),
                    ("OBJECT ENCODING K", b"listpack"), ("TYPE K", b"+zset"), ("COPY K K:c REPLACE", 1),
                    ("UNLINK K:c", 1)]),
    task("multi", [("MULTI", OK), ("SET K 1", QUEUED), ("INCR K", QUEUED), ("EXEC", [OK, 2]),
                   ("WATCH K", OK), ("SET K 5", OK), ("MULTI", OK), ("INCR K", QUEUED),
                   ("EXEC", None), ("MULTI", OK), ("DISCARD", OK), ("GET K", b"5")]),
]


def lua(_, number):
    r = Redis()
    script = "local v = redis.call('incr', KEYS[1]) return {v, ARGV[1], redis.call('get', KEYS[1])}"
    sha, turn = r.ask("script", "load", script), [0]
    r.ask("del", f"lua:{number}")

    def step():
        turn[0] += 1
        n = turn[0]
        how = ("evalsha", sha) if n % 2 else ("eval", script)
        return must(r.ask(*how, 1, f"lua:{number}", n), [n, b"%d" % n, b"%d" % n], "lua")
    return step


def expiry(_, number):
    r, turn = Redis(), [0]

    def step():
        turn[0] += 1
        k = f"short:{number}:{turn[0]}"
        must(r.ask("set", k, "v", "px", 30), OK)
        for i in range(20):
            must(r.ask("set", f"{k}:{i}", "v", "px", 20 + i), OK)
        if not RELEASE and r.ask("pttl", k) > 30:
            raise Wrong("pttl")
        time.sleep(0.06)
        must(r.ask("get", k), None, "expired")
        return 23
    return step


def publishing(_, number):
    speaker, listener, turn = Redis(), Redis(), [0]
    channel = b"channel:%d" % number
    listener.ask("subscribe", channel)
    listener.ask("psubscribe", channel + b"*")

    def step():
        turn[0] += 1
        text = b"message %d" % turn[0]
        must(speaker.ask("publish", channel, text), 2)
        must(listener.reply(), [b"message", channel, text])
        must(listener.reply(), [b"pmessage", channel + b"*", channel, text])
        return 1
    return step


def blocking(_, number):
    taker, giver, turn = Redis(), Redis(), [0]
    key = b"waited:%d" % number
    giver.ask("del", key)

    def step():
        turn[0] += 1
        text = b"%d" % turn[0]
        taker.send("blpop", b"none", key, 0)
        must(giver.ask("rpush", key, text), 1)
        must(taker.reply(), [key, text], "blpop")
        taker.send("bzpopmin", key + b"z", 0)
        must(giver.ask("zadd", key + b"z", 1, text), 1)
        must(taker.reply(), [key + b"z", text, b"1"], "bzpopmin")
        return 4
    return step


def pipelines(_, number):
    r, key = Redis(), f"piped:{number}"
    r.ask("set", key, 0)
    turn = [0]

    def step():
        r.socket.sendall(b"INCR %s\r\n" % key.encode() * 100)
        for _ in range(100):
            turn[0] += 1
            must(r.reply(), turn[0], "pipeline")
        return 100
    return step


def large(_, number):
    r, turn = Redis(), [0]

    def step():
        turn[0] += 1
        text = b"%d" % turn[0] * (1 << turn[0] % (11 if RELEASE else 18))
        must(r.ask("set", f"large:{number}", text), OK)
        must(r.ask("get", f"large:{number}"), text, "large")
        return 2
    return step


def fresh(_, number):
    """A connection for each command."""
    def step():
        r = Redis()
        must(r.ask("echo", f"hello {number}"), b"hello %d" % number)
        r.file.close()
        r.socket.close()
        return 1
    return step


def idle(_, number):
    """One of many connections that speak seldom."""
    r = Redis()

    def step():
        time.sleep(0.5)
        return must(r.ask("ping"), b"+PONG")
    return step


def saving(load, _):
    """Snapshots and rewrites, one after the other, all the time; between them
    what must not be under way then: Redis keeps the time-outs of blocked clients
    in a tree by their addresses, and a snapshot says how large it is."""
    r, turn = Redis(), [0]

    def busy():
        return b"in_progress:1" in r.ask("info", "persistence")

    def step():
        turn[0] += 1
        answer = r.ask("bgsave" if turn[0] % 2 else "bgrewriteaof")
        if not answer.startswith(b"+Background"):
            raise Wrong(f"saving: {answer!r}")
        while busy() and not load.over():
            time.sleep(0.05)
        must(r.ask("blpop", "nobody-gives", "0.1"), None, "blpop's time-out")
        info = r.ask("info", "persistence")
        if b"rdb_last_bgsave_status:ok" not in info or b"aof_last_write_status:ok" not in info:
            raise Wrong("a save has failed")
        return 2
    return step


TASKS += [lua, expiry, publishing, blocking, pipelines, large, fresh]


def main():
    load = Load(float(WORDS[2]))
    for make in TASKS:
        load.add(make, 2)
    load.add(idle, int(WORDS[3]) if len(WORDS) > 3 else 100)
    if not RELEASE:
        load.add(saving)
    load.run()


if __name__ == "__main__":
    main()
