#!/usr/bin/env python3
"""daemon.py [KIND...]: a server whose first process has ended is led, followed, promoted and
replaced like any other; ps names the process that serves, stop ends it, and what becomes of it
is said where it can be read."""
import json
import os
import signal
import subprocess
import sys

from load import Wrong
from session import MVE, ROOT, Session, free_port, server_command


AGAIN = 40      # processes that follow one another, each of which executes a program


def daemon(kind, port, folder, times):
    """The command, and where it says its pid."""
    pid = f"{folder}/pid"
    if kind == "kv":
        out = f"{folder}/daemon"
        if not os.path.exists(out):
            subprocess.run(["gcc", "-O1", "-o", out, ROOT + "/tests/takeover/daemon.c"], check=True)
        return [out, str(times), pid, *server_command(kind, port, folder)], pid
    command = server_command(kind, port, folder)
    if kind == "redis":
        return command + ["--daemonize", "yes", "--pidfile", pid], pid
    with open(f"{folder}/nginx.conf") as conf:
        text = conf.read().replace("daemon off;", "")
    with open(f"{folder}/nginx.conf", "w") as conf:
        conf.write(text)
    return command, pid


class Daemon(Session):
    def __init__(self, kind, followers, times=0):
        port, folder = free_port(), os.path.join(os.getcwd(), kind)
        os.makedirs(folder, exist_ok=True)
        command, self.pid_path = daemon(kind, port, folder, times)
        super().__init__(kind, followers, (), command, None, port, daemon=True)
        self.wait_for(lambda: open(self.pid_path).read().strip() == str(self.serves()),
                      "ps names the process that says it is the server")

    def mve_ended(self):
        return self.mve.poll() not in (None, 0)

    def row(self):
        done = subprocess.run([MVE, "ps", "--json"], capture_output=True, text=True, check=True)
        return next((r for r in json.loads(done.stdout) if r["name"] == self.name), None)

    def log(self):
        path = f"{os.environ['XDG_STATE_HOME']}/mve/{self.name}/session.log"
        return super().log() + (open(path, errors="replace").read() if os.path.exists(path) else "")

    def serves(self):
        """The process that ps names is the leader's, lives, and has the listening socket."""
        pid = self.row()["server"]
        if pid != self.leader()["pid"] or self.status()["server"] != pid:
            raise Wrong(f"ps says {pid}, status {self.leader()['pid']}")
        if not any(is_socket(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")):
            raise Wrong(f"{pid} has no socket")
        return pid


def is_socket(path):
    try:
        return os.readlink(path).startswith("socket:")
    except OSError:     # closed meanwhile
        return False


def leads(session, name, how):
    session.wait_for(lambda: session.leader()["name"] == name, f"{name} leads, {how}")
    session.wait_for(session.serves, f"ps names {name}")


def lives(session):
    """A daemon's life with three versions."""
    load = session.load()
    load.more(100)
    for name in ("f1", "v0", "f1"):
        session.promote(name, keep=True)
        load.more(100)
        leads(session, name, "promoted")
    session.promote("f2")
    load.more(100)
    leads(session, "f2", "promoted")
    load.stop()
    stops(session)


def begins(session):
    """Whenever it is looked at, a version's only process has just begun, or is in an execve."""
    load = session.load()
    load.more(100)
    for name in ("f1", "f2"):
        session.promote(name)
        load.more(100)
        leads(session, name, "promoted")
    load.stop()
    stops(session)


def crashes(session):
    load = session.load()
    load.more(100)
    pid = session.serves()
    os.kill(pid, signal.SIGSEGV)
    load.more(100)
    leads(session, "f1", "after a crash")
    if not session.ended(pid, 10):
        raise Wrong("the old leader is there")
    load.stop()
    stops(session)
    if "f1 leads (v0 crashed: SIGSEGV" not in session.log():
        raise Wrong("it does not say what became of it")


def stops(session):
    pids = [v["pid"] for v in session.versions()]
    done = subprocess.run([MVE, "stop", session.name], capture_output=True, text=True, timeout=40)
    if done.returncode or session.row():
        raise Wrong(f"mve stop: {done.returncode}: {done.stderr}")
    if not all(session.ended(pid, 10) for pid in pids):
        raise Wrong("a process is left behind")


def runs(kind, phase, followers, times=0):
    """One phase with a session of its own, which is what a failure tells of."""
    what, session = f"{kind} {phase.__name__}", None
    try:
        session = Daemon(kind, followers, times)
        what += f", {session.name} on port {session.port}"
        phase(session)
    except (Wrong, OSError, subprocess.TimeoutExpired) as e:
        raise SystemExit(f"{what}: {e}\n{session.log() if session else ''}")
    finally:
        if session:
            session.clean()


def main():
    os.environ.setdefault("XDG_STATE_HOME", os.getcwd() + "/state")
    for kind in sys.argv[1:] or ("kv", "redis", "nginx"):
        runs(kind, lives, 2)
        runs(kind, crashes, 1)
        if kind == "kv":
            runs(kind, begins, 2, AGAIN)
    print("daemon: ok")


if __name__ == "__main__":
    main()
