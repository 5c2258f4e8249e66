#!/usr/bin/env python3
"""kinds.py N [KIND...]: N takeovers of each kind, under numbered load.

After each a server serves and no request is lost, or the session has ended and
said why; there is no third thing.  A session has a few followers; each version
dies only when it is named (kinds.c), so each of them may lead in its turn.
"""
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

from daemon import Daemon
from load import Wrong, Load
from session import ROOT, Session, free_port

FOLLOWERS = 3
REPLIES = 60        # of the load between two takeovers
END_S = 20
AROUND_S = 0.03     # from a deadly request: a takeover is over well before, mostly


def build(folder, *flags):
    out = folder + "/kinds" + "".join(flags)
    if not os.path.exists(out):
        subprocess.run(["gcc", "-O1", "-g", "-w", "-D_GNU_SOURCE", "-pthread", *flags, "-o", out,
                        ROOT + "/tests/takeover/kinds.c"], check=True)
    return out


def send(pid, sig):
    try:
        os.kill(pid, sig)
    except ProcessLookupError:
        pass


class Kind:
    """How a leader dies: words of kinds.c, in turns; its threads and its handler."""

    def __init__(self, words, threads=4, handler="none", pause=0.0):
        self.words, self.threads, self.handler, self.pause = words.split(), threads, handler, pause
        self.turn = 0

    def command(self, port, version):
        return [build(os.getcwd()), str(port), str(self.threads), self.handler, str(version)]

    def session(self, followers):
        port = free_port()
        options = [w for i in range(followers) for w in (
            "-f", " ".join(self.command(port, i + 1)))]
        return Session("kv", 0, options, self.command(port, 0), None, port)

    def load(self, session):
        return Load(session.port, "kv", connections=8, pause=self.pause)

    def die(self, session, leader):
        """Whoever has its connection may close it: the reply is nobody's."""
        who = 0 if leader["name"] == "v0" else int(leader["name"][1:])
        with socket.create_connection(("127.0.0.1", session.port), 10) as s:
            s.settimeout(10)
            word = self.words[self.turn % len(self.words)]
            self.turn += 1
            s.sendall(b"DIE %s %d\n" % (word.encode(), who))
            if s.recv(100) != b"LIVES\n":
                raise Wrong("the deadly request has no reply")

    def one(self, session, load, left):
        leader = session.leader()
        load.more(REPLIES)
        self.die(session, leader)
        session.wait_for(lambda: session.leader()["name"] != leader["name"], "another leads")
        load.more(REPLIES)
        session.wait_for(lambda: len(session.following()) == left, f"{left} go on following it")
        if not session.ended(leader["pid"], 6):
            raise Wrong("the old leader does not end")

    def takeovers(self, n):
        """So many; how many replies there were."""
        done = replies = 0
        while done < n:
            followers = min(FOLLOWERS, n - done)
            session = self.session(followers)
            try:
                load = self.load(session)
                for left in reversed(range(followers)):
                    self.one(session, load, left)
                    done += 1
                replies += load.stop()
                if "dropped" in session.log():
                    raise Wrong("a follower was dropped")
                session.stop()
            except (Wrong, OSError) as e:
                raise Wrong(f"takeover {done + 1}: {e!r}\n{session.log()}")
            finally:
                session.clean()
        return replies


class Sent(Kind):
    """From elsewhere, to a server that has a handler."""

    def die(self, session, leader):
        os.kill(leader["pid"], signal.SIGSEGV)


class DaemonSession(Daemon):
    def __init__(self, options, command, port):
        Session.__init__(self, "kv", 0, options, command, None, port, daemon=True)
        self.wait_for(lambda: self.mve.poll() == 0 and self.serves(), "mve returns")

    def stop(self, sig=signal.SIGTERM):
        """Whoever serves is no child of ours: it has no handler, and ends of the signal."""
        pid = self.leader()["pid"]
        os.kill(pid, sig)
        if not self.ended(pid, 10):
            raise Wrong("the daemon does not end")


class Daemons(Kind):
    """The process that was started has ended long before."""

    def session(self, followers):
        port = free_port()
        options = [w for i in range(followers) for w in (
            "-f", " ".join(self.command(port, i + 1)))]
        return DaemonSession(options, self.command(port, 0), port)


