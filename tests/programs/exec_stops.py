#!/usr/bin/env python3
"""How often the monitor waits while a program is started: each remote call is a stop of the
program and a wait of the monitor's.  Counted, not timed.

    exec_stops.py           runs itself under mve
"""
import os
import re
import subprocess
import sys

PROGRAMS = 100
WAITS = 12      # each; they were 13, and more where none overlaps another


def waits():
    with open(f"/proc/{os.getppid()}/status") as f:
        return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", f.read(), re.M)[1])


def start(n):
    for _ in range(n):
        pid = os.posix_spawn("/bin/true", ["true"], os.environ)
        if os.waitpid(pid, 0)[1]:
            sys.exit("true failed")


def inner():
    start(3)
    before = waits()
    start(PROGRAMS)
    each = (waits() - before) / PROGRAMS
    print(f"{each:.1f} waits for each program", file=sys.stderr)
    if each > WAITS:
        sys.exit(f"more than {WAITS}")
    print("exec_stops: ok")


if sys.argv[1:] == ["inner"]:
    inner()
else:
    sys.exit(subprocess.call([os.environ["MVE"], "run", "-n", os.environ["MVE_SESSION"], "--",
                              sys.executable, __file__, "inner"]))
