#!/usr/bin/env python3
"""spill.py CASE...: a follower that is rings behind goes on from disk (--when-full spill).

stopped		it is stopped while a server tells many rings: it is not dropped, reads all of it, leads,
		and has what its leader had; memory was the ring's
crash		the leader crashes meanwhile: it reads all that was told, and leads
kept		the same of who led before, twice: each section is the leader's in its turn
over		its spiller is killed: it is said, the server goes on, the follower is dropped
flipped		a bit of each chunk in the file is another: who comes there is dropped, the others and
		the server go on
flipped_lead	the same, and the server crashes: who would have to believe it does not lead
full		the file takes no more: the same, but that it goes on trying
small		so it is where the disk itself is full, and a recording is on it, too (root)
several		three followers, stopped one behind the other, and a takeover meanwhile: each reads all
unasked		where nothing is said it is so, too: no file before somebody is behind, none behind that
unfit		but where no disk is there for it the follower is dropped, which is said, and why
shares		of a disk that nobody has named it has an eighth of what is free, and no more (root)
breaks		the disk fails: it is said, the server goes on, the follower is dropped (root)
bounded		more is told than --log-max has: the follower is dropped, the server goes on
near		a large ring is not between what is mve's and the libraries: their calls are patched
start		--from-start: a program begins where the server began, rings ago, and then leads;
		who is dropped begins there again
soak		as `stopped`, for 60 s at full load; the times of its requests, before and meanwhile
"""
import contextlib
import fcntl
import json
import os
import random
import resource
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time

from waits import LONG, MVE, NAME, connect, fail, free_port, waited

MIB = 1 << 20
VALUE = 4000
BATCH = 64
CHUNK = 32768
DAMAGED = "damaged on the disk"
SHUTDOWN, NO_LOG = 0x8004587d, 2     # EXT4_IOC_SHUTDOWN
SOAK_S = int(os.environ.get("SOAK_S", 60))


