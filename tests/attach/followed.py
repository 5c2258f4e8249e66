#!/usr/bin/env python3
"""followed.py SERVER TIMES [OPTION...]: mve comes to a server, makes a twin of it, drops that, and
leaves the server, TIMES times, under numbered requests.  Nothing of it stays in any of its
processes; its lock functions and clocks are its own again.  Then it comes and goes with nobody
following.  It is refused while somebody follows; and in the end, when a twin has come to lead."""
import subprocess
import sys

from left import is_left, signals
from server import MVE, Server, WAIT_S, Wrong, family, wait_for

REPLIES = 60


def mve(server, *words):
    return subprocess.run([MVE, words[0], server.name, *words[1:]], capture_output=True,
                          text=True, timeout=120)


def followers(server):
    return [v for v in server.status()["versions"] if v["role"] == "follower"]


def follow(server):
    done = mve(server, "follow")
    if done.returncode:
        raise Wrong(f"mve follow: {done.stdout}{done.stderr}")
    return done.stdout.split(":")[0].split("/")[-1]


def refused(server, words):
    done = mve(server, "detach")
    if done.returncode != 1 or words not in done.stderr:
        raise Wrong(f"mve detach is to say {words}: {done.returncode} {done.stderr}")


def leave(server):
    wait_for(server.left, "it is left", 60)
    server.mve.wait(WAIT_S)


def once(server, load):
    before = {pid: signals(pid) for pid in family(server.pid)}
    server.attach()
    load.more(REPLIES)
    name = follow(server)
    load.more(REPLIES)
    refused(server, "it has followers")
    done = mve(server, "drop", name)
    if done.returncode:
        raise Wrong(f"mve drop: {done.stderr}")
    wait_for(lambda: not followers(server), "it is dropped")
    load.more(REPLIES)
    leave(server)
    load.more(REPLIES)
    server.check()
    for pid in family(server.pid):
        is_left(pid, before.get(pid, {}))


def unfollowed(server, load):
    """What lock functions have left on stacks before is no reason to stay."""
    server.attach()
    load.more(REPLIES)
    leave(server)


def promoted(server, load):
    """A copy leads: the ids that it believes to have are those of who has ended."""
    server.attach()
    name = follow(server)
    done = mve(server, "promote", name)
    if done.returncode:
        raise Wrong(f"mve promote: {done.stderr}")
    load.more(REPLIES)
    refused(server, "another has led in its place")
    load.more(REPLIES)


def main():
    server = Server(sys.argv[1], *sys.argv[3:])
    try:
        load = server.load(pause=0.001)
        load.more(REPLIES)
        for _ in range(int(sys.argv[2])):
            once(server, load)
        unfollowed(server, load)
        server.check()
        promoted(server, load)
        replies = load.stop()
        mve(server, "stop")
        server.mve.wait(WAIT_S)
    except Wrong as e:
        raise SystemExit(f"{e}\n{server.log()}")
    finally:
        server.clean()
    print(f"{replies} replies", file=sys.stderr)
    print("followed: ok")


main()
