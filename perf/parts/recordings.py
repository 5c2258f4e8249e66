"""Servers that are recorded: what that costs a leader beside a follower that keeps up.

As parts/followers.py, and with its servers: the leader has one CPU for itself, and whoever
reads what it tells is on the other, with the load.  A load that is held up asks in bursts,
which some servers answer for less than one by one; so in the two modes that are paused who
reads stands still while the load runs, and has its turn behind it.  All modes take turns at
slices, so that the ratio of two is of the same minutes.  What came to the disk is what `mve status` says.
"""

import tempfile
import time

from . import figures, followers, plots, processes, servers, session

WIDTHS = (-12, -16, 8, 8, 9, 9, 8, 10)
FOLLOWED, RECORDED, SMALLER = "follower", "recorded", "by zstd"
PAUSED = (FOLLOWED + ", paused", RECORDED + ", paused")
# Each beside what it is compared with.
OVER = {RECORDED: FOLLOWED, SMALLER: FOLLOWED, PAUSED[1]: PAUSED[0]}
MODES = (FOLLOWED, *OVER)
RING = "--ring=64M"  # a slice of one that is paused
WRITE_S = 0.1  # the recorder has looked and written by then, which takes it some ms


class RecordedServer(followers.LedServer):
    """One whose recorder stands back, as a follower does."""

    def __init__(self, ways, spec, mode, words):
        self.recorded = "--record" in words
        super().__init__(ways, spec, mode, words)
        self.paused = mode in PAUSED

    def settle(self):
        super().settle()
        if self.session:
            holders = self.running.split()[1]
            session.move(holders, self.follower_cpu)
            session.stand_back(holders)

    def _pause(self, sig):
        if self.paused and self.recorded:
            processes.signal_all([p for p in self.running.split()[1]
                                  if processes.name_of(p) == "mve-record"], sig)
        else:
            super()._pause(sig)

    def _bytes(self):
        if not self.recorded:
            return 0
        time.sleep(WRITE_S)
        return self._recording()["bytes"]

    def _recording(self):
        recording = self.session.status()["recording"]
        if not recording["active"]:
            raise processes.Failed(
                f"the recording ends: {recording.get('ended')}")
        return recording

    def slice(self, ask, requests):
        before = self._bytes()
        got = super().slice(ask, requests)
        written = self._bytes() - before
        return {**got, "bytes": written / got["requests"],
                "mb_per_second": written / got["seconds"] / 1e6}


def _modes(ways):
    missing = ways.mve_missing("led")

    def led(count, *more):
        return lambda: ways.mve_led(count, "--when-full=block", RING, *more)

    def recorded(*more):
        return lambda: led(0, "--record", tempfile.mkdtemp(dir=ways.folder), *more)()

    return {"native": (lambda: [], None), FOLLOWED: (led(1), missing),
            RECORDED: (recorded(), missing),
            SMALLER: (recorded("--compress", "3"), missing),
            PAUSED[0]: (led(1), missing), PAUSED[1]: (recorded(), missing)}


def _over(row, other):
    """The ratio of their leaders' CPU a request, within a turn: one for each turn of all rounds."""
    each = [s["cpu_us"] / t["cpu_us"]
            for mine, its in zip(row["slices"], other["slices"]) if len(mine) == len(its)
            for s, t in zip(mine, its)]
    return figures.summary(each) if each else None


def measure(ways, options, progress):
    rounds = options.rounds or (1 if options.quick else 5)
    turns = 8 if options.quick else 12
    rows = []
    for spec in servers.chosen(followers.SERVERS, options):
        mine = servers.measure_server(ways, spec, options, rounds, turns,
                                      progress, _modes(ways), RecordedServer)
        for row in mine:
            other = next(r for r in mine if r["load"] == row["load"] and
                         r["mode"] == OVER.get(row["mode"], FOLLOWED))
            if row["mode"] in OVER and "slices" in row and "slices" in other:
                row["over_follower"] = _over(row, other)
        rows += mine
    return {"rounds": rounds, "turns": turns, "rows": rows}


def _verdict(row):
    over = row.get("over_follower")
    return "" if not over else figures.verdict(
        over["median"], figures.RECORDED_RATIO, over["q1"], over["q3"])


def _cell(row, key, places=None):
    figure = row.get(key)
    return "" if not figure or not figure["median"] else \
        figures.number(figure["median"], places)


def _line(row):
    label = row["load"] if row["mode"] == "native" else ""
    if "cpu_us" not in row:
        return figures.shorten(
            f"{label:<12}{row['mode']:<16}  {row['trouble']}", figures.WIDTH)
    return figures.columns(WIDTHS, (
        label, row["mode"], _cell(row, "per_second", 0), _cell(row, "cpu_us", 2),
        _cell(row, "over_follower", 3), _cell(row, "bytes", 0),
        _cell(row, "mb_per_second", 1), _verdict(row)))


def show(result, options):
    yield (f"RECORDED SERVERS (median of {result['rounds']} rounds; leader alone on "
           "a CPU, the")
    yield "recorder or the follower on the other, with the load)"
    yield ""
    yield figures.columns(WIDTHS, ("", "", "", "leader", "over", "bytes", "MB/s", ""))
    yield figures.columns(WIDTHS, ("load", "mode", "req/s", "CPU us", "follower",
                                   "/request", "on disk", f"<= {figures.RECORDED_RATIO}"))
    yield figures.rule()
    for row in result["rows"]:
        yield _line(row)
    yield from figures.troubles(result["rows"])


def targets(result):
    what = f"recorded, over followed <= {figures.RECORDED_RATIO}"
    for row in result["rows"]:
        if row["mode"] not in OVER:
            continue
        over = row.get("over_follower")
        name = f"{row['load']}, {row['mode']}"
        yield (what, f"{over['median']:.3f} ({name})" if over else
               f"not measured ({name})", _verdict(row))


def drawings(result):
    loads = {}
    for row in result["rows"]:
        loads.setdefault(row["load"], {})[row["mode"]] = row
    for name, key, title, unit in (
            ("leader-cpu", "over_follower",
             "The leader's CPU time per request, recorded", "ratio to a follower's"),
            ("bytes", "bytes", "A request in a recording", "bytes")):
        yield "recordings-" + name, plots.bars(
            title, unit, tuple(OVER),
            [(load, [by_mode.get(m, {}).get(key) for m in OVER])
             for load, by_mode in loads.items()])
