"""What rules cost a follower: nanoseconds for each event, and compiling them.

perf/rules.c writes the rules, has them compiled, and asks the object as the
inside does.  How the time grows with the number of rules is the question: an
event that no rule begins with costs a look into a table, and one that many begin
with must not cost more when there are more of them.
"""

import os

from . import figures, plots, processes

WIDTHS = (-40, 9, 9, 9, 9)
WORDS = {"unnamed": "no rule begins with it", "matched": "one rule begins with it, and matches",
         "shared": "all begin with it, none matches",
         "last": "all begin with it, the last matches",
         "guarded": "all have one guard, which says no",
         "longer": "all share two calls of three"}
EVENT_NS = 50  # "on the order of", of ../shared/design/rules-language.md


def _read(text):
    rows = []
    for line in text.splitlines()[1:]:
        kind, rules, ns, compile_ms = line.split()
        rows.append({"kind": kind, "rules": int(rules), "ns": float(ns),
                     "compile_ms": float(compile_ms)})
    return rows


def measure(ways, options, progress):
    result = {"trouble": None, "rows": []}
    try:
        progress("rules")
        result["rows"] = _read(processes.output(
            processes.pinned(processes.cpus()[0], [
                ways.program("rules"), os.path.join(options.build, "rulec")]),
            ways.folder, 600))
    except (processes.Failed, OSError) as e:
        result["trouble"] = f"failed: {e}"
    return result


def _counts(result):
    return sorted({row["rules"] for row in result["rows"]})


def _of(result, kind):
    return {row["rules"]: row for row in result["rows"] if row["kind"] == kind}


def show(result, options):
    counts = _counts(result)
    yield "RULES: ns FOR EACH EVENT, BY HOW MANY RULES ARE LOADED"
    yield ""
    yield figures.columns(WIDTHS, ("", *(str(n) for n in counts)))
    yield figures.rule()
    for kind, words in WORDS.items():
        rows = _of(result, kind)
        yield figures.columns(WIDTHS, (words, *(
            figures.number(rows[n]["ns"]) if n in rows else "-" for n in counts)))
    if counts:
        rows = [r for r in result["rows"] if r["rules"] == counts[-1]]
        yield (f"compiling {counts[-1]} rules: {min(r['compile_ms'] for r in rows):.0f}"
               f" to {max(r['compile_ms'] for r in rows):.0f} ms")
    if result["trouble"]:
        yield result["trouble"]


def targets(result):
    counts = _counts(result)
    for kind, words in WORDS.items():
        row = _of(result, kind).get(counts[-1]) if counts else None
        if row:
            yield (f"an event with {counts[-1]} rules ~ {EVENT_NS} ns",
                   f"{row['ns']:.1f} ({kind})", figures.verdict(row["ns"], EVENT_NS))
    if result["trouble"]:
        yield "rules", "not measured", ""


def drawings(result):
    counts = [n for n in _counts(result) if n]
    if counts:
        yield "rules", plots.bars(
            "What an event costs a follower's rules", "ns", [str(n) for n in counts],
            [(kind, [_of(result, kind)[n]["ns"] for n in counts]) for kind in WORDS])
