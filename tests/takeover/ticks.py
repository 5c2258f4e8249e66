#!/usr/bin/env python3
"""ticks.py: threads that stand for one tick of a clock show the next one, which the same thread
comes to at once; neither waits for the other until its limit."""
import json
import os
import subprocess
import tempfile

from session import MVE, ROOT

SECONDS = 6


def waits(name):
    status = json.loads(subprocess.run([MVE, "status", name, "--json"], check=True,
                                       capture_output=True).stdout)
    return [w for v in status["versions"] for w in v["waits"] if w["kind"] == "tick"]


def main():
    name = os.environ.get("MVE_SESSION", f"ticks{os.getpid()}")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["gcc", "-O1", "-pthread", "-o", folder + "/ticks",
                        ROOT + "/tests/takeover/ticks.c"], check=True)
        with subprocess.Popen([MVE, "run", "-n", name, "-f", "same", "--", folder + "/ticks"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as mve:
            seconds = 0
            while seconds < SECONDS:
                mve.stdin.write("seconds\n")
                mve.stdin.flush()
                seconds = int(mve.stdout.readline())
            ticks = waits(name)
            mve.stdin.close()
            if mve.wait():
                raise SystemExit(f"mve: status {mve.returncode}")
    if any(w["met"] for w in ticks):
        raise SystemExit(f"threads have waited for each other: {ticks}")
    print("ticks: ok")


if __name__ == "__main__":
    main()
