#!/usr/bin/env python3
"""killed.py SERVER POINTS [OPTION...]: mve is killed while it comes to a server, and while it
leaves one, also one that has had a follower, at points spread over the time of that, from its first
instant on; the server serves on every time, and no request is lost, doubled or wrong."""
import random
import subprocess
import sys
import time

from server import MVE, Server, Wrong, wait_for

REPLIES = 60
SPREAD_S = 0.05     # where one does not take so long on this machine


def coming(server):
    return subprocess.Popen([MVE, "attach", "-n", server.name, str(server.pid)],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def kill_coming(server, after_s):
    mve = coming(server)
    time.sleep(after_s)
    mve.kill()
    return "holds pid" in mve.communicate()[0]


def kill_parting(server, after_s):
    """It has had a follower."""
    server.attach()
    for words in ("follow",), ("drop", "twin1"):
        done = subprocess.run([MVE, words[0], server.name, *words[1:]], capture_output=True,
                              text=True)
        if done.returncode:
            raise Wrong(f"mve {words[0]}: {done.stderr}")
    wait_for(lambda: all(v["role"] != "follower" for v in server.status()["versions"]),
             "it is dropped")
    return leaving_killed(server, after_s)


def kill_leaving(server, after_s):
    server.attach()
    return leaving_killed(server, after_s)


def leaving_killed(server, after_s):
    ask = subprocess.Popen([MVE, "detach", server.name], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    time.sleep(after_s)
    server.mve.kill()
    ask.wait()
    return "goes on without" in server.mve.communicate()[0]


def times(kind, more):
    """How long coming takes, and leaving."""
    server = Server(kind, *more)
    try:
        began = time.monotonic()
        server.attach()
        came = time.monotonic()
        wait_for(server.left, "it is left", 60)
        left = time.monotonic()
    finally:
        server.clean()
    return max(came - began, SPREAD_S), max(left - came, SPREAD_S), max(left - came, SPREAD_S)


def point(kind, more, kill, after_s):
    server = Server(kind, *more)
    try:
        load = server.load(pause=0.001)
        load.more(REPLIES)
        done = kill(server, after_s)
        load.more(REPLIES)
        server.check()
        load.stop()
        server.check()
    except Wrong as e:
        raise SystemExit(f"{kill.__name__} after {after_s:.4f} s: {e}\n{server.log()}")
    finally:
        server.clean()
    return done


def main():
    kind, points, more = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    for kill, took in zip((kill_coming, kill_leaving, kill_parting), times(kind, more)):
        done = sum(point(kind, more, kill, took * 1.1 * (n + random.random()) / points)
                   for n in range(points))
        print(f"{kill.__name__}: {points} points, {done} were over", file=sys.stderr)
    print("killed: ok")


main()