def value_of(number):
    return (b"%08d" % number) * (VALUE // 8)


class Redis:
    """Under mve with one follower and a small ring."""

    def __init__(self, *options, ring="2M", follows=("-f", "same"), limits=()):
        self.port = free_port()
        with open("server.log", "ab") as log:
            self.mve = subprocess.Popen(
                [MVE, "run", "-n", NAME, *follows, "--ring", ring, "--full-ms", "20000",
                 *options, "--", "redis-server", "--port", str(self.port), "--save", ""],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                preexec_fn=lambda: [resource.setrlimit(*limit) for limit in limits])
        self.sock = waited(lambda: connect(self.port), "the server listens")
        self.replies = self.sock.makefile("rb")

    def ask(self, requests, replies):
        """The requests at once; the replies must be these."""
        self.sock.sendall(requests)
        got = self.replies.read(len(replies))
        if got != replies:
            fail(f"{got[:80]!r} for {replies[:80]!r}")

    def fill(self, numbers):
        numbers = list(numbers)
        for i in range(0, len(numbers), BATCH):
            part = numbers[i:i + BATCH]
            self.ask(b"".join(b"*3\r\n$3\r\nSET\r\n$12\r\nkey:%08d\r\n$%d\r\n%s\r\n" %
                              (n % 1000, VALUE, value_of(n)) for n in part),
                     b"+OK\r\n" * len(part))

    def has(self, numbers):
        for n in numbers:
            value = value_of(n)
            self.ask(b"*2\r\n$3\r\nGET\r\n$12\r\nkey:%08d\r\n" % (n % 1000),
                     b"$%d\r\n%s\r\n" % (len(value), value))

    def status(self):
        p = subprocess.run([MVE, "status", NAME, "--json"], capture_output=True, text=True)
        if p.returncode:
            fail(f"status: {p.stderr}")
        return json.loads(p.stdout)

    def follower(self, name="f1"):
        return next(v for v in self.status()["versions"] if v["name"] == name)

    def end(self):
        if self.mve.poll() is None:
            self.mve.terminate()
        return self.mve.wait(LONG)

    def said(self):
        with open("server.log", errors="replace") as log:
            return log.read()


def stop(r):
    waited(lambda: r.follower()["role"] == "follower", "the follower comes")
    pid = r.follower()["pid"]
    os.kill(pid, signal.SIGSTOP)
    return pid


def caught_up(r, name="f1"):
    f = r.follower(name)
    if f["role"] not in ("starting", "follower"):
        fail(f"the follower does not follow any more: {f}")
    return f["role"] == "follower" and f["lag_cells"] == 0


def is_equal_at_last(r, pid, last):
    spill = r.status()["ring"]["spill"]
    if spill["on_disk"] < 4 * MIB:
        fail(f"hardly anything is on disk: {spill}")
    os.kill(pid, signal.SIGCONT)
    waited(lambda: caught_up(r), "the follower catches up")
    subprocess.run([MVE, "promote", NAME, "f1", "--wait"], check=True, stdout=subprocess.DEVNULL)
    r.has(range(last - 1000, last))
    r.fill(range(last, last + 100))
    return r.status()["ring"]["spill"]


def stopped():
    r = Redis("--when-full", "spill", "--log-max", "256M")
    r.fill(range(1000))
    waited(lambda: caught_up(r), "the follower comes")
    pid = stop(r)
    last = 1000 + 24 * MIB // VALUE
    r.fill(range(1000, last))
    if "drop" in r.said():
        fail("dropped")
    spill = is_equal_at_last(r, pid, last)
    # What a follower needs and no other gives up is more than that: a chunk for each of its lanes.
    if spill["memory_most"] > 3 * MIB:
        fail(f"more memory than the ring has: {spill}")
    r.end()


def crash():
    r = Redis("--when-full", "spill", "--log-max", "256M")
    pid, last = stop(r), 12 * MIB // VALUE
    r.fill(range(last))
    status = r.status()
    os.kill(pid, signal.SIGCONT)
    os.kill(status["server"], signal.SIGSEGV)
    r.has(range(last - 1000, last))
    if r.follower()["role"] != "leader":
        fail(f"it does not lead: {r.follower()}")
    r.end()


def kept():
    r = Redis("--when-full", "spill", "--log-max", "256M")
    r.fill(range(1000))
    last, size = 1000, 8 * MIB // VALUE
    for leads, follows in ("f1", "v0"), ("v0", "f1"):
        subprocess.run([MVE, "promote", NAME, leads, "--keep", "--wait"], check=True,
                       stdout=subprocess.DEVNULL)
        waited(lambda: caught_up(r, follows), "the old leader follows")
        pid = r.follower(follows)["pid"]
        os.kill(pid, signal.SIGSTOP)
        r.fill(range(last, last + size))
        last += size
        waited(lambda: r.status()["ring"]["spill"]["on_disk"] > 2 * MIB, "it is on disk")
        os.kill(pid, signal.SIGCONT)
        waited(lambda: caught_up(r, follows), "it catches up")
    r.has(range(last - 1000, last))
    r.end()


def spiller_of(pid):
    for child in open(f"/proc/{pid}/task/{pid}/children").read().split():
        if open(f"/proc/{child}/comm").read().strip() == "mve-spill":
            return int(child)
    fail("no spiller")


def over():
    r = Redis("--when-full", "spill", "--full-ms", "500")
    pid = stop(r)
    r.fill(range(2000))
    waited(lambda: r.status()["ring"]["spill"]["on_disk"] > MIB, "something is on disk")
    os.kill(spiller_of(r.mve.pid), signal.SIGKILL)
    waited(lambda: "nothing is spilled any more" in r.said(), "it is said")
    r.fill(range(2000, 4000))
    os.kill(pid, signal.SIGCONT)
    waited(lambda: r.follower()["role"] == "ended", "the follower is dropped")
    r.has(range(3000, 4000))
    r.end()


def bits_flip(spiller):
    """In each chunk that the spiller's file has: one, anywhere."""
    for fd in os.listdir(f"/proc/{spiller}/fd"):
        path = f"/proc/{spiller}/fd/{fd}"
        if "/memfd:" in os.readlink(path) or not stat.S_ISREG(os.stat(path).st_mode):
            continue
        with open(path, "r+b", buffering=0) as f:
            end = f.seek(0, os.SEEK_END)
            for at in range(0, end, CHUNK):
                at += random.randrange(CHUNK)
                byte = os.pread(f.fileno(), 1, at)
                os.pwrite(f.fileno(), bytes([byte[0] ^ 1 << random.randrange(8)]), at)
        return
    fail("the spiller has no file")


def behind_what_is_flipped(*others):
    """The first follower is; the others have read all."""
    r = Redis("--when-full", "spill", "--log-max", "256M",
              follows=("-f", "same") * (1 + len(others)))
    r.fill(range(1000))
    for name in ("f1", *others):
        waited(lambda: caught_up(r, name), f"{name} comes")
    pid = stop(r)
    r.fill(range(1000, 6000))
    for name in others:
        waited(lambda: caught_up(r, name), f"{name} catches up")
    if r.status()["ring"]["spill"]["on_disk"] < 4 * MIB:
        fail("hardly anything is on disk")
    spiller = spiller_of(r.mve.pid)
    os.kill(spiller, signal.SIGSTOP)
    bits_flip(spiller)
    os.kill(spiller, signal.SIGCONT)
    return r, pid


def flipped():
    r, pid = behind_what_is_flipped("f2")
    os.kill(pid, signal.SIGCONT)
    waited(lambda: r.follower()["role"] == "ended", "the follower is dropped")
    if DAMAGED not in r.follower()["why"]:
        fail(r.follower())
    r.fill(range(6000, 7000))
    waited(lambda: caught_up(r, "f2"), "the other follows")
    subprocess.run([MVE, "promote", NAME, "f2", "--wait"], check=True, stdout=subprocess.DEVNULL)
    r.has(range(6000, 7000))
    r.end()


def flipped_lead():
    r, _ = behind_what_is_flipped()
    os.kill(r.status()["server"], signal.SIGSEGV)
    with contextlib.suppress(ConnectionError):
        r.sock.sendall(b"PING\r\n")
        if r.replies.read():
            fail("it answers, and cannot know what")
    waited(lambda: r.mve.poll() is not None, "the session ends")
    if DAMAGED not in r.said():
        fail(f"it is not said: {r.said()}")


def full():
    r = Redis("--when-full", "spill", "--full-ms", "500")
    stop(r)
    spiller = spiller_of(r.mve.pid)
    resource.prlimit(spiller, resource.RLIMIT_FSIZE, (MIB, MIB))
    r.fill(range(4000))
    if "cannot spill: File too large" not in r.said():
        fail("it is not said")
    waited(lambda: r.follower()["role"] == "ended", "the follower is dropped")
    r.has(range(3000, 4000))
    r.end()


@contextlib.contextmanager
def disk(size):
    here, image = os.path.abspath("small"), "small.img"
    os.makedirs(here, mode=0o700, exist_ok=True)
    with open(image, "wb") as f:
        f.truncate(size)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, here], check=True)
    try:
        yield here
    finally:
        subprocess.run(["umount", "-l", here], check=True)


