#!/usr/bin/env python3
"""kinds.py N [KIND...]: N takeovers of each kind, under numbered load.

After each a server serves and no request is lost, or the session has ended and
said why; there is no third thing.  A session has a few followers; each version
dies only when it is named (kinds.c), so each of them may lead in its turn.
"""
import os
import socket
import subprocess
import sys
import time

from load import Wrong, Load
from session import ROOT, Session, free_port

FOLLOWERS = 3
REPLIES = 60        # of the load between two takeovers
END_S = 20


def build(folder):
    out = folder + "/kinds"
    if not os.path.exists(out):
        subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-pthread", "-o", out,
                        ROOT + "/tests/takeover/kinds.c"], check=True)
    return out


class Kind:
    """How a leader dies: the word of kinds.c, its threads and its handler."""

    def __init__(self, word, threads=4, handler="none", pause=0.0):
        self.word, self.threads, self.handler, self.pause = word, threads, handler, pause

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
            s.sendall(b"DIE %s %d\n" % (self.word.encode(), who))
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


KINDS = {
    "thread": Kind("thread"),
    "threads": Kind("threads"),
    "threads120": Kind("threads", threads=120, pause=0.005),
    "jump": Kind("jump"),
}


def takeovers(kind, n):
    """So many; how many replies there were."""
    done = replies = 0
    while done < n:
        followers = min(FOLLOWERS, n - done)
        session = kind.session(followers)
        try:
            load = kind.load(session)
            for left in reversed(range(followers)):
                kind.one(session, load, left)
                done += 1
            replies += load.stop()
            if "dropped" in session.log():
                raise Wrong("a follower was dropped")
            session.stop()
        except Wrong as e:
            raise Wrong(f"takeover {done + 1}: {e}\n{session.log()}")
        finally:
            session.clean()
    return replies


def main():
    for name in sys.argv[2:] or KINDS:
        begin = time.monotonic()
        try:
            replies = takeovers(KINDS[name], int(sys.argv[1]))
        except Wrong as e:
            raise SystemExit(f"{name}: {e}")
        print(f"{name}: {sys.argv[1]} takeovers, {replies} replies, "
              f"{time.monotonic() - begin:.0f} s")
    print("kinds: ok")


if __name__ == "__main__":
    main()
