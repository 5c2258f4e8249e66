"""What one call costs, under each way of holding it.

perf/call.c is the timed loop.  Everything runs on one CPU, the best case for a
tracer (it need not wake another one), but for the rows that say otherwise.
"""

import os

from . import figures, plots, processes
from .processes import pinned

WIDTHS = (-30, 9, 17, 8, 9, 7)
OTHER_WIDTHS = (-30, 10, 8, 8, 8, 8, 8)
OTHERS = (("getppid", "libc"), ("read", "site"), ("read", "libc"),
          ("write", "site"), ("write", "libc"), ("clock_gettime", "libc"))
PATCHED = [("getppid", "site"), *OTHERS[:-1]]


class Mode:
    def __init__(self, key, label, command, missing=None, pick=min):
        self.key, self.label, self.command = key, label, command
        self.trouble = missing
        # A round's figure of its batches.  On one CPU a disturbance only
        # adds, so the least is the truest; across CPUs the waking time is
        # the thing itself and scatters.
        self.pick = pick
        self.rounds = []  # per round: {(name, way): [ns, ...]}


def modes(ways, rounds_inside, ms):
    on, other = processes.cpus()
    call = [ways.program("call"), f"--rounds={rounds_inside}", f"--ms={ms}"]
    hold = ways.program("hold")

    def under(way):
        return lambda: pinned(on, [*call, f"--under={way}"])

    def held(*words):
        return lambda: pinned(on, [hold, *words, "--", *call])

    def after(words):
        return lambda: pinned(on, [*words(), *call])

    def away():
        return f"--cpu={other}"

    return [
        Mode("native", "native", under("native")),
        Mode("filter", "seccomp filter alone, ip check", under("filter")),
        Mode("dispatch", "syscall user dispatch alone", under("dispatch")),
        Mode("mve-patch", "mve run --tier=patch",
             after(lambda: ways.mve_run("patch")),
             ways.mve_missing("run", "patch")),
        Mode("mve-trap", "mve run --tier=trap",
             after(lambda: ways.mve_run("trap")),
             ways.mve_missing("run", "trap")),
        Mode("trap", "a bare SIGSYS trap", under("trap")),
        Mode("tap-other", "eBPF tap, another's process",
             held("tap-other")),
        Mode("tap", "eBPF tap, arguments", held("tap")),
        Mode("tap-copy", "eBPF tap, arguments and bytes", held("tap-copy")),
        Mode("notify", "user notification, one CPU", held("notify")),
        Mode("notify-away", "user notification, two CPUs",
             held(away(), "notify"), pick=figures.median),
        Mode("ptrace", "ptrace, one CPU", held("ptrace")),
        Mode("ptrace-away", "ptrace, two CPUs", held(away(), "ptrace"),
             pick=figures.median),
        Mode("strace", "strace -o /dev/null",
             after(ways.strace_run), ways.strace_missing()),
        Mode("mve-trace", "mve trace -o /dev/null",
             after(ways.mve_trace), ways.mve_missing("trace")),
    ]


def _parse(text):
    rows = {}
    for line in text.splitlines():
        words = line.split()
        try:
            rows[words[0], words[1]] = [float(w) for w in words[2:]]
        except (IndexError, ValueError):
            continue
    return rows


def _run_once(mode, folder):
    try:
        rows = _parse(processes.output(mode.command(), folder))
        missing = [op for op in (*PATCHED, OTHERS[-1]) if op not in rows]
        if missing:
            raise processes.Failed(f"no figure for {missing[0]}")
        mode.rounds.append(rows)
    except processes.Failed as e:
        mode.trouble = f"failed: {e}"


def measure(ways, options, progress):
    rounds, inside, ms = (5, 5, 1) if options.quick else (15, 9, 1)
    all_modes = modes(ways, inside, ms)
    for r in range(rounds):
        shift = r * 4 % len(all_modes)
        order = all_modes[shift:] + all_modes[:shift]
        for mode in order[::-1] if r % 2 else order:
            if not mode.trouble:
                progress(f"calls: round {r + 1} of {rounds}: {mode.label}")
                _run_once(mode, ways.folder)
    return {"rounds": rounds, "rounds_inside": inside, "batch_ms": ms,
            "unit": "ns per call", "modes": [_result(m) for m in all_modes]}


