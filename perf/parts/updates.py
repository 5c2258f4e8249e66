"""How long a client waits while a server with a million entries is updated.

Redis with 1,000,000 keys (some 250 MB), as servers/update prepares it, from Debian's revision
deb12u7 to u10.  A client asks for one key after the other, each millisecond, and notes how long
each reply takes: with the server native and left alone; while a twin of it becomes the new
version, leads and is alone; while it is updated in place.  Beside them what fork(2) takes of the
native one, as Redis tells it.  What one fork takes is half or twice what the next one does, so
native and by a twin are done in turns, and medians are compared.
"""

import os
import random
import socket
import subprocess
import threading
import time

from . import figures, plots, processes, session

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
KEYS, BYTES = 1000000, 150
PAUSE_S = 0.001
LONE_S = 3          # before, and behind
LIMIT_S = 100       # for a stage to come, and for threads to their points
LIMIT_MS = str(1000 * LIMIT_S)
PORTIONS = 100      # of a run, in its plot
ROUNDS, QUICK_ROUNDS = 7, 3
WIDTHS = (-12, 11, 11, 11, 11, 11)
WAYS = ("native", "by a twin", "in place")


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), LIMIT_S)
        self.file = self.socket.makefile("rb")

    def ask(self, *words):
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(
            b"$%d\r\n%s\r\n" % (len(w), w) for w in (str(w).encode() for w in words)))
        line = self.file.readline()
        if not line or line[:1] == b"-":
            raise processes.Failed(f"{words[0]}: {line.decode().strip() or 'closed'}")
        return self.file.read(int(line[1:]) + 2)[:-2] if line[:1] == b"$" else line[1:-2]

    def told(self, section, key):
        for line in self.ask("INFO", section).decode().splitlines():
            if line.startswith(key + ":"):
                return int(line.split(":")[1])
        raise processes.Failed(f"INFO {section} has no {key}")


