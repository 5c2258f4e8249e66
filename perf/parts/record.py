"""What recording a call costs a leader, and replaying it a follower.

perf/record.c is asked for batches of one call.  It runs natively, alone under
mve, as a leader whose follower keeps up on the other CPU, and as a leader whose
follower stands still; all of them live at once and take turns.

A standing follower is stopped by SIGSTOP while the leader records calls; then
it goes on, and its threads' CPU time until it has read everything is the price
of replaying them.  The backlog fits into the ring, and goes round it a few times
before anything is counted: what is measured is memory that has been touched.
"""

import os
import signal
import time

from . import figures, plots, processes, session
from .processes import pinned

OPS = ("close", "write", "read", "open+close", "clock_gettime", "getppid")
CALLS = {"open+close": 2}   # of an operation; the others are one
BATCH_CALLS = 400
BACKLOG = 20000		    # operations: 20 MiB at most, of a ring of 64
WARM_BACKLOGS = 6	    # of writes: they go round the ring once
MODES = ("native", "solo", "leader", "leader, follower stopped")
WIDTHS = (-23, 9, 9, 9, 10, 9, 9)


class Program:
    """record.c under one mode."""

    def __init__(self, ways, words, followers):
        on, self.other = processes.cpus()
        self.running = processes.Running(
            pinned(on, [*words, ways.program("record")]), ways.folder,
            (ways.mve,), talk=True)
        self.followers = followers
        self.session = session.Session(ways.mve, words) if words else None
        self.ask("getppid", 2000, 1)  # it is up, and its sites are patched
        self.follower = None
        if followers:
            rows = self.session.wait(followers)
            self.follower = rows[1]["pid"]
            session.move(session.tree(self.follower), self.other)

    def ask(self, op, calls, batches):
        line = self.running.ask(f"{op} {calls} {batches}")
        return [float(word) for word in line.split()]

    def caught_up(self):
        if self.followers:
            self.session.wait(self.followers)

    def stop_follower(self):
        self.caught_up()
        os.kill(self.follower, signal.SIGSTOP)
        time.sleep(0.002)

    def go_on(self):
        os.kill(self.follower, signal.SIGCONT)
        self.caught_up()

    def batches(self, op, count):
        return self.ask(op, BATCH_CALLS, count)

    def backlog(self, op):
        """(ns of recording, ns of replaying) one operation."""
        self.stop_follower()
        before = processes.cpu_ns(self.follower)
        took = self.ask(op, BACKLOG // 50, 50)
        self.go_on()
        replay = (processes.cpu_ns(self.follower) - before) / BACKLOG
        return took, replay


def _start(ways):
    led = ("--ring=64M", "--when-full=block")
    return {"native": Program(ways, [], 0),
            "solo": Program(ways, ways.mve_run(), 0),
            "leader": Program(ways, ways.mve_led(1, *led), 1),
            "leader, follower stopped": Program(ways, ways.mve_led(1, *led),
                                                1)}


def _turn(live, op, order, batches, into):
    for mode in order:
        if mode == "leader, follower stopped":
            took, replay = live[mode].backlog(op)
            into["replay"] += [replay]
        else:
            took = live[mode].batches(op, batches)
            live[mode].caught_up()
        into[mode] += took


def _measure(ways, options, progress, samples):
    rounds, turns, batches = (2, 4, 25) if options.quick else (5, 10, 50)
    for r in range(rounds):
        live = _start(ways)
        for _ in range(WARM_BACKLOGS):
            for mode in MODES[2:]:
                live[mode].backlog("write")
        for op in OPS:
            progress(f"record: round {r + 1} of {rounds}: {op}")
            for mode in MODES[:-1]:
                live[mode].batches(op, 5)
            for t in range(turns):
                _turn(live, op, MODES[::-1] if t % 2 else MODES, batches,
                      samples[op])
        for program in live.values():
            program.running.stop()
    return {"rounds": rounds, "turns": turns, "batches": batches}


def measure(ways, options, progress):
    samples = {op: {m: [] for m in (*MODES, "replay")} for op in OPS}
    result = {"unit": "ns per call", "batch_calls": BATCH_CALLS,
              "backlog": BACKLOG,
              "trouble": ways.mve_missing("run") or ways.mve_missing("led")}
    try:
        if not result["trouble"]:
            result |= _measure(ways, options, progress, samples)
    except processes.Failed as e:
        result["trouble"] = f"failed: {e}"
    result["ops"] = {op: {mode: _summary(ns, CALLS.get(op, 1))
                          for mode, ns in by_mode.items() if ns}
                     for op, by_mode in samples.items()}
    return result


def _summary(samples, calls):
    samples = sorted(ns / calls for ns in samples)
    return {**figures.summary(samples), "p10": samples[len(samples) // 10]}


def _over(row, key):
    """What recording adds to an intercepted call; None: not measured."""
    if "leader" not in row or "solo" not in row:
        return None
    return row["leader"][key] - row["solo"][key]


def _line(label, row, key):
    cells = [figures.number(row[mode][key], 1) for mode in (*MODES, "replay")]
    cells.insert(4, figures.signed(_over(row, key)))
    return figures.columns(WIDTHS, (label, *cells))


def show(result, options):
    yield "A RECORDED CALL, ns (the leader's CPU; replay: the follower's)"
    yield ""
    yield figures.columns(WIDTHS, ("", "native", "mve", "leader", "follower",
                                   "record", "replay"))
    yield figures.columns(WIDTHS, ("", "", "alone", "", "stopped", "<= +30",
                                   ""))
    yield figures.rule()
    for op, row in result["ops"].items():
        if len(row) == len(MODES) + 1:
            yield _line(f"{op}, p10", row, "p10")
            yield _line("   median", row, "median")
    if result["trouble"]:
        yield ""
        yield result["trouble"]


def targets(result):
    what = f"recording, over intercepted <= +{figures.RECORD_OVER_NS} ns"
    for op in OPS:
        over = _over(result["ops"].get(op, {}), "p10")
        if over is None:
            yield what, f"not measured ({op})", ""
        else:
            yield (what, f"{figures.signed(over)} ({op}, p10)",
                   figures.verdict(over, figures.RECORD_OVER_NS))


def drawings(result):
    rows = result["ops"].items()
    modes = (*MODES, "replay")
    yield "record", plots.bars(
        "A recorded call: the leader's CPU, and the follower's replay (p10)",
        "ns per call", ("native", "mve alone", "leader", "leader, follower "
                        "stopped", "replay"),
        [(op, [row[mode]["p10"] if mode in row else None for mode in modes])
         for op, row in rows])
