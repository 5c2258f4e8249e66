"""How long a server stands for a twin (mve follow), beside a plain fork(2) of the same program.

perf/heap.c has a heap of so many MB.  It lives twice: natively, where it forks, and in a
session that was begun alone, of which a twin is made and dropped.  The two take turns; the
first of each, in which a session comes to have followers, is told apart.  And how long one of
ten threads stands for mve attach and detach.
"""

import subprocess
import time

from . import figures, plots, processes, session

HEAPS = (10, 500, 2000)
MORE_US = 1000      # that a twin may take more than the fork beside it
GONE_S = 20         # for a twin to end
ATTACHED = (100, 10)    # MB, threads
ATTACH_US = 50000       # that it may stand
WIDTHS = (-10, 11, 11, 11, 11, 16)


class Pair:
    def __init__(self, ways, heap):
        self.mve, words = ways.mve, ways.mve_run()
        argv = [ways.program("heap"), str(heap)]
        self.native = processes.Running(argv, ways.folder, (), talk=True)
        self.held = processes.Running([*words, *argv], ways.folder,
                                      (ways.mve,), talk=True)
        self.session = session.Session(ways.mve, words)
        for running in (self.native, self.held):
            running.ask("begin")

    def fork_us(self):
        return float(self.native.ask("fork"))

    def _do(self, *words):
        run = subprocess.run([self.mve, *words], capture_output=True,
                             text=True, check=False)
        if run.returncode:
            raise processes.Failed(" ".join(run.stderr.split()))
        return run.stdout

    def twin_us(self):
        """The server has stood for so long; the twin follows, and is gone."""
        name = self._do("follow", self.session.name).split(":")[0]
        status = self.session.status()
        stood = next(p for p in status["pauses"] if p["kind"] == "twin")
        self._do("drop", self.session.name, name)
        end = time.monotonic() + GONE_S
        while any(v["alive"] for v in self.session.status()["versions"]
                  if v["name"] == name):
            if time.monotonic() > end:
                raise processes.Failed(f"{name} does not end")
            time.sleep(0.01)
        return stood["last_us"], stood["longest_us"]

    def stop(self):
        self.native.stop()
        self.held.stop()


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


def _turns(pair, turns):
    fork, twin = [], []
    first = pair.twin_us()[1]
    pair.fork_us()
    for t in range(turns):
        for what in ((fork, twin) if t % 2 else (twin, fork)):
            what.append(pair.fork_us() if what is fork else pair.twin_us()[0])
    return {"first": first, "fork": figures.summary(fork),
            "twin": figures.summary(twin),
            "more": figures.summary([b - a for a, b in zip(fork, twin)])}


def measure(ways, options, progress):
    turns, rows, attached = 5 if options.quick else 15, [], None
    trouble = ways.mve_missing("run")
    try:
        for heap in () if trouble else HEAPS:
            progress(f"twins: a heap of {heap} MB")
            pair = Pair(ways, heap)
            try:
                rows.append({"heap": heap, **_turns(pair, turns)})
            finally:
                pair.stop()
        if not trouble:
            progress("twins: mve attach")
            attached = _attached(ways, turns)
    except processes.Failed as e:
        trouble = f"failed: {e}"
    return {"turns": turns, "unit": "us", "trouble": trouble, "rows": rows,
            "attached": attached}


def show(result, options):
    yield (f"A TWIN'S PAUSE, ms (medians of {result['turns']} turns), beside"
           " fork(2)")
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
