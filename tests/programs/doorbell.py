#!/usr/bin/env python3
"""A request costs the monitor a look at who asks, and not at every thread's slot.

The kernel says which pages of the area the monitor has touched since its marks were cleared.
"""
import os
import subprocess
import sys
import time

ROOT = os.environ.get("ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
MVE = os.environ.get("MVE", ROOT + "/build/mve")
SESSION = os.environ.get("MVE_SESSION", f"t-{os.getpid()}")
THREADS, REQUESTS, PAGE_KB = 200, 5, 4

SERVER = """
import sys, threading, mmap
hold = threading.Event()
for i in range(%d):
    threading.Thread(target=hold.wait, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    with open(sys.executable, "rb") as f:
        mmap.mmap(f.fileno(), 4096, flags=mmap.MAP_PRIVATE,
                  prot=mmap.PROT_READ | mmap.PROT_EXEC)
    print("asked", flush=True)
import os
os._exit(0)
""" % THREADS


def touched_kb(pid):
    area, kb = False, 0
    with open(f"/proc/{pid}/smaps") as f:
        for line in f:
            if "-" in line.split()[0]:
                area = "mve-area" in line
            elif area and line.startswith("Referenced:"):
                kb += int(line.split()[1])
    return kb


def main():
    mve = subprocess.Popen([MVE, "run", "-n", SESSION, "--", sys.executable, "-c", SERVER],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert mve.stdout.readline() == b"ready\n"
    time.sleep(0.5)
    with open(f"/proc/{mve.pid}/clear_refs", "w") as f:
        f.write("1")
    for _ in range(REQUESTS):
        mve.stdin.write(b"ask\n")
        mve.stdin.flush()
        assert mve.stdout.readline() == b"asked\n"
    kb = touched_kb(mve.pid)
    mve.stdin.close()
    assert mve.wait(30) == 0
    assert 0 < kb < THREADS * PAGE_KB / 4, f"{kb} KiB of the area for {REQUESTS} requests"
    print("doorbell: ok")


main()
