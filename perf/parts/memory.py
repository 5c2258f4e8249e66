"""What mve adds to a process and to a thread, and whether the ring keeps its size.

perf/idle.c runs with few and with many threads, natively, alone under mve and
as a leader.  Added private memory is the difference of anonymous pages from the
native run: the inside's code and data, boards, patched pages of libraries and
blocks of threads.  Pages of the session's shared files are counted apart.
"""

import os
import signal

from . import figures, plots, processes, session

FEW, MANY = 1, 65
RINGS_MIB = (4, 64)
FILL_CALLS = 20000
WIDTHS = (-34, 14, 14, 14)


SHARED = {"area": "area", "brief": "area", "conduct": "streams",
          "stream": "streams"}


def pages_kib(pid):
    """{"private": KiB of anonymous pages, "area": ..., "streams": ...}"""
    kib = {"private": 0, "area": 0, "streams": 0}
    at = ""
    with open(f"/proc/{pid}/smaps") as smaps:
        for line in smaps:
            key, *words = line.split()
            if "-" in key and not key.endswith(":"):
                at = words[4] if len(words) > 4 else ""
            shared = SHARED.get(at.removeprefix("/memfd:mve-"))
            if shared in kib and key == "Rss:":
                kib[shared] += int(words[0])
            elif key == "Anonymous:":
                kib["private"] += int(words[0])
    return kib


def _idle(ways, words, threads, folder):
    running = processes.Running([*words, ways.program("idle"), str(threads)],
                                folder, (ways.mve,), talk=True)
    try:
        if running.popen.stdout.readline() != "ready\n":
            raise processes.Failed(running.said())
        if "-f" in words:
            pid = session.Session(ways.mve, words).wait(1)[0]["pid"]
        else:
            pid = running.split()[0][0]
        monitors = running.split()[1]
        return {**pages_kib(pid), "monitor":
                pages_kib(monitors[0])["private"] if monitors else 0}
    finally:
        running.hush()
        running.stop()


def _mode(ways, words):
    few = _idle(ways, words(), FEW, ways.folder)
    many = _idle(ways, words(), MANY, ways.folder)
    return {"few": few, "many": many}


def _added(mode, native):
    """KiB that a process and each further thread cost over the native ones."""
    process = mode["few"]["private"] - native["few"]["private"]
    more = (mode["many"]["private"] - native["many"]["private"] - process)
    area = mode["many"]["area"] - mode["few"]["area"]
    return {"process_kib": process, "thread_kib": more / (MANY - FEW),
            "thread_area_kib": area / (MANY - FEW),
            "monitor_kib": mode["few"]["monitor"]}


def _ring(ways, mib):
    """What the streams' file takes when a stopped follower has filled it."""
    words = ways.mve_led(1, f"--ring={mib}M", "--when-full=drop",
                         "--full-ms=50")
    running = processes.Running([*words, ways.program("record")], ways.folder,
                                (ways.mve,), talk=True)
    try:
        running.ask("getppid 10 1")
        look = session.Session(ways.mve, words)
        leader, follower = look.wait(1)
        told = look.status()["ring"]["bytes"]
        os.kill(follower["pid"], signal.SIGSTOP)
        calls = mib * (1 << 20) // 640 + FILL_CALLS
        running.ask(f"write {calls // 10} 10")
        files = f"/proc/{running.split()[1][0]}/fd"
        stats = [os.stat(f"{files}/{fd}") for fd in os.listdir(files)
                 if os.readlink(f"{files}/{fd}").startswith(
                     ("/memfd:mve-stream", "/memfd:mve-conduct"))]
        # Each section has two descriptors.
        blocks = {st.st_ino: st.st_blocks for st in stats}
        return {"mib": mib, "told_bytes": told, "bytes": sum(blocks.values()) * 512,
                "leader_kib": pages_kib(leader["pid"])["streams"]}
    finally:
        running.hush()
        running.stop()


def measure(ways, options, progress):
    result = {"trouble": ways.mve_missing("run") or ways.mve_missing("led"),
              "modes": {}, "rings": [], "threads": MANY}
    try:
        if not result["trouble"]:
            progress("memory")
            native = _mode(ways, lambda: [])
            for label, words in (("mve, no follower", ways.mve_run),
                                 ("leader", lambda: ways.mve_led(1))):
                result["modes"][label] = _added(_mode(ways, words), native)
            result["rings"] = [_ring(ways, mib) for mib in RINGS_MIB]
    except (processes.Failed, OSError) as e:
        result["trouble"] = f"failed: {e}"
    return result


def show(result, options):
    yield "MEMORY THAT MVE ADDS, KiB"
    yield ""
    yield figures.columns(WIDTHS, ("", "private", "private", "shared area"))
    yield figures.columns(WIDTHS, ("", "each process", "each thread",
                                   "each thread"))
    yield figures.rule()
    for label, row in result["modes"].items():
        yield figures.columns(WIDTHS, (
            label, str(row["process_kib"]),
            figures.number(row["thread_kib"]),
            figures.number(row["thread_area_kib"])))
    for label, row in result["modes"].items():
        yield f"the monitor itself ({label}): {row['monitor_kib']}"
    for ring in result["rings"]:
        yield (f"a ring of {ring['mib']} MiB, filled: the streams take "
               f"{ring['bytes'] / (1 << 20):.1f} MiB in all")
    if result["trouble"]:
        yield result["trouble"]


def targets(result):
    for label, row in result["modes"].items():
        yield (f"memory of a process < {figures.PROCESS_KIB} KiB",
               f"{row['process_kib']} ({label})",
               figures.verdict(row["process_kib"], figures.PROCESS_KIB))
    for label, row in result["modes"].items():
        both = row["thread_kib"] + row["thread_area_kib"]
        yield (f"memory of a thread <= {figures.THREAD_KIB} KiB",
               f"{both:.1f} ({label})",
               figures.verdict(both, figures.THREAD_KIB))
    for ring in result["rings"]:
        size = ring["bytes"] / (1 << 20)
        yield ("ring: size as set, and its tables",
               f"{size:.1f} of {ring['mib']} MiB",
               figures.verdict(size, ring["mib"] * 1.05 + 1))
    if result["trouble"]:
        yield "memory", "not measured", ""


def drawings(result):
    if result["modes"]:
        yield "memory", plots.bars(
            "Memory that mve adds", "KiB", list(result["modes"]),
            [("each process", [row["process_kib"]
                               for row in result["modes"].values()]),
             ("each thread", [row["thread_kib"] + row["thread_area_kib"]
                              for row in result["modes"].values()])])