def goes_on_without(r, last, *said):
    waited(lambda: r.follower()["role"] == "ended", "the follower is dropped")
    for what in said:
        if what not in r.said():
            fail(f"not said: {what}: {r.said()}")
    r.has(range(last - 1000, last))
    r.end()


def small():
    with disk(16 * MIB) as here:
        r = Redis("--when-full", "spill", "--full-ms", "500", "--record", f"{here}/log")
        stop(r)
        r.fill(range(8000))
        goes_on_without(r, 8000, "cannot spill: No space left",
                        "the recording ends: cannot write: No space")


def files_of(pid):
    """The regular ones that it has open: mve's own memory is none."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{fd}"
        if "/memfd:" not in os.readlink(path) and stat.S_ISREG(os.stat(path).st_mode):
            found.append(os.stat(path))
    return found


def unasked():
    r = Redis()
    r.fill(range(1000))
    waited(lambda: caught_up(r), "the follower comes")
    ring = r.status()["ring"]
    if ring["when_full"] != "spill" or ring["spill"]["most"] > 1 << 30 or "no_spill" in ring:
        fail(ring)
    spiller = spiller_of(r.mve.pid)
    waited(lambda: not files_of(spiller), "no file while nobody is behind")
    pid, last = stop(r), 1000 + 12 * MIB // VALUE
    r.fill(range(1000, last))
    file, = files_of(spiller)
    if file.st_nlink or stat.S_IMODE(file.st_mode) != 0o600:
        fail(file)
    is_equal_at_last(r, pid, last)
    waited(lambda: not files_of(spiller), "no file when all has been read")
    r.end()


def unfit():
    memory = tempfile.mkdtemp(dir="/dev/shm")
    ways = ((("--record", f"{memory}/log"), (), "it lies in memory"),
            ((), ((resource.RLIMIT_FSIZE, (256 * MIB,) * 2),), "ulimit -f"))
    try:
        for options, limits, why in ways:
            r = Redis("--full-ms", "500", *options, limits=limits)
            ring = r.status()["ring"]
            if ring["when_full"] != "drop" or why not in ring["no_spill"] or "spill" in ring:
                fail(ring)
            stop(r)
            r.fill(range(4000))
            goes_on_without(r, 4000, "nothing is spilled to", why)
    finally:
        shutil.rmtree(memory)


def shares():
    with disk(200 * MIB) as here:
        r = Redis("--full-ms", "500", "--record", f"{here}/log")
        stop(r)
        r.fill(range(10000))
        most = r.status()["ring"]["spill"]["written"]
        if not 8 * MIB < most <= 26 * MIB:
            fail(f"{most} bytes of a disk of 200 MiB")
        goes_on_without(r, 10000, "cannot spill more than an eighth of what is free")


def breaks():
    with disk(200 * MIB) as here:
        r = Redis("--full-ms", "500", "--record", f"{here}/log")
        pid = stop(r)
        r.fill(range(2000))
        waited(lambda: r.status()["ring"]["spill"]["on_disk"] > MIB, "something is on disk")
        folder = os.open(here, os.O_RDONLY)
        fcntl.ioctl(folder, SHUTDOWN, struct.pack("I", NO_LOG))
        os.close(folder)
        r.fill(range(2000, 4000))
        os.kill(pid, signal.SIGCONT)
        goes_on_without(r, 4000, "Input/output error")


def several():
    r = Redis("--when-full", "spill", "--log-max", "512M", "--full-ms", "60000",
              follows=("-f", "same") * 3)
    r.fill(range(1000))
    names, last, part = ("f1", "f2", "f3"), 1000, 8 * MIB // VALUE
    for name in names:
        waited(lambda: caught_up(r, name), f"{name} comes")
    pids = {}
    for name in names:      # one is a part ahead of the next
        pids[name] = r.follower(name)["pid"]
        os.kill(pids[name], signal.SIGSTOP)
        r.fill(range(last, last + part))
        last += part
    os.kill(pids["f3"], signal.SIGCONT)
    waited(lambda: caught_up(r, "f3"), "the first catches up")
    subprocess.run([MVE, "promote", NAME, "f3", "--wait"], check=True, stdout=subprocess.DEVNULL)
    r.fill(range(last, last + part))
    last += part
    waited(lambda: r.status()["ring"]["spill"]["on_disk"] > 8 * MIB, "it is on disk")
    for name in ("f1", "f2"):
        os.kill(pids[name], signal.SIGCONT)
        waited(lambda: caught_up(r, name), f"{name} catches up, by two streams")
    os.kill(r.status()["server"], signal.SIGSEGV)
    r.has(range(last - 1000, last))
    r.fill(range(last, last + 100))
    r.end()


def bounded():
    r = Redis("--when-full", "spill", "--log-max", "8M", "--full-ms", "500")
    stop(r)
    r.fill(range(8000))
    waited(lambda: r.follower()["role"] == "ended", "the follower is dropped")
    r.has(range(7000, 8000))
    r.end()


def near():
    r = Redis("--when-full", "drop", ring="1G")
    r.fill(range(1000))
    calls = r.status()["calls"]
    if calls["trap"] * 10 > calls["patch"]:
        fail(f"calls trap: {calls['trap']} of {calls['total']}")
    r.end()


def times_print(what, took):
    took = sorted(took)
    at = {f"{p} %": f"{took[int(len(took) * p / 100)] * 1000:.2f}" for p in (50, 90, 99, 99.9)}
    print(f"{what}: {len(took)} times {BATCH} requests, ms: {at}, most {took[-1] * 1000:.1f}",
          file=sys.stderr)


def soak():
    r = Redis("--when-full", "spill", "--log-max", "12G", ring="64M")
    last, took = 1000, []
    r.fill(range(last))
    waited(lambda: caught_up(r), "the follower comes")
    for _ in range(1000):
        since = time.monotonic()
        r.fill(range(last, last + BATCH))
        took.append(time.monotonic() - since)
        last += BATCH
    times_print("it follows", took)
    pid, took = stop(r), []
    end = time.monotonic() + SOAK_S
    while time.monotonic() < end:
        since = time.monotonic()
        r.fill(range(last, last + BATCH))
        took.append(time.monotonic() - since)
        last += BATCH
    print(f"told {r.status()['ring']}", file=sys.stderr)
    times_print("it stands", took)
    spill = is_equal_at_last(r, pid, last)
    print(f"at last {spill}", file=sys.stderr)
    if spill["memory_most"] > 66 * MIB:
        fail(f"more memory than the ring has: {spill}")
    r.end()


def follow(r, *words, status=0):
    p = subprocess.run([MVE, "follow", NAME, *words], capture_output=True, text=True)
    if p.returncode != status:
        fail(f"mve follow: {p.returncode}: {p.stdout}{p.stderr}")
    return p.stderr


def start():
    r = Redis("--from-start", "--log-max", "256M", follows=())
    same = ["--", "redis-server", "--port", str(r.port), "--save", ""]
    last = 16 * MIB // VALUE
    r.fill(range(last))
    if r.status()["ring"]["spill"]["on_disk"] < 8 * MIB:
        fail("what it told is not kept")
    follow(r, "--name", "one", "--from-start", *same)
    waited(lambda: caught_up(r, "one"), "it catches up")
    subprocess.run([MVE, "drop", NAME, "one"], check=True, stdout=subprocess.DEVNULL)
    r.fill(range(last, last + 500))
    follow(r, "--name", "two", "--from-start", *same)
    waited(lambda: caught_up(r, "two"), "another catches up")
    r.fill(range(last + 500, last + 1000))
    subprocess.run([MVE, "promote", NAME, "two", "--wait"], check=True, stdout=subprocess.DEVNULL)
    r.has(range(last, last + 1000))
    r.fill(range(last + 1000, last + 1100))
    said = follow(r, "--from-start", *same, status=1)
    if "does not lead any more" not in said:
        fail(said)
    r.end()


for case in sys.argv[1:]:
    globals()[case]()
    print(f"{case}: ok")
