"""memcached_load.py PORT SECONDS: counters, cas, expiry, large values, several
keys at once, and so many values that most are thrown out.  tests/strangers has the same tasks."""
import sys
import time

import load
from load import Load, Wrong, connect, must

PORT = int(sys.argv[1]) if __name__ == "__main__" else 0


class Memcached:
    def __init__(self):
        self.socket = connect(PORT)
        self.file = self.socket.makefile("rb")

    def line(self):
        got = self.file.readline()
        if not got.endswith(b"\r\n"):
            raise Wrong(f"the connection ended: {got!r}")
        return got[:-2]

    def ask(self, text):
        self.socket.sendall(text + b"\r\n")
        return self.line()

    def set(self, key, value, life=0, how=b"set"):
        return self.ask(b"%s %s 7 %d %d\r\n%s" % (how, key, life, len(value), value))

    def get(self, *keys, how=b"get"):
        """What is there: value, or (value, cas) for gets."""
        self.socket.sendall(how + b" " + b" ".join(keys) + b"\r\n")
        found = {}
        while (line := self.line()) != b"END":
            words = line.split()
            value = self.file.read(int(words[3]) + 2)[:-2]
            found[words[1]] = (value, words[4]) if len(words) > 4 else value
        return found


def values(_, number):
    m, turn = Memcached(), [0]

    def step():
        turn[0] += 1
        key, value = b"key-%d-%d" % (number, turn[0] % 50), b"value %d" % turn[0]
        must(m.set(key, value), b"STORED")
        must(m.set(key, b"!", how=b"append"), b"STORED")
        must(m.get(key), {key: value + b"!"})
        must(m.set(key, b"new", how=b"add"), b"NOT_STORED")
        must(m.set(key, b"old", how=b"replace"), b"STORED")
        must(m.ask(b"touch " + key + b" 100"), b"TOUCHED")
        must(m.ask(b"delete " + key), b"DELETED")
        must(m.get(key, b"none"), {})
        return 8
    return step


def counters(_, number):
    m, key, turn = Memcached(), b"count-%d" % number, [0]
    m.set(key, b"0")

    def step():
        turn[0] += 1
        must(m.ask(b"incr " + key + b" 3"), b"%d" % (turn[0] * 2 + 1), "incr")
        must(m.ask(b"decr " + key + b" 1"), b"%d" % (turn[0] * 2), "decr")
        return 2
    return step


def cas(_, number):
    """Two clients, one of which comes too late each time."""
    one, other, turn = Memcached(), Memcached(), [0]
    key = b"cas-%d" % number

    def step():
        turn[0] += 1
        value = b"%d" % turn[0]
        must(one.set(key, value), b"STORED")
        (seen, mark), = other.get(key, how=b"gets").values()
        must(seen, value)
        must(other.ask(b"cas %s 0 0 2 %s\r\n-1" % (key, mark)), b"STORED")
        must(one.ask(b"cas %s 0 0 2 %s\r\n-2" % (key, mark)), b"EXISTS")
        return 4
    return step


def shared(_, number):
    """Many threads count one counter."""
    m = Memcached()
    m.set(b"shared", b"0", how=b"add")
    last = [0]

    def step():
        now = int(m.ask(b"incr shared 1"))
        if now <= last[0]:
            raise Wrong(f"a counter goes back: {now} after {last[0]}")
        last[0] = now
        return 1
    return step


def evictions(_, number):
    m, turn = Memcached(), [0]

    def value(n):
        return b"%d-%d " % (number, n) * (1 + n % 300)

    def step():
        turn[0] += 1
        must(m.set(b"many-%d-%d" % (number, turn[0]), value(turn[0])), b"STORED")
        if turn[0] % 20:
            return 1
        keys = [b"many-%d-%d" % (number, n) for n in range(max(turn[0] - 1000, 1), turn[0], 50)]
        for key, got in m.get(*keys).items():
            must(got, value(int(key.split(b"-")[2])), "kept")
        return 2
    return step


def large(_, number):
    m, turn = Memcached(), [0]

    def step():
        turn[0] += 1
        text = b"%d" % turn[0] * (1 << 12 + turn[0] % 4)
        key = b"large-%d" % number
        if m.set(key, text) == b"STORED" and m.get(key).get(key, text) != text:
            raise Wrong("a large value")
        return 2
    return step


def expiry(_, number):
    m, turn = Memcached(), [0]

    def step():
        turn[0] += 1
        key = b"short-%d-%d" % (number, turn[0])
        must(m.set(key, b"v", 1), b"STORED")
        must(m.set(key + b"-", b"v", -1), b"STORED")
        must(m.get(key + b"-"), {}, "born dead")
        gone_by = time.monotonic() + load.WAIT_S
        while m.get(key):  # its clock is a timer of its own, which may be late
            if time.monotonic() > gone_by:
                raise Wrong("a value does not expire")
            time.sleep(0.7)
        return 4
    return step


def pipelines(_, number):
    m, key = Memcached(), b"piped-%d" % number
    m.set(key, b"0")
    turn = [0]

    def step():
        m.socket.sendall(b"incr " + key + b" 1\r\n" + b"incr %s 1\r\n" % key * 49)
        for _ in range(50):
            turn[0] += 1
            must(m.line(), b"%d" % turn[0], "pipeline")
        return 50
    return step


def fresh(_, number):
    def step():
        m = Memcached()
        must(m.ask(b"verbosity 0"), b"OK")
        m.file.close()
        m.socket.close()
        return 1
    return step


TASKS = (values, counters, cas, shared, evictions, large, expiry, pipelines, fresh)


def main():
    tasks = Load(float(sys.argv[2]))
    for make in TASKS:
        tasks.add(make, 4)
    tasks.run()


if __name__ == "__main__":
    main()