def _result(mode):
    ops = {}
    for op in [*PATCHED, OTHERS[-1]] if mode.rounds else []:
        ops[" ".join(op)] = {
            **figures.summary([mode.pick(rows[op]) for rows in mode.rounds]),
            "batches": [rows[op] for rows in mode.rounds]}
    return {"mode": mode.key, "label": mode.label, "trouble": mode.trouble,
            "ops": ops}


def _find(result, key):
    return next(m for m in result["modes"] if m["mode"] == key)


def over_native(result, key, op):
    """Median ns over native, or None when it was not measured."""
    name = " ".join(op)
    native, mode = _find(result, "native"), _find(result, key)
    if name not in native["ops"] or name not in mode["ops"]:
        return None
    return mode["ops"][name]["median"] - native["ops"][name]["median"]


def _line(mode, native, name):
    op = mode["ops"].get(name)
    if not op or not native:
        return figures.shorten(f"{mode['label']:<30} "
                               f"{mode['trouble'] or 'native failed'}",
                               figures.WIDTH)
    over = op["median"] - native["median"]
    first = mode["mode"] == "native"
    target = "" if mode["mode"] != "mve-patch" or "clock" in name else \
        figures.verdict(over, figures.CALL_OVER_NS)
    return figures.columns(WIDTHS, (
        mode["label"], figures.number(op["median"]),
        figures.span(op["q1"], op["q3"]),
        figures.number(op["median"] / native["median"], 2),
        "" if first else figures.signed(over), target.rjust(8)))


def _table(result, name):
    native = _find(result, "native")["ops"].get(name)
    yield figures.columns(WIDTHS, (name.replace(" ", ", "), "median",
                                   "q1..q3", "ratio", "over", "<= +20"))
    yield figures.rule()
    for mode in result["modes"]:
        yield _line(mode, native, name)


def _others(result):
    yield "ns over native, medians (the first row: ns)"
    yield figures.columns(OTHER_WIDTHS, ("", *(
        name.partition("_")[0] for name, _ in OTHERS)))
    yield figures.columns(OTHER_WIDTHS, ("", *(way for _, way in OTHERS)))
    yield figures.rule()
    for mode in result["modes"]:
        if not mode["ops"]:
            continue
        if mode["mode"] == "native":
            cells = [figures.number(mode["ops"][" ".join(op)]["median"])
                     for op in OTHERS]
        else:
            over = [over_native(result, mode["mode"], op) for op in OTHERS]
            cells = ["" if x is None else figures.signed(x) for x in over]
        yield figures.columns(OTHER_WIDTHS, (mode["label"], *cells))


def show(result, options):
    yield (f"THE COST OF ONE CALL, ns (median of {result['rounds']} rounds; "
           "site: mov $nr,%eax; syscall)")
    yield ""
    yield from _table(result, "getppid site")
    yield ""
    if options.full:
        for op in OTHERS:
            yield from _table(result, " ".join(op))
            yield ""
    else:
        yield from _others(result)
    yield from figures.troubles(result["modes"])


def targets(result):
    over = {op: over_native(result, "mve-patch", op) for op in PATCHED}
    what = f"patched call, over native <= +{figures.CALL_OVER_NS} ns"
    if None in over.values():
        return [(what, "not measured", "")]
    worst = max(over, key=over.get)
    return [(what, f"{figures.signed(over[op])} ({', '.join(op)})",
             figures.verdict(over[op], figures.CALL_OVER_NS))
            for op in dict.fromkeys((PATCHED[0], worst))]


def drawings(result):
    modes = [m for m in result["modes"] if m["ops"] and
             m["mode"] in ("native", "filter", "dispatch", "mve-patch")]
    ops = [" ".join(op) for op in PATCHED]
    if modes:
        yield "calls", plots.bars(
            "One intercepted call", "ns per call", [m["label"] for m in modes],
            [(op, [m["ops"].get(op) for m in modes]) for op in ops])
