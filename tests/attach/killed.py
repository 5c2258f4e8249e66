#!/usr/bin/env python3
"""killed.py SERVER POINTS: mve attach is killed at points spread over its time, from its first
instant on; the server serves on every time, and no request is lost, doubled or wrong."""
import random
import subprocess
import sys
import time

from server import MVE, Server, Wrong

REPLIES = 60
SPREAD_S = 0.08     # where no earlier attach has said how long one takes


def attach_and_kill(server, after_s):
    """Killed then; or it had come by then, and is killed all the same."""
    mve = subprocess.Popen([MVE, "attach", "-n", server.name, str(server.pid)],
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
    time.sleep(after_s)
    mve.kill()
    words = mve.communicate()[0]
    return "holds pid" in words


def time_of_one(kind, more):
    server = Server(kind, *more)
    try:
        began = time.monotonic()
        server.attach()
        took = time.monotonic() - began
        server.stop()
    finally:
        server.clean()
    return took


def main():
    kind, points, more = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    took = max(time_of_one(kind, more), SPREAD_S)
    came = 0
    for n in range(points):
        server = Server(kind, *more)
        try:
            load = server.load(pause=0.001)
            load.more(REPLIES)
            came += attach_and_kill(server, took * 1.1 * (n + random.random()) / points)
            load.more(REPLIES)
            server.check()
            load.stop()
            server.check()
        except Wrong as e:
            raise SystemExit(f"point {n}: {e}\n{server.log()}")
        finally:
            server.clean()
    print(f"{points} points, {came} had come", file=sys.stderr)
    print("killed: ok")


main()
