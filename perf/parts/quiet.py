"""What a session costs while nothing happens.

Redis, memcached and nginx with followers, up and read to the end, then no
traffic for a while: CPU time of the monitor and of all followers together, over
the wall time, and the leader's own beside that of a native server.
"""

import os
import time

from . import figures, plots, processes, servers, session

QUIET_S, QUICK_S = 20, 5
SETTLE_S = 1.5
FOLLOWERS = (1, 3)
WIDTHS = (-12, -13, 12, 12, 12, 10, 9)
SERVERS = servers.SERVERS[:3]


def _start(ways, spec, words):
    port = processes.free_port()
    folder = os.path.join(ways.folder, f"quiet.{spec[0]}.{port}")
    os.makedirs(folder)
    argv = spec[2](processes.which(spec[1]), folder, port)
    running = processes.Running([*words, *argv], folder, (ways.mve,))
    processes.wait_for_port(running, port)
    return running


def _pids(ways, running, words):
    """{who: pids}"""
    found, holders = running.split()
    followers = []
    if "-f" in words:
        rows = session.Session(ways.mve, words).wait(words.count("-f"),
                                                       near=64)
        followers = [p for row in rows[1:] for p in session.tree(row["pid"])]
    return {"server": [p for p in found if p not in followers],
            "followers": followers, "monitor": holders}


def _watch(ways, spec, many, seconds, progress):
    """All modes at once: they are quiet."""
    modes = {"native": []}
    for n in many:
        modes[f"{n} follower{'s' * (n > 1)}"] = ways.mve_led(n)
    live = {mode: _start(ways, spec, words) for mode, words in modes.items()}
    try:
        time.sleep(SETTLE_S)
        pids = {mode: _pids(ways, live[mode], words)
                for mode, words in modes.items()}
        progress(f"quiet: {spec[0]}: {seconds} s without traffic")
        before = {mode: {who: session.cpu_ns(p) for who, p in of.items()}
                  for mode, of in pids.items()}
        began = time.monotonic_ns()
        time.sleep(seconds)
        wall = time.monotonic_ns() - began
        return [{"name": spec[0], "mode": mode, "trouble": None,
                 **{who: (session.cpu_ns(p) - before[mode][who]) / wall
                    for who, p in of.items()}} for mode, of in pids.items()]
    finally:
        for running in live.values():
            running.stop()


def measure(ways, options, progress):
    seconds = QUICK_S if options.quick else QUIET_S
    rows, missing = [], ways.mve_missing("led")
    for spec in SERVERS:
        trouble = missing or (None if processes.which(spec[1]) else
                              f"skipped: {spec[1]} is not installed")
        try:
            if not trouble:
                rows += _watch(ways, spec, FOLLOWERS, seconds, progress)
        except processes.Failed as e:
            trouble = f"failed: {e}"
        if trouble:
            rows.append({"name": spec[0], "mode": "", "trouble": trouble})
    return {"seconds": seconds, "unit": "share of one CPU", "rows": rows}


def _cost(row):
    return row["monitor"] + row["followers"]


def show(result, options):
    yield (f"A QUIET SESSION, % of one CPU over {result['seconds']} s "
           "without traffic")
    yield ""
    yield figures.columns(WIDTHS, ("server", "mode", "the server",
                                   "followers", "monitor", "mve", "< 0.5"))
    yield figures.rule()
    for row in result["rows"]:
        if row["trouble"]:
            yield figures.shorten(f"{row['name']:<12}{row['trouble']}",
                                  figures.WIDTH)
            continue
        native = row["mode"] == "native"
        cells = [f"{row[who] * 100:.3f}" for who in ("server", "followers",
                                                     "monitor")]
        yield figures.columns(WIDTHS, (
            row["name"] if native else "", row["mode"], cells[0],
            *(("", "", "", "") if native else
              (*cells[1:], f"{_cost(row) * 100:.3f}",
               figures.verdict(_cost(row), figures.QUIET_SHARE)))))


def targets(result):
    for row in result["rows"]:
        what = "quiet: monitor + followers < 0.5 %"
        if row["trouble"]:
            yield what, f"not measured ({row['name']})", ""
        elif row["mode"] != "native":
            yield (what, f"{_cost(row) * 100:.3f} % ({row['name']}, "
                   f"{row['mode'].split()[0]})",
                   figures.verdict(_cost(row), figures.QUIET_SHARE))


def drawings(result):
    loads = {}
    for row in result["rows"]:
        if not row["trouble"] and row["mode"] != "native":
            loads.setdefault(row["name"], []).append(100 * _cost(row))
    if loads:
        yield "quiet", plots.bars(
            "A quiet session: monitor and followers together",
            "% of one CPU", [f"{n} follower{'s' * (n > 1)}"
                             for n in FOLLOWERS], list(loads.items()),
            (100 * figures.QUIET_SHARE, "0.5 %"))
