#!/usr/bin/env python3
"""vanished.py: a child that has left its family and has unmapped what mve shares with it
(tests/programs/vanish.c) ends with its version, where sessions have a cgroup: a follower's
when it is dropped or the session ends, all when the session is stopped.  Nothing stays of
the cgroups themselves."""
import glob
import os
import subprocess
import sys
import time

MVE, BIN = os.environ["MVE"], os.environ["TESTS"]
NAME = os.environ["MVE_SESSION"]
COMM = f"v{os.getpid()}"


def mve(*args):
    return subprocess.run([MVE, *args], capture_output=True, text=True, timeout=60)


def vanished():
    """Those that spin: what has ended counts as gone."""
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as file:
                text = file.read()
        except OSError:
            continue
        if f"({COMM})" in text and text.rpartition(")")[2].split()[0] not in "ZX":
            pid = int(path.split("/")[2])
            with open(f"/proc/{pid}/maps") as file:
                # What is shared: the inside's code is the process's own.
                if not any("mve" in line and line.split()[1][3] == "s" for line in file):
                    found.append(pid)
    return found


def wait_for(what, words, seconds=20):
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            raise SystemExit(f"not in {seconds} s: {words}: {vanished()}")
        time.sleep(0.02)


def cgroups():
    return [p for p in glob.glob("/sys/fs/cgroup/**/mve-*", recursive=True) if f"-{NAME}-" in p]


def begin():
    run = subprocess.Popen([MVE, "run", "-n", NAME, "-f", "same", "--when-full", "block", "--",
                            f"{BIN}/vanish", COMM, "100"], stderr=subprocess.DEVNULL)
    wait_for(lambda: len(vanished()) == 2, "both have vanished")
    return run


def main():
    if not any(l.startswith("ok ") and " cgroup " in l for l in mve("doctor").stdout.splitlines()):
        print("no cgroup to be had here")
        raise SystemExit(77)
    run = None
    try:
        run = begin()
        mve("drop", NAME, "f1")
        wait_for(lambda: len(vanished()) == 1, "the dropped follower's is gone")
        for _ in range(2):
            done = mve("stop", NAME)
            if done.returncode:
                raise SystemExit(f"stop: {done.stderr}")
            run.wait(20)
            wait_for(lambda: not vanished(), "none outlives the session")
            wait_for(lambda: not cgroups(), f"no cgroup stays: {cgroups()}")
            if _ == 0:
                run = begin()
    finally:
        for pid in vanished():
            os.kill(pid, 9)
        if run and run.poll() is None:
            mve("stop", NAME, "--kill")
    print("vanished: ok")


if __name__ == "__main__":
    main()
