"""How long a server stands for a twin (mve follow), beside a plain fork(2) of that process.

perf/heap.c has a heap of so many MB.  What a fork of it takes hangs on where its pages lie: two
processes with the same heap differ by a half or more.  So it is one process: it forks, natively;
mve comes to it (attach), twins of it are made and dropped, mve leaves it; and so on in turns.
Forks come at the pace of twins: with 500 MB one right behind another takes 1.5 ms less, for the
counts of all pages are in the caches still, and no server forks like that.
The first of each turn, in which a session comes to have followers, is told apart.  And how long
one of ten threads stands for mve attach and detach.
"""

import subprocess
import time

from . import figures, plots, processes, session

HEAPS = (10, 500, 2000)
MORE_US = 1000      # that a twin may take more than the fork beside it
GONE_S = 20         # for a twin to end
EACH = 5            # forks, and twins, in a turn
COMMANDS = 4        # that a twin takes: follow, drop, status twice
PACE_S = 0.03       # and time beside them
ATTACHED = (100, 10)    # MB, threads
ATTACH_US = 50000       # that it may stand
WIDTHS = (-10, 11, 11, 11, 11, 16)


class Server:
    def __init__(self, ways, heap):
        self.ways = ways
        self.native = processes.Running([ways.program("heap"), str(heap)], ways.folder, (),
                                        talk=True)
        self.native.ask("begin")

    def _fork_us(self):
        """Behind as much else as a twin: a fork right behind another finds all in the caches."""
        for _ in range(COMMANDS):
            self._do("--version")
        time.sleep(PACE_S)
        return float(self.native.ask("fork"))

    def forks_us(self):
        return [self._fork_us() for _ in range(EACH)]

    def _do(self, *words):
        run = subprocess.run([self.ways.mve, *words], capture_output=True,
                             text=True, check=False)
        if run.returncode:
            raise processes.Failed(" ".join(run.stderr.split()))
        return run.stdout

    def _twin_us(self, s):
        """The server has stood for so long; the twin follows, and is gone."""
        name = self._do("follow", s.name).split(":")[0]
        stood = next(p for p in s.status()["pauses"] if p["kind"] == "twin")
        self._do("drop", s.name, name)
        end = time.monotonic() + GONE_S
        while any(v["alive"] for v in s.status()["versions"] if v["name"] == name):
            if time.monotonic() > end:
                raise processes.Failed(f"{name} does not end")
            time.sleep(0.01)
        return stood["last_us"]

    def twins_us(self):
        """The first one, and the others, of a session that comes to it and leaves it."""
        words = self.ways.mve_attach(self.native.popen.pid)
        mve = processes.Running(words, self.ways.folder)
        processes.wait_for_word(mve, "holds pid")
        s = session.Session(self.ways.mve, words)
        first, *others = [self._twin_us(s) for _ in range(1 + EACH)]
        self._do("detach", s.name)
        mve.popen.wait()
        mve.stop()
        return first, others

    def stop(self):
        self.native.stop()


class Attached:
    def __init__(self, ways, heap, threads):
        self.ways = ways
        argv = [ways.program("heap"), str(heap), str(threads - 1)]
        self.server = processes.Running(argv, ways.folder, (), talk=True)
        self.server.ask("begin")

    def stood_us(self):
        """For mve attach, and mve detach."""
        words = self.ways.mve_attach(self.server.popen.pid)
        mve = processes.Running(words, self.ways.folder)
        processes.wait_for_word(mve, "holds pid")
        s = session.Session(self.ways.mve, words)
        pauses = s.status()["pauses"]
        left = subprocess.run([self.ways.mve, "detach", s.name], text=True,
                              capture_output=True, check=False)
        if left.returncode:
            raise processes.Failed(" ".join(left.stderr.split()))
        mve.popen.wait()
        mve.stop()
        return (next(p["last_us"] for p in pauses if p["kind"] == "attach"),
                1000 * float(left.stdout.split()[-2]))

    def stop(self):
        self.server.stop()


def _attached(ways, turns):
    server = Attached(ways, *ATTACHED)
    try:
        stood = [server.stood_us() for _ in range(turns)]
    finally:
        server.stop()
    return {"attach": figures.summary([a for a, _ in stood]),
            "detach": figures.summary([d for _, d in stood])}


def _turns(server, turns):
    fork, twin, more, firsts = [], [], [], []
    for _ in range(turns):
        forks = server.forks_us()
        first, twins = server.twins_us()
        forks += server.forks_us()
        firsts.append(first)
        fork += forks
        twin += twins
        more += [t - figures.median(forks) for t in twins]
    return {"first": figures.median(firsts), "fork": figures.summary(fork),
            "twin": figures.summary(twin), "more": figures.summary(more)}


def measure(ways, options, progress):
    turns, rows, attached = 3 if options.quick else 9, [], None
    trouble = ways.mve_missing("run")
    try:
        for heap in () if trouble else HEAPS:
            progress(f"twins: a heap of {heap} MB")
            server = Server(ways, heap)
            try:
                rows.append({"heap": heap, **_turns(server, turns)})
            finally:
                server.stop()
        if not trouble:
            progress("twins: mve attach")
            attached = _attached(ways, turns)
    except processes.Failed as e:
        trouble = f"failed: {e}"
    return {"turns": turns, "unit": "us", "trouble": trouble, "rows": rows,
            "attached": attached}


def show(result, options):
    yield (f"A TWIN'S PAUSE, ms (medians of {result['turns']} turns of {EACH}), beside"
           " fork(2) of the same process")
    yield ""
    if result["trouble"]:
        yield result["trouble"]
    yield figures.columns(WIDTHS, ("heap", "fork", "twin", "more", "most more",
                                   "the first twin"))
    yield figures.rule()
    for row in result["rows"]:
        yield figures.columns(WIDTHS, (f"{row['heap']} MB", *(
            figures.number(us / 1000, 2) for us in (
                row["fork"]["median"], row["twin"]["median"],
                row["more"]["median"], row["more"]["max"], row["first"]))))
    if result["attached"]:
        yield ""
        yield ("mve attach, of %d MB and %d threads: %s ms, detach: %s ms" % (
            *ATTACHED, *(figures.number(
                result["attached"][what]["median"] / 1000, 2)
                for what in ("attach", "detach"))))


def targets(result):
    if result["attached"]:
        stood = result["attached"]["attach"]
        yield ("mve attach of %d MB <= 50 ms" % ATTACHED[0],
               f"{figures.number(stood['median'] / 1000, 2)} ms",
               figures.verdict(stood["median"], ATTACH_US, stood["q1"],
                               stood["q3"]))
    for row in result["rows"]:
        more = row["more"]
        yield (f"a twin of {row['heap']} MB <= fork(2) + 1 ms",
               f"{figures.number(more['median'] / 1000, 2)} ms more",
               figures.verdict(more["median"], MORE_US, more["q1"],
                               more["q3"]))


def drawings(result):
    yield "twins", plots.bars(
        "How long a server stands for a twin", "us", ["fork(2)", "twin"],
        [(f"{row['heap']} MB", [row["fork"], row["twin"]])
         for row in result["rows"]])
