"""What a start costs: wall time from spawn to exit, over the native one."""

import os
import time

from . import figures, plots, processes

WIDTHS = (-24, -11, 10, 16, 9, 10)


def _commands():
    server = processes.which("redis-server")
    commands = {"/bin/true": ["/bin/true"]}
    if server:
        commands["redis-server --version"] = [server, "--version"]
    return commands


def _spawn_ms(argv, null):
    actions = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)]
    start = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=actions)
    _, status = os.waitpid(pid, 0)
    took = (time.perf_counter() - start) * 1e3
    if status:
        raise processes.Failed(f"exit status {os.waitstatus_to_exitcode(status)}")
    return took


def _modes(ways):
    return {
        "native": (lambda: [], None),
        "mve run": (ways.mve_run, ways.mve_missing()),
        "strace -f": (lambda: ways.strace_run("-f"), ways.strace_missing()),
    }


def measure(ways, options, progress):
    runs = 10 if options.quick else 30
    modes, commands = _modes(ways), _commands()
    trouble = {name: missing for name, (_, missing) in modes.items()}
    samples = {(c, m): [] for c in commands for m in modes}
    first = {}
    null = os.open("/dev/null", os.O_RDWR)
    for r in range(runs + 1):
        progress(f"start-up: run {r} of {runs}")
        names = [m for m in modes if not trouble[m]]
        for command, argv in commands.items():
            for name in names[::-1] if r % 2 else names:
                try:
                    ms = _spawn_ms([*modes[name][0](), *argv], null)
                except processes.Failed as e:
                    trouble[name] = f"failed: {e}"
                    continue
                if r:
                    samples[command, name].append(ms)
                else:
                    first[command, name] = ms  # warm-up, kept apart
    os.close(null)
    return {"runs": runs, "unit": "ms", "commands": {
        command: [{"mode": name, "trouble": trouble[name],
                   "first": first.get((command, name)),
                   **(figures.summary(samples[command, name])
                      if samples[command, name] else {})}
                  for name in modes]
        for command in commands}}


def show(result, options):
    yield (f"START-UP, ms from spawn to exit (median of {result['runs']} runs;"
           " native and held in turn)")
    yield ""
    yield figures.columns(WIDTHS, ("command", "mode", "median", "q1..q3",
                                   "over", "<= +50"))
    yield figures.rule()
    for command, rows in result["commands"].items():
        native = rows[0].get("median")
        for row in rows:
            label = command if row is rows[0] else ""
            if "median" not in row:
                yield figures.shorten(
                    f"{label:<24}{row['mode']:<11}  {row['trouble']}",
                    figures.WIDTH)
                continue
            over = row["median"] - native
            yield figures.columns(WIDTHS, (
                label, row["mode"], figures.number(row["median"]),
                figures.span(row["q1"], row["q3"]),
                "" if row is rows[0] else figures.signed(over),
                figures.verdict(over, figures.STARTUP_OVER_MS)
                if row["mode"] == "mve run" else ""))
    yield from figures.troubles(
        [row for rows in result["commands"].values() for row in rows])


def targets(result):
    for command, rows in result["commands"].items():
        by_mode = {row["mode"]: row for row in rows}
        what = f"start-up, over native < +{figures.STARTUP_OVER_MS} ms"
        command = command.split()[0]
        if "median" not in by_mode["mve run"]:
            yield what, f"not measured ({command})", ""
            continue
        over = by_mode["mve run"]["median"] - by_mode["native"]["median"]
        yield (what, f"{figures.signed(over)} ({command})",
               figures.verdict(over, figures.STARTUP_OVER_MS))


def drawings(result):
    commands = result["commands"]
    modes = [row["mode"] for row in next(iter(commands.values()))]
    yield "startup", plots.bars(
        "Start-up, spawn to exit", "ms", modes,
        [(command, [row if "median" in row else None for row in rows])
         for command, rows in commands.items()])
