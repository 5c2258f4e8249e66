#!/usr/bin/env python3
"""overlaps.py: a follower whose thread is sooner between two events than its leader's was, and so
finds nothing of what another thread does meanwhile, finds it where that is met again.  Behind it,
and behind one image, it is to find nothing of it, and again: each is met its own way."""
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MVE = os.environ.get("MVE", f"{ROOT}/build/mve")
BIN = os.environ.get("BIN", f"{ROOT}/build/tests")
NAME = f"overlaps-{os.getpid()}"
WAYS = "late", "early", "late", "early"


def fail(why):
    print(f"FAILED: {why}")
    sys.exit(1)


def follower():
    out = subprocess.run([MVE, "status", NAME, "--json"], capture_output=True, text=True)
    return json.loads(out.stdout)["versions"][1]


def wait(what):
    end = time.monotonic() + 60
    while not what(f := follower()):
        if f["role"] == "ended" or time.monotonic() > end:
            fail(f"{f.get('why')}: {json.dumps(f)}")
        time.sleep(0.02)
    return f


def main():
    mve = subprocess.Popen([MVE, "run", "-n", NAME, "-f", f"{BIN}/overlaps 0", "--",
                            f"{BIN}/overlaps", "1"], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, text=True, bufsize=1)
    mve.stdout.readline()
    wait(lambda f: f["rewind"]["image"])
    for way in WAYS:
        mve.stdin.write(way + "\n")
        while (line := mve.stdout.readline()) != "over\n":
            if line.endswith("seen\n"):
                print(f"{way}: {line}", end="")
    wait(lambda f: not f["lag_cells"])
    f = wait(lambda f: f["alive"])
    mve.stdin.close()
    if mve.wait(20):
        fail(f"the server ended with {mve.returncode}")
    print(f"went back {f['rewind']['rewinds']} times, {f['rewind']['images']} images")
    print("overlaps: ok")


main()
