"""What a process for each request costs: fork, fork and exec, posix_spawn.

perf/forks.c starts children, natively, alone under mve and as a leader with a
follower; all of them live at once and take short turns.  A turn's ratio is to
the native turn beside it.  The monitor's processor time is counted, too: with
a follower also what it does for the follower's programs, until that has caught
up; but not that it is asked whether it has.
"""

import os

from . import figures, plots, processes, session

KINDS = {"fork": ("fork", "none"), "fork+exec": ("exec", "/bin/true"),
         "posix_spawn": ("spawn", "/bin/true"),
         "posix_spawn, static": ("spawn", "static"),
         "posix_spawn, script": ("spawn", "script")}
MODES = ("native", "alone", "1 follower")
LIMITS = {"alone": figures.FORKS_ALONE, "1 follower": figures.FORKS_FOLLOWED}
WIDTHS = (-21, -11, 8, 8, 8, 8, 8, 8)
SCRIPT = "#!/bin/sh\n/bin/echo hello | /bin/cat >/dev/null\n"


class Server:
    """forks.c under one mode."""

    def __init__(self, ways, words, followers):
        self.running = processes.Running([*words, ways.program("forks")],
                                         ways.folder, (ways.mve,), talk=True)
        self.followers = followers
        self.session = session.Session(ways.mve, words) if words else None
        self.ask("fork", "none", 1)
        self.monitors = self.running.split()[1] if words else []
        if followers:
            self.session.wait(followers)

    def ask(self, how, program, count):
        line = self.running.ask(f"{how} {count} {program}")
        return [float(word) for word in line.split()]

    def look(self):
        """ns of the monitor for as many looks as it takes, and their number"""
        before, looks = session.cpu_ns(self.monitors), self.session.looks
        self.session.wait(self.followers)
        return (session.cpu_ns(self.monitors) - before,
                self.session.looks - looks)

    def turn(self, how, program, count):
        """us of time, of its processes and of the monitor, for each"""
        before = session.cpu_ns(self.monitors)
        wall, cpu = self.ask(how, program, count)
        monitor = session.cpu_ns(self.monitors) - before
        if self.followers:
            looked, looks = self.look()
            idle, idle_looks = self.look()
            monitor += max(0, looked - idle * looks / idle_looks)
        return {"wall": wall, "cpu": cpu, "monitor": monitor / 1e3 / count,
                "both": cpu + monitor / 1e3 / count}


def _programs(ways):
    """The static program is our own, told nothing: it ends at once."""
    script = os.path.join(ways.folder, "forks.script")
    with open(script, "w") as f:
        f.write(SCRIPT)
    os.chmod(script, 0o755)
    return {"script": script, "static": ways.program("ends")}


def _turns(live, how, program, turns, count, into):
    for t in range(turns + 1):
        rows = {m: live[m].turn(how, program, count)
                for m in (MODES[::-1] if t % 2 else MODES)}
        for mode, row in rows.items() if t else ():  # the first warms up
            into[mode].append(row | {
                f"{key} ratio": row[key] / rows["native"][of]
                for key, of in (("wall", "wall"), ("cpu", "cpu"),
                                ("both", "cpu"))})


def measure(ways, options, progress):
    turns, count = (9, 20) if options.quick else (25, 40)
    result = {"turns": turns, "count": count,
              "trouble": ways.mve_missing("run") or ways.mve_missing("led")}
    samples = {kind: {m: [] for m in MODES} for kind in KINDS}
    try:
        if not result["trouble"]:
            programs = _programs(ways)
            live = {"native": Server(ways, [], 0),
                    "alone": Server(ways, ways.mve_run(), 0),
                    "1 follower": Server(ways, ways.mve_led(
                        1, "--when-full=block"), 1)}
            for kind, (how, program) in KINDS.items():
                progress(f"forks: {kind}")
                _turns(live, how, programs.get(program, program), turns,
                       count, samples[kind])
            for server in live.values():
                server.running.stop()
    except processes.Failed as e:
        result["trouble"] = f"failed: {e}"
    result["kinds"] = {
        kind: {mode: {key: figures.summary([row[key] for row in rows])
                      for key in rows[0]}
               for mode, rows in by_mode.items() if rows}
        for kind, by_mode in samples.items()}
    return result


def show(result, options):
    yield (f"FORKS, us for each (medians of {result['turns']} turns of"
           f" {result['count']}; ratios to native)")
    yield ""
    if result["trouble"]:
        yield result["trouble"]
        return
    yield figures.columns(WIDTHS, ("", "mode", "time", "CPU", "monitor",
                                   "time x", "CPU x", "both x"))
    yield figures.rule()
    for kind, modes in result["kinds"].items():
        for mode, row in modes.items():
            yield figures.columns(WIDTHS, (
                kind if mode == "native" else "", mode,
                *(figures.number(row[key]["median"], 0)
                  for key in ("wall", "cpu", "monitor")),
                *(figures.number(row[key]["median"], 2)
                  for key in ("wall ratio", "cpu ratio", "both ratio"))))


def targets(result):
    for kind, modes in result["kinds"].items():
        for mode, limit in LIMITS.items():
            if mode not in modes:
                continue
            row = modes[mode]["both ratio"]
            yield (f"a process for each request, {mode} <= {limit}",
                   f"{figures.number(row['median'], 2)} ({kind})",
                   figures.verdict(row["median"], limit, row["q1"],
                                   row["q3"]))


def drawings(result):
    yield "forks", plots.bars(
        "A process for each request: CPU, monitor and all", "x native",
        MODES[1:], [(kind, [modes[m]["both ratio"] if m in modes else None
                            for m in MODES[1:]])
                    for kind, modes in result["kinds"].items()])