class Asking(threading.Thread):
    """(when, how long) of each request, in seconds."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.client, self.replies, self.failed = Client(port), [], None
        self.over = threading.Event()
        self.begun = time.monotonic()

    def run(self):
        try:
            while not self.over.is_set():
                key, begun = f"key:{random.randrange(KEYS)}", time.monotonic()
                if not self.client.ask("GET", key).startswith(b"value:"):
                    raise processes.Failed(f"{key} is another")
                self.replies.append((begun - self.begun, time.monotonic() - begun))
                time.sleep(PAUSE_S)
        except (OSError, ValueError, processes.Failed) as e:
            self.failed = e

    def stop(self):
        self.over.set()
        self.join(LIMIT_S)
        if self.failed or self.is_alive():
            raise processes.Failed(f"the client: {self.failed or 'no reply'}")


class Server:
    """Redis with all keys, run by mve-driver."""

    def __init__(self, ways, before, driver, build):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.running = processes.Running(
            [*before, *driver, build, "--port", str(self.port), "--save", "",
             "--dbfilename", f"{self.port}.rdb",
             "--enable-debug-command", "yes", "--io-threads", "1"], ways.folder,
            (ways.mve,) if before else ())
        end = time.monotonic() + LIMIT_S
        while True:
            try:
                self.client = Client(self.port)
                break
            except OSError as e:
                if time.monotonic() > end:
                    raise processes.Failed(self.running.said()) from e
                time.sleep(0.05)
        self.client.ask("DEBUG", "POPULATE", KEYS, "key", BYTES)


def built(server, version):
    run = subprocess.run([f"{ROOT}/servers/update/build", server, version],
                         capture_output=True, text=True, check=False)
    if run.returncode:
        raise processes.Failed(" ".join(run.stderr.split()))
    return run.stdout.strip()


def do(*words):
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    if run.returncode:
        raise processes.Failed(" ".join((run.stderr or run.stdout).split()))


def _asked(server, during):
    """All replies, with what `during` does in their midst: (marks, replies)."""
    asking, marks = Asking(server.port), []
    asking.start()
    time.sleep(LONE_S)

    def mark(name):
        marks.append((time.monotonic() - asking.begun, name))
    during(mark)
    mark("done")
    time.sleep(LONE_S)
    asking.stop()
    return marks, asking.replies


def _row(way, marks, replies, **more):
    waits = sorted(1000 * took for _, took in replies)
    whole = replies[-1][0] + replies[-1][1]
    worst = [0.0] * PORTIONS
    for when, took in replies:
        at = min(PORTIONS - 1, int(PORTIONS * when / whole))
        worst[at] = max(worst[at], 1000 * took)
    return {"way": way, "longest": waits[-1], "p99": waits[len(waits) * 99 // 100],
            "median": figures.median(waits), "replies": len(waits), "seconds": whole,
            "marks": marks, "worst": worst, **more}


def _native(ways, old, seconds):
    server = Server(ways, (), (ways.program("../mve-driver"),), old)
    try:
        marks, replies = _asked(server, lambda mark: time.sleep(seconds))
        megabytes = server.client.told("memory", "used_memory") / 1e6
        server.client.ask("BGSAVE")
        while server.client.told("persistence", "rdb_bgsave_in_progress"):
            time.sleep(0.1)
        return _row("native", marks, replies, megabytes=megabytes,
                    fork_ms=server.client.told("stats", "latest_fork_usec") / 1000)
    finally:
        server.running.stop()


def until_stage(s, name):
    end = time.monotonic() + LIMIT_S
    while s.status()["update"]["stage"] != name:
        if time.monotonic() > end:
            raise processes.Failed(f"not '{name}': {s.status()['update']}")
        time.sleep(0.02)


def _twin(ways, old, new):
    words = ways.mve_run()
    server = Server(ways, words, (ways.program("../mve-driver"),), old)
    try:
        s = session.Session(ways.mve, words)

        def during(mark):
            mark("update")
            do(ways.mve, "update", s.name, "--to", new, "--code")
            mark("new follows")
            do(ways.mve, "promote", s.name)
            mark("new leads")
            do(ways.mve, "commit", s.name)
            until_stage(s, "alone")
        marks, replies = _asked(server, during)
        stood = s.status()["update"]["stood_us"] / 1000
        return _row("by a twin", marks, replies, stood_ms=stood)
    finally:
        server.running.stop()


def _place(ways, old, new):
    control, code = f"{ways.folder}/control", f"{ways.folder}/code.so"
    do(ways.program("../mve-xform"), "-c", "-o", code, old, new)
    driver = ways.program("../mve-driver")
    server = Server(ways, (), (driver, "-c", control), old)
    try:
        def during(mark):
            mark("update")
            do(driver, "-a", control, "update", new, code, LIMIT_MS)
        return _row("in place", *_asked(server, during))
    finally:
        server.running.stop()


def _middle(rounds):
    """Of these the one with the middle longest wait, and what all of them were."""
    ordered = sorted(rounds, key=lambda row: row["longest"])
    return {**ordered[(len(ordered) - 1) // 2], "all": [row["longest"] for row in rounds]}


def _rounds(ways, old, new, number, progress):
    native, twin = [], []
    for i in range(number):
        progress(f"updates: round {i + 1} of {number}")
        twin.append(_twin(ways, old, new))
        native.append(_native(ways, old, max(1, twin[-1]["seconds"] - 2 * LONE_S)))
    most = [row["longest"] + row["fork_ms"] for row in native]
    return [{**_middle(native), "most": most,
             "fork_ms": figures.median([row["fork_ms"] for row in native])}, _middle(twin)]


def measure(ways, options, progress):
    rows, trouble = [], ways.mve_missing("run")
    try:
        if not trouble:
            old, new = built("redis", "u7"), built("redis", "u10")
            rows = _rounds(ways, old, new, QUICK_ROUNDS if options.quick else ROUNDS, progress)
            progress("updates: in place")
            rows.append(_place(ways, old, new))
    except processes.Failed as e:
        trouble = f"failed: {e}"
    return {"keys": KEYS, "unit": "ms", "trouble": trouble, "rows": rows}


def show(result, options):
    native = result["rows"][0] if result["rows"] else None
    yield f"AN UPDATE WITH {result['keys']:,} ENTRIES: how long a client waits, ms"
    yield ""
    if result["trouble"]:
        yield result["trouble"]
    if not native:
        return
    yield figures.columns(WIDTHS, ("Redis", "median", "p99", "longest", "seconds",
                                   "replies"))
    yield figures.rule()
    for row in result["rows"]:
        yield figures.columns(WIDTHS, (row["way"], *(
            figures.number(row[key], 2) for key in ("median", "p99", "longest", "seconds")),
            row["replies"]))
    yield ""
    yield (f"The native one has {native['megabytes']:.0f} MB; a fork of it takes "
           f"{native['fork_ms']:.1f} ms (the median).")
    if len(result["rows"]) > 1:
        for name, waits in (("native and a fork", native["most"]),
                            ("by a twin", result["rows"][1]["all"])):
            yield f"The longest in each round, {name}: " + ", ".join(
                f"{wait:.1f}" for wait in waits)


def targets(result):
    if len(result["rows"]) < 2:
        return
    native, twin = result["rows"][:2]
    most, longest = figures.median(native["most"]), figures.median(twin["all"])
    yield ("the longest wait in an update by a twin <= native's + a fork",
           f"{longest:.1f} ms of {most:.1f}",
           figures.verdict(longest, most))


def drawings(result):
    if not result["rows"]:
        return
    yield "updates", plots.bars(
        "The longest wait of a client while a million entries are updated", "ms", ["longest"],
        [(row["way"], [row["longest"]]) for row in result["rows"]])
    for row in result["rows"]:
        marks = ", ".join(f"{name} at {100 * when / row['seconds']:.0f}"
                          for when, name in row["marks"])
        yield f"updates-{row['way'].replace(' ', '-')}", plots.curves(
            f"{row['way']}: the longest wait in each hundredth of the run",
            f"% of {row['seconds']:.0f} s ({marks})", "ms",
            [(row["way"], [(100 * i / PORTIONS, {"median": worst})
                           for i, worst in enumerate(row["worst"])])])
