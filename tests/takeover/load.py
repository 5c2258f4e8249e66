"""Clients that number their requests and check every reply.

A Load keeps several connections to a server busy from a thread of its own, some
requests of each always under way.  What a reply must be follows from its
number, so a reply that is lost, doubled, mixed up or made twice is seen at
once.  The last connections close and connect again now and then.
"""
import contextlib
import selectors
import socket
import threading
import time


class Wrong(Exception):
    pass


class Talk:
    """What is asked, and what a reply must be; servers of others.py have one each, too."""
    DEPTH = 0       # requests under way at most, where that is fewer
    CHURN = True    # connections may be closed and opened again

    def __init__(self, who):
        self.who = who

    def open(self, port):
        s = socket.create_connection(("127.0.0.1", port), 10)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s


class Kv(Talk):
    """PUT and GET in turns: each GET reads what the PUT before it wrote."""

    def request(self, n):
        if n % 2:
            return b"GET key-%d\n" % self.who
        return b"PUT key-%d %d\n" % (self.who, n)

    def reply(self, n, data):
        """How many bytes of data are the right reply to n; 0: not all there."""
        want = b"VALUE %d\n" % (n - 1) if n % 2 else b"OK\n"
        return matched(want, data, n)


class Redis(Talk):
    """INCR, which would count twice if it were made twice, and GET."""

    def request(self, n):
        verb = b"GET" if n % 3 == 2 else b"INCR"
        key = b"c%d" % self.who
        return b"*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (len(verb), verb, len(key), key)

    def reply(self, n, data):
        count = b"%d" % (n - n // 3 + (n % 3 != 2))
        want = b"$%d\r\n%s\r\n" % (len(count), count) if n % 3 == 2 else b":%s\r\n" % count
        return matched(want, data, n)


class Memcached(Talk):
    def request(self, n):
        if n == 0:
            return b"set c%d 0 0 1\r\n0\r\n" % self.who
        return b"get c%d\r\n" % self.who if n % 3 == 0 else b"incr c%d 1\r\n" % self.who

    def reply(self, n, data):
        count = b"%d" % (n - n // 3)
        if n == 0:
            return matched(b"STORED\r\n", data, n)
        if n % 3:
            return matched(count + b"\r\n", data, n)
        if b"\r\nEND\r\n" not in data:
            return 0
        got = data[:data.index(b"\r\nEND\r\n") + 7]
        if got.split(b"\r\n")[1].strip() != count:
            raise Wrong(f"reply {n}: {got!r}, expected {count!r}")
        return len(got)


class Http(Talk):
    """An echo of the number, and a file of 20,000 bytes."""
    FILE = bytes(65 + i * 7 % 26 for i in range(20000))

    def request(self, n):
        path = b"/file" if n % 3 == 2 else b"/echo?n=%d-%d" % (self.who, n)
        return b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n" % path

    def reply(self, n, data):
        end = data.find(b"\r\n\r\n")
        if end < 0:
            return 0
        head, want = data[:end], self.FILE if n % 3 == 2 else b"%d-%d" % (self.who, n)
        length = [int(line[15:]) for line in head.split(b"\r\n")
                  if line.lower().startswith(b"content-length:")]
        if not head.startswith(b"HTTP/1.1 200") or length != [len(want)]:
            raise Wrong(f"reply {n}: {head!r}")
        body = data[end + 4:end + 4 + len(want)]
        if not want.startswith(body):
            raise Wrong(f"reply {n}: {body[:60]!r}, expected {want[:60]!r}")
        return end + 4 + len(want) if len(body) == len(want) else 0


def matched(want, data, n):
    if data.startswith(want):
        return len(want)
    if want.startswith(data):
        return 0
    raise Wrong(f"reply {n}: {data[:60]!r}, expected {want!r}")


KINDS = {"kv": Kv, "redis": Redis, "memcached": Memcached, "nginx": Http}


def talk_of(kind):
    from others import TALKS
    return KINDS.get(kind) or TALKS[kind]


class Connection:
    def __init__(self, port, kind, who, depth, lives):
        self.port, self.talk, self.who = port, talk_of(kind)(who), who
        self.depth = self.talk.DEPTH or depth
        # requests of a connection; 0: for ever
        self.lives = lives if self.talk.CHURN else 0
        self.sent = self.got = self.until = 0
        self.out = self.data = b""
        self.begun = []
        self.open()

    def open(self):
        self.socket = self.talk.open(self.port)
        self.socket.setblocking(False)
        self.until = self.got + self.lives if self.lives else None

    def fill(self, more):
        while more and self.sent - self.got < self.depth and self.sent != self.until:
            self.out += self.talk.request(self.sent)
            self.begun.append(time.monotonic())
            self.sent += 1
        if self.out:
            try:
                self.out = self.out[self.socket.send(self.out):]
            except BlockingIOError:
                pass

    def read(self):
        """The replies that have come; their times."""
        try:
            new = self.socket.recv(1 << 18)
        except BlockingIOError:
            return []
        if not new:
            raise Wrong("the server closed the connection")
        self.data += new
        times = []
        while self.data:
            if self.got == self.sent:
                raise Wrong(f"a reply to nothing: {self.data[:60]!r}")
            length = self.talk.reply(self.got, self.data)
            if not length:
                break
            self.data = self.data[length:]
            times.append(time.monotonic() - self.begun.pop(0))
            self.got += 1
        return times

    @property
    def waits(self):
        return self.sent != self.got or self.out


class Load:
    STUCK_S = 15

    def __init__(self, port, kind, connections=6, depth=4, churn=2, pause=0.0):
        self.replies, self.slowest, self.error = 0, 0.0, None
        self.pause = pause
        self.stopping = self.resting = False
        self.all = [Connection(port, kind, i, depth, 60 if i >= connections - churn else 0)
                    for i in range(connections)]
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        connection = None
        try:
            with selectors.DefaultSelector() as wait:
                for c in self.all:
                    wait.register(c.socket, selectors.EVENT_READ, c)
                    c.fill(True)
                last = time.monotonic()
                while not self.stopping or any(c.waits for c in self.all):
                    for key, _ in wait.select(0.05):
                        connection = key.data
                        times = connection.read()
                        if times:
                            last = time.monotonic()
                            self.replies += len(times)
                            self.slowest = max(self.slowest, *times)
                        self.again(wait, connection)
                    connection = None
                    if self.stopping:
                        continue
                    if self.resting:
                        last = time.monotonic()
                    for c in [] if self.resting else self.all:
                        if not c.waits:
                            self.again(wait, c)
                    if time.monotonic() - last > self.STUCK_S:
                        raise Wrong("no reply for %d s; waiting: %s" % (self.STUCK_S, [
                            (c.who, c.got, c.sent) for c in self.all if c.waits]))
                    if self.pause:
                        time.sleep(self.pause)
        except (Wrong, OSError) as e:
            self.error = f"connection {connection and connection.who}: {e!r}" + (
                f" (request {connection.got} of {connection.sent})" if connection else "")

    def again(self, wait, c):
        if c.until is not None and c.got == c.until:
            wait.unregister(c.socket)
            c.socket.close()
            c.open()
            wait.register(c.socket, selectors.EVENT_READ, c)
        c.fill(not self.stopping and not self.resting)

    def check(self):
        if self.error:
            raise Wrong(self.error)

    def more(self, n, seconds=15):
        """Waits for n more replies."""
        want, end = self.replies + n, time.monotonic() + seconds
        while self.replies < want:
            self.check()
            if time.monotonic() > end:
                raise Wrong(f"no more replies: {self.replies}, wanted {want}; waiting: " + str(
                    [(c.who, c.got, c.sent) for c in self.all if c.waits]))
            time.sleep(0.002)

    @contextlib.contextmanager
    def rest(self):
        """All that was asked has been answered, and nothing is asked meanwhile."""
        self.resting = True
        end = time.monotonic() + self.STUCK_S
        while any(c.waits for c in self.all):
            self.check()
            if time.monotonic() > end:
                raise Wrong("replies are missing: " + str(
                    [(c.who, c.got, c.sent) for c in self.all if c.waits]))
            time.sleep(0.002)
        yield
        self.resting = False

    def stop(self):
        """All that was asked has been answered; how many replies."""
        self.stopping = True
        self.thread.join(20)
        self.check()
        if self.thread.is_alive():
            raise Wrong("replies are missing: " + str(
                [(c.who, c.got, c.sent) for c in self.all if c.waits]))
        for c in self.all:
            c.socket.close()
        return sum(c.got for c in self.all)
