#!/usr/bin/env python3
"""A slot that names the monitor does not make it end itself.

Each process of a version can write its version's area, one that gave up root as well.  The
monitor has that area mapped, too; one that stays behind a daemon is younger than the server.
"""
import json
import os
import struct
import subprocess
import sys
import time

ROOT = os.environ.get("ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
MVE = os.environ.get("MVE", ROOT + "/build/mve")
SESSION = os.environ.get("MVE_SESSION", f"t-{os.getpid()}")
LIMIT_S = 30
DAEMON = """
import os, time
if os.fork():
    os._exit(0)
os.setsid()
while True:
    time.sleep(0.05)
    os.getppid()
"""
# engine/abi/area.h
SLOTS_HIGH, SLOTS, SLOT = 12, 4096 + 1024 * 16, 4 * 4096


def status():
    return json.loads(subprocess.check_output([MVE, "status", SESSION, "--json"]))


def until(what):
    end = time.time() + LIMIT_S
    while not what():
        assert time.time() < end, f"not within {LIMIT_S} s"
        time.sleep(0.05)


def follower():
    return next((v for v in status()["versions"] if v["role"] == "follower"), None)


def slot_forge(pid, named):
    with open(f"/proc/{pid}/maps") as f:
        area = next(int(l.split("-")[0], 16) for l in f if "mve-area" in l)
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as mem:
        mem.seek(area + SLOTS_HIGH)
        high, = struct.unpack("I", mem.read(4))
        mem.seek(area + SLOTS + high * SLOT)
        mem.write(struct.pack("II", named, named))
        mem.seek(area + SLOTS_HIGH)
        mem.write(struct.pack("I", high + 1))


def main():
    subprocess.run([MVE, "run", "-n", SESSION, "-f", "same", "--", sys.executable, "-c", DAEMON],
                   check=True, timeout=LIMIT_S)
    until(lambda: follower() and not follower()["lag_cells"])
    monitor = status()["monitor"]
    slot_forge(follower()["pid"], monitor)
    subprocess.run([MVE, "drop", SESSION, "f1"], check=False, timeout=LIMIT_S)
    until(lambda: not follower())
    assert status()["monitor"] == monitor
    subprocess.run([MVE, "stop", "--kill", SESSION], check=True, timeout=LIMIT_S)
    print("names_monitor: ok")


try:
    main()
finally:
    subprocess.run([MVE, "stop", "--kill", SESSION], stderr=subprocess.DEVNULL)
