#!/usr/bin/env python3
"""cheap.py: a session that was begun alone, then followed by a twin, which is dropped: from there
on its calls, clocks and locks take as many instructions as before.  Counted by single steps: no
clock and no other work has a part in it.  MORE is what may be left of a hook: the jump to it."""
import json
import os
import subprocess
import sys
import time

BUILD = os.path.join(os.environ["ROOT"], "build")
MVE, NAME = os.environ["MVE"], os.environ["MVE_SESSION"]
TURNS = 40
PIECE = 20000       # turns of a loop between calls that are not its own
BATCHES = 1000      # the most that perf/record takes in a line
PIECES = 2000000    # more than there is time for
LIMIT_S = 60        # for what hangs
LOOPS = (("getppid", ""), ("read", ""), ("clock_gettime", ""), ("read", "threads"),
         ("lock", "threads"))
MORE = {"clock_gettime": 2, "lock": 8}


def mve(*words):
    return subprocess.run([MVE, *words], capture_output=True, text=True, timeout=2 * LIMIT_S)


def status():
    got = mve("status", "--json", NAME)
    return json.loads(got.stdout) if not got.returncode else {}


def wait_for(what, words):
    limit = time.monotonic() + LIMIT_S
    while not what():
        if time.monotonic() > limit:
            raise SystemExit(f"not in {LIMIT_S} s: {words}")
        time.sleep(0.05)


def ticks(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[11])


def goes_on(pid):
    """Pieces of it are over: what nobody needs has been left out."""
    was = ticks(pid)
    wait_for(lambda: ticks(pid) > was + 30, "it runs")


def steps(pid):
    got = subprocess.run([BUILD + "/perf/steps", str(pid), str(TURNS)], capture_output=True,
                         text=True)
    if got.returncode:
        raise SystemExit(f"not stepped: {got.stderr}")
    return int(got.stdout)


def followed(pid):
    """By a twin, for a moment; what the loop takes meanwhile."""
    done = mve("follow", NAME)
    if done.returncode:
        raise SystemExit(f"mve follow: {done.stdout}{done.stderr}")
    name = done.stdout.split(":")[0]
    told = steps(pid)
    row = next(v for v in status()["versions"] if v["name"] == name)
    if row["role"] != "follower" or row["verdicts"]:
        raise SystemExit(f"{name}: {json.dumps(row, indent=1)}")
    if mve("drop", NAME, name).returncode:
        raise SystemExit("mve drop")
    goes_on(pid)
    return told


def measure(call, threads):
    run = subprocess.Popen([MVE, "run", "-n", NAME, "--",
                            BUILD + "/perf/record", *threads.split()], stdin=subprocess.PIPE,
                           stdout=subprocess.DEVNULL, text=True)
    run.stdin.write(f"{call} {PIECE} {BATCHES}\n" * (PIECES // BATCHES))
    run.stdin.flush()
    try:
        wait_for(lambda: status().get("server"), "it begins")
        pid = status()["server"]
        goes_on(pid)
        alone = steps(pid)
        told = followed(pid)
        again = steps(pid)
        second = followed(pid)
        return alone, told, again, second, steps(pid)
    finally:
        mve("stop", NAME)
        run.stdin.close()
        run.wait()


def main():
    bad = False
    for call, threads in LOOPS:
        alone, told, again, second, last = measure(call, threads)
        print(f"{call} {threads}: {alone} instructions alone, {told} followed, {again} when the "
              f"follower is gone; once more {second}, {last}")
        most = alone + MORE.get(call, 0)
        bad |= again > most or last > most or min(told, second) <= most
    print("cheap: " + ("too many" if bad else "ok"))
    sys.exit(bad)


main()