class Stopped(Kind):
    """One that might succeed stands still, and goes on when another leads."""

    def one(self, session, load, left):
        stopped = [v["pid"] for v in session.versions() if v["role"] == "follower"][:1]
        if left:
            os.kill(stopped[0], signal.SIGSTOP)
        threading.Timer(0.3, lambda: send(stopped[0], signal.SIGCONT)).start()
        super().one(session, load, left)


class Sanitizer(Kind):
    """A leader and its build with ASan die of the same request: one finds why, a third serves."""

    def one_session(self):
        port = free_port()
        same = [build(os.getcwd(), "-fsanitize=address"), *self.command(port, 0)[1:]]
        return Session("kv", 0, ["-f", " ".join(same), "-f", " ".join(self.command(port, 2))],
                       self.command(port, 0), None, port)

    def takeovers(self, n):
        replies = 0
        for i in range(n):
            session = self.one_session()
            try:
                load = self.load(session)
                load.more(REPLIES)
                self.die(session, session.leader())
                session.wait_for(lambda: session.leader()["name"] == "f2", "the sound one leads")
                load.more(REPLIES)
                session.wait_for(lambda: "found: heap-use-after-free" in session.log(),
                                 "the finding")
                replies += load.stop()
                session.stop()
            except (Wrong, OSError) as e:
                raise Wrong(f"takeover {i + 1}: {e!r}\n{session.log()}")
            finally:
                session.clean()
        return replies


class Monitor(Kind):
    """mve is killed around the crash: another serves, or nobody is left that could."""

    def takeovers(self, n):
        replies = served = 0
        for i in range(n):
            session = self.session(1)
            try:
                replies_i, serves = self.unwatched(session)
                replies, served = replies + replies_i, served + serves
            except (Wrong, OSError) as e:
                raise Wrong(f"takeover {i + 1}: {e}\n{session.log()}")
            finally:
                self.sweep()
                session.clean()
        print(f"monitor: {served} of {n} went on")
        return replies

    def unwatched(self, session):
        load = self.load(session)
        load.more(REPLIES)
        leader = session.leader()
        killer = threading.Timer(random.uniform(0, AROUND_S), session.mve.kill)
        killer.start()
        try:
            self.die(session, leader)
        except (OSError, Wrong):
            pass
        killer.join()
        end = time.monotonic() + END_S
        while time.monotonic() < end:
            if load.error and not self.alive():
                return load.replies, False      # mve's own end was SIGKILL: nobody can say more
            try:
                was = load.replies
                load.more(REPLIES, 0.5)
                load.stop()
                return load.replies, True
            except Wrong:
                if load.replies != was:
                    continue
        raise Wrong(f"neither served nor ended: {load.error}, {self.alive()}")

    def alive(self):
        """Processes of the server, but those that nobody has collected."""
        out = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    words = f.read()
                with open(f"/proc/{pid}/stat") as f:
                    state = f.read().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if words.startswith(build(os.getcwd()).encode() + b"\0") and state not in "ZX":
                out.append(int(pid))
        return out

    def sweep(self):
        for pid in self.alive():
            send(pid, signal.SIGKILL)


OWN = "abort kill tgkill raise queue blocked"

KINDS = {
    "thread": Kind("thread"),
    "threads": Kind("threads"),
    "threads120": Kind("threads", threads=120, pause=0.005),
    "jump": Kind("jump"),
    "own": Kind(OWN),
    "clone": Kind("clone"),
    "prints_raise": Kind("thread jump abort", handler="raise"),
    "prints_return": Kind("thread jump abort", handler="return"),
    "prints_exit": Kind("thread jump abort kill", handler="exit"),
    "prints_reset": Kind("thread jump " + OWN, handler="reset"),
    "sent": Sent("", handler="raise"),
    "stopped": Stopped("thread"),
    "daemon": Daemons("thread " + OWN, handler="daemon"),
    "sanitizer": Sanitizer("freed"),
    "monitor": Monitor("thread"),
}


def main():
    for name in sys.argv[2:] or KINDS:
        begin = time.monotonic()
        try:
            replies = KINDS[name].takeovers(int(sys.argv[1]))
        except Wrong as e:
            raise SystemExit(f"{name}: {e}")
        print(f"{name}: {sys.argv[1]} takeovers, {replies} replies, "
              f"{time.monotonic() - begin:.0f} s")
    print("kinds: ok")


if __name__ == "__main__":
    main()
