#!/usr/bin/env python3
"""half.py WAY...: the monitor is killed while the successor has some of the descriptors and
not all.  Nobody can give it the others: the leader goes on, no request is lost, and whatever
does not serve ends.
"""
import os
import resource
import signal
import subprocess
import sys
import time

from load import Wrong
from session import MVE, Session

IDLE = 12000


def count(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def within(seconds, what):
    end = time.monotonic() + seconds
    while time.monotonic() < end and not what():
        time.sleep(0.02)
    return what()


def half(session, idle, keep):
    import socket
    for _ in range(IDLE):
        idle.append(socket.create_connection(("127.0.0.1", session.port)))
    leader, follower = (v["pid"] for v in session.versions())
    session.wait_for(lambda: count(leader) > IDLE, "connections")
    before = count(follower)
    load = session.load()
    load.more(100)
    asker = subprocess.Popen([MVE, "promote", session.name, "f1"] + ["--keep"] * keep,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while asker.poll() is None and count(follower) < before + 400:
        pass
    session.mve.kill()
    session.mve.wait()
    asker.wait(60)
    done = count(follower) >= IDLE
    load.more(300)
    load.stop()
    if not within(20, lambda: alive(leader) + alive(follower) == 1):
        raise Wrong(f"leader {alive(leader)}, successor {alive(follower)}")
    if subprocess.run([MVE, "stop", session.name], timeout=60).returncode:
        raise Wrong("mve stop")
    if alive(leader) or alive(follower):
        raise Wrong("it is left behind mve stop")
    return done


def tried(way):
    """Until once it was in the middle."""
    for _ in range(10):
        session, idle = Session("kv", 1), []
        pids = [v["pid"] for v in session.versions()]
        try:
            if not half(session, idle, way == "keep"):
                return
        finally:
            for connection in idle:
                connection.close()
            for pid in filter(alive, pids):
                os.kill(pid, signal.SIGKILL)
            session.clean()
    raise Wrong("it was never in the middle")


def main():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < IDLE + 1000:
        print("half: too few descriptors")
        sys.exit(77)
    resource.setrlimit(resource.RLIMIT_NOFILE, (IDLE + 1000, hard))
    for way in sys.argv[1:]:
        try:
            tried(way)
        except Wrong as e:
            print(f"half: {way}: {e}")
            sys.exit(1)
    print("half: ok")


if __name__ == "__main__":
    main()
