#!/usr/bin/env python3
"""churn.py ROUNDS WAY...: a server with threads is promoted to and fro while connections
come and go: no reply is lost, and the follower goes on following.  At last the leader that
was demoted dies, which costs nobody anything."""
import os
import signal
import subprocess
import sys

from load import Wrong
from session import ROOT, Session, free_port

REPLIES = 300


def build(folder):
    out = f"{folder}/churn"
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-pthread", "-o", out,
                    ROOT + "/tests/takeover/churn.c"], check=True)
    return out


def leads(session, load, name):
    session.promote(name, keep=True)
    load.more(REPLIES)
    session.wait_for(lambda: session.leader()["name"] == name and
                     len(session.following()) == 1, f"{name} leads and is followed")


def follower_dies(session, load):
    follower = next(v for v in session.versions() if v["role"] == "follower")
    os.kill(follower["pid"], signal.SIGKILL)
    session.wait_for(lambda: not session.following(), f"{follower['name']} is dropped")
    load.more(REPLIES)
    if session.status().get("state") != "running":
        raise Wrong(f"the session is not running: {session.status().get('state')}")


def run(program, way, rounds):
    port = free_port()
    session = Session("kv", 1, (), [program, str(port), way], None, port)
    try:
        load = session.load(connections=8, churn=8, depth=2)
        load.more(REPLIES)
        for _ in range(rounds):
            leads(session, load, "f1")
            leads(session, load, "v0")
        for word in ("dropped", "diverged"):
            if word in session.log():
                raise Wrong(f"a follower was {word}")
        leads(session, load, "f1")
        follower_dies(session, load)
        load.stop()
        session.stop()
    except (Wrong, OSError) as e:
        raise SystemExit(f"{way}: {e}\n{session.log()}")
    finally:
        session.clean()


def main():
    program = build(os.getcwd())
    for way in sys.argv[2:]:
        run(program, way, int(sys.argv[1]))
    print("churn: ok")


if __name__ == "__main__":
    main()
