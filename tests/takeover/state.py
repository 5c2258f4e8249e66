#!/usr/bin/env python3
"""state.py [PLAIN|SETUID...]: a promoted follower is what the leader was: credentials, limits,
directory, umask, masks, handlers, timers, record locks; as the program sees it and
as the kernel has it in /proc.  Promoted and back, and after a crash; as root and as
a server that has given root up."""
import os
import re
import signal
import socket
import subprocess
import sys
import time

from load import Wrong
from session import ROOT, Session, free_port, is_locked

SAME = ("Name", "Umask", "Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp", "CapInh", "CapPrm",
        "CapEff", "CapBnd", "CapAmb", "SigBlk", "SigIgn", "SigCgt", "Threads", "Cpus_allowed")


def build(folder):
    out = f"{folder}/state"
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-o", out,
                    ROOT + "/tests/takeover/state.c", "-pthread"], check=True)
    return out


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 10)

    def ask(self, line):
        self.socket.sendall(line.encode() + b"\n")
        reply = b""
        while not reply.endswith(b"\n"):
            more = self.socket.recv(10000)
            if not more:
                raise Wrong(f"{line}: the connection is closed")
            reply += more
        return reply.decode().strip()

    def counts(self):
        return [int(n) for n in self.ask("count").split()]


def status_of(task):
    """As it is while the thread sleeps: in a handler it has the handler's mask."""
    for _ in range(500):
        rows = dict(line.split(":", 1) for line in open(f"{task}/status").read().splitlines())
        if rows["State"].strip().startswith("S"):
            return {key: rows[key].strip() for key in SAME if key in rows}
        time.sleep(0.01)
    raise Wrong(f"{task} does not sleep: {rows['State']}")


def kernel(pid):
    """What the kernel says of the process, of each thread by its name."""
    threads = sorted((status_of(f"/proc/{pid}/task/{tid}") for tid in os.listdir(
        f"/proc/{pid}/task")), key=lambda rows: rows["Name"])
    limits = open(f"/proc/{pid}/limits").read()
    return {"threads": threads, "limits": limits, "cwd": os.readlink(f"/proc/{pid}/cwd"),
            "slack": open(f"/proc/{pid}/timerslack_ns").read(),
            "nice": open(f"/proc/{pid}/stat").read().rsplit(") ")[1].split()[16]}


def locked(folder):
    """Which bytes of the file another process may not lock: ours."""
    return [byte for byte in range(0, 40) if is_locked(folder + "/lock", byte, 1)]


LOCKED = [*range(10, 15), *range(20, 30)]


def same(what, before, after):
    if before == after:
        return
    if isinstance(before, dict):
        for key in before:
            same(f"{what}, {key}", before[key], after[key])
    elif isinstance(before, list) and len(before) == len(after):
        for b, a in zip(before, after):
            same(what, b, a)
    else:
        rows = zip(re.split("; |\n", str(before)), re.split("; |\n", str(after)))
        raise Wrong(f"{what}: " + ("; ".join(f"{b!r}, then {a!r}" for b, a in rows if a != b)
                                   or f"{before!r}, then {after!r}"))


def timers_go(client, when):
    before = client.counts()
    for _ in range(1500):
        time.sleep(0.02)
        after = client.counts()
        if all(a > b + 1 for a, b in zip(after, before)):
            return
    raise Wrong(f"{when}: timers stand: {before}, then {after}"
                " (setitimer, timer_create, of a thread, timerfd)")


class State:
    def __init__(self, program, how):
        self.how, port = how, free_port()
        folder = os.getcwd() + "/" + how
        os.makedirs(folder + "/elsewhere/elsewhere", exist_ok=True)
        for path in (folder, folder + "/elsewhere", folder + "/elsewhere/elsewhere"):
            os.chmod(path, 0o777)
        self.folder = folder
        self.session = Session("state", 2, (), [program, str(port), folder, how], None, port)
        self.client = Client(port)

    def look(self, when):
        """What it is now."""
        leader = self.session.leader()
        self.client.ask("count")    # it is that far
        if locked(self.folder) != LOCKED:
            raise Wrong(f"{when}: locked are the bytes {locked(self.folder)}")
        timers_go(self.client, when)
        return {"told": self.client.ask("tell"), "kernel": kernel(leader["pid"]),
                "handler": self.client.ask("signal")}

    def compare(self, when):
        same(f"{self.how}, {when}", self.before, self.look(when))

    def leads(self, name):
        self.session.wait_for(lambda: self.session.leader()["name"] == name, f"{name} leads")
        self.session.wait_for(lambda: not self.session.leader()["why"],
                              f"{name} has no reason to be anything else")

    def run(self):
        self.before = self.look("at first")
        for name in ("f1", "v0", "f1"):
            # One that led is not promoted while another still reads what it told then.
            self.session.wait_for(lambda: not any(v["lag_cells"] for v in
                                                  self.session.versions()), "all have read on")
            self.session.promote(name, keep=True)
            self.leads(name)
            self.compare(f"{name} was promoted")
        if self.client.ask("chdir") != "0":
            raise Wrong("fchdir failed")
        self.before = self.before | {"told": self.client.ask("tell"),
                                     "kernel": kernel(self.session.leader()["pid"])}
        if not self.before["kernel"]["cwd"].endswith("/elsewhere"):
            raise Wrong("the directory has not changed")
        was = self.session.leader()["pid"]
        os.kill(was, signal.SIGSEGV)
        self.session.wait_for(lambda: self.session.leader()["pid"] != was, "another leads")
        self.compare("the leader crashed")
        self.session.stop()
        if "dropped" in self.session.log():
            raise Wrong("a follower was dropped")


def main():
    program = build(os.getcwd())
    for how in sys.argv[1:] or ("PLAIN", "SETUID")[:2 if os.geteuid() == 0 else 1]:
        state = State(program, how)
        try:
            state.run()
        except (Wrong, OSError) as e:
            raise SystemExit(f"{how}: {e}\n{state.session.log()}")
        finally:
            state.session.clean()
        print(f"--- {how}")
    print("state: ok")


if __name__ == "__main__":
    main()
