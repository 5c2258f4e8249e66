#!/usr/bin/env python3
"""states.py WAY [PARTY...]: a party of a takeover is killed, or stopped for a while, at each act of
outside/takeover/moves.def that the way comes by.  The acts are found by a run of their own.

    promote, crash    the way: a planned promotion of f1; the leader crashes

    f1, f2            all processes of that follower are killed
    first, child      only the first process of f1; only the other
    stopped           f1 is stopped for a moment
    stays             f1 is stopped for good where it has been answered, and nobody of it leads
    leader            all processes of the leader are killed

A server of two processes, each of which counts what it was asked: it serves on, and nobody is
told a wrong number.  Only where those that lead, or can be taken from, are killed themselves may
the session end instead.
"""
import os
import re
import signal
import subprocess
import sys
import time

from load import Wrong
from prepared import Client, child, followed
from session import MVE, ROOT, Session, free_port

MORE = 4
STOP_S = 1.5
GDB = ["gdb", "-q", "-nx", "-batch", "-iex", "set auto-load no", "-iex",
       "set debuginfod enabled off"]
LATE = {"move_look_taken", "move_end"}      # f1 leads already, as far as it knows


def acts():
    with open(ROOT + "/engine/outside/takeover/moves.def") as table:
        found = re.findall(r"^ON\(\w+, \w+, (\w+), \w+\)", table.read(), re.M)
    return ["move_" + act for act in dict.fromkeys(found) if act != "do_nothing"]


class Watched:
    """A session, and a debugger that stops its monitor."""

    def __init__(self, program):
        self.ports = free_port(), free_port()
        self.session = Session("states", 2, (), [program, *map(str, self.ports), str(MORE)], None,
                               self.ports[0])
        self.client = Client(*self.ports)
        self.client.look("at first")
        followed(self.session, 2)
        self.pids = {v["name"]: [v["pid"], child(v["pid"])] for v in self.session.versions()}

    def debug(self, *commands):
        ready = self.session.folder + "/armed"
        words = [w for c in (*commands[:1], f"shell touch {ready}", "continue", *commands[1:])
                 for w in ("-ex", c)]
        gdb = subprocess.Popen([*GDB, *words, "-p", str(self.session.mve.pid), MVE],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
        end = time.monotonic() + 30
        while not os.path.exists(ready) and gdb.poll() is None:
            if time.monotonic() > end:
                raise Wrong("the debugger does not come")
            time.sleep(0.01)
        return gdb

    def begin(self, way):
        if way == "crash":
            os.kill(self.pids["v0"][0], signal.SIGSEGV)
            return None
        return subprocess.Popen([MVE, "promote", self.session.name, "f1"], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def clean(self):
        self.session.clean()


def passed(way, program):
    """The acts by which it comes, in order."""
    w = Watched(program)
    try:
        stops = ";".join(acts())
        gdb = w.debug("python [gdb.Breakpoint(a) for a in '%s'.split(';')]" % stops,
                      *["python print('ACT', gdb.selected_frame().name())", "continue"] * 40)
        asked = w.begin(way)
        w.client.look("nobody was hurt")
        w.session.wait_for(lambda: w.session.leader()["name"] != "v0", "another leads")
        if asked:
            asked.communicate(timeout=20)
        time.sleep(0.3)
        gdb.terminate()
        said = re.findall(r"^ACT (move_\w+)", gdb.communicate(timeout=20)[0], re.M)
        w.session.stop()
        return list(dict.fromkeys(said))
    finally:
        w.clean()


def whom(w, party):
    f1 = w.pids["f1"]
    return {"f1": f1, "f2": w.pids["f2"], "first": f1[:1], "child": f1[1:], "stopped": f1,
            "stays": f1, "leader": w.pids["v0"]}[party]


def may_end(act, party):
    """Who serves is killed, as it might be natively."""
    return party == "leader" or (act in LATE and party in ("f1", "first", "child"))


def serves(w, act, party):
    try:
        w.client.look(f"{party} at {act}")
    except (OSError, Wrong) as e:
        if isinstance(e, Wrong) and "''" not in str(e):
            raise       # a wrong number
        if not may_end(act, party):
            raise Wrong(f"{party} at {act}: nobody answers: {e!r}")


def hurt(pids, sig):
    """A word for the shell.  Who was killed has closed what it had when it is a zombie."""
    until = 'until [ ! -e /proc/$p ] || grep -q "^State:.Z" /proc/$p/status; do sleep 0.01; done'
    whom = " ".join(map(str, pids))
    kill = f"kill -{sig} {whom}"
    return kill if sig == "STOP" else f"{kill}; for p in {whom}; do {until}; done"


def one(way, act, party, program):
    w = Watched(program)
    try:
        pids = whom(w, party)
        if way == "crash":      # f1 is to be asked first
            for pid in w.pids["f2"]:
                os.kill(pid, signal.SIGSTOP)
            w.client.look("f2 is behind")
        sig = "STOP" if party in ("stopped", "stays") else "KILL"
        gdb = w.debug(f"break {act}", "shell " + hurt(pids, sig),
                      f"shell touch {w.session.folder}/hit", "detach")
        asked = w.begin(way)
        end = time.monotonic() + 20
        while not os.path.exists(w.session.folder + "/hit"):
            if time.monotonic() > end or gdb.poll() is not None:
                raise Wrong(f"{act} was not come by: {gdb.communicate(timeout=9)[0]}")
            time.sleep(0.01)
        if party == "stopped":
            time.sleep(STOP_S)
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        serves(w, act, party)
        if asked:
            asked.communicate(timeout=60)
        serves(w, act, party)
        gdb.communicate(timeout=20)
        if not may_end(act, party):
            w.session.stop()
    except (Wrong, OSError, subprocess.TimeoutExpired) as e:
        raise Wrong(f"{way}: {party} at {act}: {e!r}\n{w.session.log()}")
    finally:
        for pid in w.pids["f2"] + w.pids["f1"]:
            try:
                os.kill(pid, signal.SIGCONT)
            except OSError:
                pass
        w.clean()


def main():
    out = os.getcwd() + "/prepared"
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-o", out,
                    ROOT + "/tests/takeover/prepared.c"], check=True)
    way = sys.argv[1]
    parties = sys.argv[2:] or ["f1", "f2", "first", "child", "stopped", "stays", "leader"]
    found = passed(way, out)
    print("by", *(a[5:] for a in found))
    wrong = 0
    for party in parties:
        for act in ["move_commit"] if party == "stays" else found:
            try:
                one(way, act, party, out)
            except Wrong as e:
                wrong += 1
                print(e, flush=True)
    if wrong:
        raise SystemExit(f"{wrong} wrong")
    print("states: ok")


main()
