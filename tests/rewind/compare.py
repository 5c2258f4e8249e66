#!/usr/bin/env python3
"""A follower of the same build has its leader's memory, under load, too; a word of it that is
changed from outside is found, and named by symbol, member and type."""
import contextlib
import json
import os
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MVE = os.environ.get("MVE", f"{ROOT}/build/mve")
BIN = os.environ.get("BIN", f"{ROOT}/build/tests")


def fail(why):
    print(f"FAILED: {why}")
    sys.exit(1)


def run(*words):
    return subprocess.run([MVE, *words], capture_output=True, text=True)


def address(symbol, pid):
    """Of a program that is placed anywhere."""
    with open(f"/proc/{pid}/maps") as f:
        base = next(int(line.split("-")[0], 16) for line in f if line.endswith("/compared\n"))
    out = subprocess.run(["nm", f"{BIN}/compared"], capture_output=True, text=True).stdout
    return base + next(int(w[0], 16) for w in map(str.split, out.splitlines()) if w[-1] == symbol)


def follower(name, who):
    """What status says of it; None: it does not follow yet."""
    said = run("status", name, "--json").stdout
    return next((v for v in (json.loads(said)["versions"] if said else [])
                 if v["role"] == "follower" and v["name"] == who), None)


def await_follower(name, who):
    end = time.monotonic() + 20
    while not (v := follower(name, who)):
        if time.monotonic() > end:
            fail(f"no follower {who}")
        time.sleep(0.05)
    return v


def compared(name, expected, who="f1"):
    done = run("compare", name, who)
    if done.returncode != expected:
        fail(f"status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


@contextlib.contextmanager
def loaded(name, *options):
    """A session of the program, that answers lines all the while."""
    mve = subprocess.Popen([MVE, "run", "-n", name, *options, "--", f"{BIN}/compared"],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    busy = True

    def load():
        while busy:
            mve.stdin.write("\n")
            mve.stdout.readline()
            time.sleep(0.001)

    loader = threading.Thread(target=load)
    loader.start()
    try:
        yield
    finally:
        busy = False
        loader.join()
        mve.stdin.close()
    if mve.wait(20):
        fail("the server ended so")


def changed_found(name):
    v = await_follower(name, "f1")
    none = run("compare", name, "nobody")
    if none.returncode != 1 or "no follower of that name" not in none.stderr:
        fail(f"nobody: {none.returncode}: {none.stderr}")
    compared(name, 0)
    at = address("table", v["pid"]) + 2 * 16 + 8
    with open(f"/proc/{v['pid']}/mem", "r+b", buffering=0) as mem:
        mem.seek(at)
        mem.write((77).to_bytes(8, "little"))
    said = compared(name, 1)
    if f"0x{at:x}" not in said or "table[2].seen, long" not in said or "000004d" not in said:
        fail(said)
    if "1 word differs" not in said:
        fail(said)


def twin_compared(name):
    """It comes late: memory of mve's own is filled otherwise, and is nobody's difference."""
    end = time.monotonic() + 20
    while run("status", name).returncode:
        if time.monotonic() > end:
            fail("no session")
        time.sleep(0.05)
    joined = run("follow", name)
    if joined.returncode:
        fail(joined.stderr)
    await_follower(name, "twin1")
    compared(name, 0, "twin1")


def main():
    name = f"compare-{os.getpid()}"
    with loaded(name, "-f", "same"):
        changed_found(name)
    with loaded(name + "-twin"):
        twin_compared(name + "-twin")
    print("compare: ok")


main()
