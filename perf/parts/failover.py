"""The latency of the request that kills the leader.

perf/fragile.c answers lines; the leader crashes at one of them, its follower
does not.  A client measures normal requests, then the one that kills (answered
by the follower, which has taken over), then normal ones again; each run is a
fresh session.  Connections beside it, all idle, must be taken over as well.
"""

import resource
import socket
import time

from . import figures, plots, processes, session

NORMAL = 50
IDLE = (0, 50, 10000)
MANY = 1000         # from here on a tenth of the runs
SPARE = 200         # descriptors beside the connections
WIDTHS = (-32, 9, 9, 9, 9, 9)


def _connect(port):
    s = socket.create_connection(("127.0.0.1", port), 10)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def _ask_us(s, line):
    began = time.perf_counter_ns()
    s.sendall(line)
    answer = s.recv(200)
    took = (time.perf_counter_ns() - began) / 1e3
    if answer != line:
        raise processes.Failed(f"{line!r} was answered by {answer!r}")
    return took


def _run(ways, idle):
    """One session, one crash."""
    port = processes.free_port()
    program = ways.program("fragile")
    words = ways.mve_led(1, same=f"{program} {port} sound")
    running = processes.Running([*words, program, str(port), "fragile"],
                                ways.folder, (ways.mve,))
    try:
        processes.wait_for_port(running, port)
        others = [_connect(port) for _ in range(idle)]
        s = _connect(port)
        before = [_ask_us(s, b"hello\n") for _ in range(NORMAL)]
        session.Session(ways.mve, words).wait(1)
        crash = _ask_us(s, b"crash\n")
        after = [_ask_us(s, b"again\n") for _ in range(NORMAL)]
        for other in others:
            _ask_us(other, b"still here\n")
        s.close()
        return {"before": figures.median(before), "crash": crash,
                "after": figures.median(after)}
    except OSError as e:
        raise processes.Failed(f"{e}: {running.said()}")
    finally:
        running.stop()


def _descriptors():
    """As many as we may have, for us and what we start."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most - SPARE


def measure(ways, options, progress):
    most = _descriptors()
    rows = []
    for idle in (min(idle, most) for idle in IDLE):
        runs = 10 if options.quick else 50
        runs = max(3, runs // 10) if idle >= MANY else runs
        row = {"idle": idle, "runs": runs,
               "trouble": ways.mve_missing("led"), "lost": 0}
        samples = []
        for r in range(0 if row["trouble"] else runs):
            progress(f"failover: {idle} idle connections: run {r + 1} "
                     f"of {runs}")
            try:
                samples.append(_run(ways, idle))
            except processes.Failed as e:
                row["lost"] += 1
                row["why"] = str(e)
        for key in samples[0] if samples else ():
            row[key] = figures.summary([run[key] for run in samples])
        rows.append(row)
    return {"runs": rows[0]["runs"], "unit": "us", "rows": rows}


def show(result, options):
    yield (f"FAILOVER, us until the answer ({result['runs']} crashes each, "
           "clients on the same CPUs)")
    yield ""
    yield figures.columns(WIDTHS, ("request", "median", "least", "q1", "q3",
                                   "most"))
    yield figures.rule()
    for row in result["rows"]:
        if "crash" not in row:
            yield row["trouble"] or f"failed: {row['why']}"
            continue
        for key, label in (("before", "normal"), ("crash", "kills the leader"),
                           ("after", "normal, afterwards")):
            idle = f", {row['idle']} others" if key == "crash" else ""
            yield figures.columns(WIDTHS, (label + idle, *(
                figures.number(row[key][k], 0)
                for k in ("median", "min", "q1", "q3", "max"))))
    for row in result["rows"]:
        if row["lost"]:
            yield (f"lost: {row['lost']} of {row['runs']} "
                   f"({row['idle']} others): {row['why']}")


def targets(result):
    for row in result["rows"]:
        lost = row["lost"]
        yield ("requests lost at failover: none",
               f"{lost} of {row['runs']} ({row['idle']} idle)",
               "met" if not lost and "crash" in row else "not met")


def drawings(result):
    series = [(label + (f", {row['idle']} other connections"
                        if key == "crash" else ""), row[key]["samples"])
              for row in result["rows"] if "crash" in row
              for key, label in (("before", "normal"),
                                 ("crash", "kills the leader"))
              if key == "crash" or not row["idle"]]
    if series:
        yield "failover", plots.shares(
            "Latency of the request that kills the leader", "us", series)
