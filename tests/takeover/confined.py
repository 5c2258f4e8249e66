#!/usr/bin/env python3
"""confined.py: what Landlock forbids a leader it forbids its follower.  Where that cannot be
made, since too many rule sets are open, it is said once, and the server goes on."""
import os
import subprocess
import sys

from load import Wrong
from session import MVE, ROOT

SETS = 16       # that a follower keeps: RULESETS, inside/calls/landlock.c
WORD = "is not confined by a Landlock rule set"


def words(program, sets):
    done = subprocess.run([MVE, "run", "-n", os.environ.get("MVE_SESSION", f"t-{os.getpid()}"),
                           "-f", "same", "--", program, str(sets)], capture_output=True,
                          text=True, timeout=100, check=False)
    if done.returncode == 77:
        print("confined: no Landlock")
        sys.exit(77)
    if done.returncode or done.stdout != "no link\n" or "dropped" in done.stderr:
        raise Wrong(f"{sets} sets: status {done.returncode}: {done.stdout} {done.stderr}")
    return done.stderr.count(WORD)


def main():
    program = os.getcwd() + "/confined"
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-o", program,
                    ROOT + "/tests/takeover/confined.c"], check=True)
    for sets, times in ((1, 0), (SETS, 0), (SETS + 1, 1)):
        said = words(program, sets)
        if said != times:
            raise Wrong(f"{sets} sets: it was said {said} times")
    print("confined: ok")


if __name__ == "__main__":
    try:
        main()
    except Wrong as e:
        raise SystemExit(str(e))
