#!/usr/bin/env python3
"""starved.py SERVER [OPTION...]: mve comes to a server, and leaves it, while that gets next to no
processor: so much in a second, by a control group, of which others in it take most.  Each time it is held whole, or refused with a
word and as it was before: never held in part.  Then it has its time again, and all is served."""
import os
import subprocess
import sys

from left import is_left, signals
from server import MVE, Server, WAIT_S, Wrong, family

REPLIES = 60
PERIOD_US = 1000000
GIVEN_US = (2000, 4000, 8000, 16000, 32000)
OTHERS = 1
LONG_S = 240        # all of it comes to an end, however late


class Group:
    """Of the second version of control groups, or the first."""
    def __init__(self, name):
        v1, v2 = f"/sys/fs/cgroup/cpu/{name}", f"/sys/fs/cgroup/{name}"
        self.first = os.path.exists("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
        self.path = v1 if self.first else v2
        try:
            os.mkdir(self.path)
            self.give(None)
        except OSError as e:
            print(f"no control group that limits processors: {e}", file=sys.stderr)
            sys.exit(77)

    def write(self, name, text):
        with open(f"{self.path}/{name}", "w") as f:
            f.write(text)

    def give(self, us):
        if self.first:
            self.write("cpu.cfs_period_us", str(PERIOD_US))
            self.write("cpu.cfs_quota_us", str(us or -1))
        else:
            self.write("cpu.max", f"{us or 'max'} {PERIOD_US}")

    def take(self, pids):
        for pid in pids:
            self.write("cgroup.procs", str(pid))

    def end(self):
        parent = os.path.dirname(self.path)
        with open(f"{self.path}/cgroup.procs") as f:
            for pid in f.read().split():
                with open(f"{parent}/cgroup.procs", "w") as to:
                    to.write(pid)
        os.rmdir(self.path)


def attach(server):
    """True: it is held; False: it was refused, in whole."""
    server.mve = subprocess.Popen([MVE, "attach", "-n", server.name, str(server.pid)],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
    words = server.mve.stdout.readline()
    if "holds pid" in words:
        return True
    words += server.mve.stdout.read()
    server.mve.wait(LONG_S)
    if "in part" in words or "cannot" not in words:
        raise Wrong(f"mve attach: {words}")
    print("refused:", words.split("\n")[0], file=sys.stderr)
    return False


def detach(server):
    done = subprocess.run([MVE, "detach", server.name], capture_output=True, text=True,
                          timeout=LONG_S)
    if "in part" in done.stderr or done.returncode not in (0, 1):
        raise Wrong(f"mve detach: {done.returncode} {done.stderr}")
    print("detach:", done.stderr.strip() or "done", file=sys.stderr)
    return not done.returncode


def once(server, group, us):
    load = server.load(pause=0.001)
    load.more(REPLIES)
    before = {pid: signals(pid) for pid in family(server.pid)}
    load.stop()
    others = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(OTHERS)]
    try:
        group.take(other.pid for other in others)
        group.give(us)
        held = attach(server)
        left = held and detach(server)
    finally:
        for other in others:
            other.kill()
        group.give(None)
        for other in others:
            other.wait()
    load = server.load(pause=0.001)
    load.more(REPLIES)
    if held and not left and not detach(server):
        raise Wrong("it cannot be left, though it has its time")
    if held:
        server.mve.wait(WAIT_S)
    load.more(REPLIES)
    load.stop()
    server.check()
    for pid in family(server.pid):
        is_left(pid, before.get(pid, {}))


def main():
    server = Server(sys.argv[1], *sys.argv[2:])
    group = Group(server.name)
    try:
        group.take(family(server.pid))
        for us in GIVEN_US:
            once(server, group, us)
        server.stop()
    except Wrong as e:
        raise SystemExit(f"{e}\n{server.log()}")
    finally:
        server.clean()
        group.end()
    print("starved: ok")


main()
