#!/usr/bin/env python3
"""twin.py SERVER TWINS [alone|attached] [many]: twins of a leader that runs, one after the other,
under numbered requests.  Each follows and is equal; every fifth leads, and the one before ends.
No request is lost, doubled or wrong, and no descriptor, process or session's file is left.
`alone`: the session was begun without a follower, and tells nothing until the first.
`attached`: mve has come to a server that ran.  `many`: it has 200 connections, or as many as
CONNECTIONS in the environment says.  A server pool:HOW is pool.c, whose threads wait so;
pool:HOW:library has it in a shared object."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../takeover"))
from load import Wrong, talk_of                         # noqa: E402
from session import MVE, ROOT, Session, fds, free_port   # noqa: E402

REPLIES = int(os.environ.get("REPLIES", "40"))     # while each follows
PROMOTED = 5        # one in so many
BLOCK = ["--when-full", "block"]    # it is about twins, not about who has no processor
FEW, MANY = 6, int(os.environ.get("CONNECTIONS", "200"))    # connections


def row(session, name):
    return next(v for v in session.versions() if v["name"] == name)


def twin(session, *more):
    done = subprocess.run([MVE, "follow", session.name, *more], capture_output=True, text=True,
                          timeout=120)
    if done.returncode or "the server stood for" not in done.stdout:
        raise Wrong(f"mve follow: {done.stdout}{done.stderr}\n{session.log()}")
    return done.stdout.split(":")[0]


def drop(session, name):
    pid = row(session, name)["pid"]
    subprocess.run([MVE, "drop", session.name, name], check=True)
    if not session.ended(pid):
        raise Wrong(f"{name}: its process {pid} has not ended")


def equal(session, name, load):
    """It has read what was told, with no verdict."""
    with load.rest():
        session.wait_for(lambda: row(session, name)["lag_cells"] == 0 or
                         row(session, name)["role"] != "follower", f"{name} reads")
    v = row(session, name)
    if v["role"] != "follower" or v["verdicts"]:
        raise Wrong(f"{name}: {json.dumps(v, indent=1)}\n{session.log()}")


def none_left(session, first):
    pid = session.leader()["pid"]
    try:
        session.wait_for(lambda: fds(session.leader()["pid"]) <= first, "no descriptor is left")
    except Wrong as e:
        names = [os.readlink(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd")]
        raise Wrong(f"{first} before, now {sorted(names)}\n{e}")


def asked_once(session):
    talk, data = talk_of(session.kind)(999), b""
    with talk.open(session.port) as s:
        s.sendall(talk.request(0))
        while not talk.reply(0, data):
            data += s.recv(65536)


def compiled(out, *words):
    subprocess.run(["gcc", "-O1", "-g", "-pthread", *words, "-o", out], check=True)


def begun(kind, followers, attached):
    name, _, how = kind.partition(":")
    more = [] if attached else BLOCK
    if not how:
        return Session(kind, followers, more, attached=attached)
    port, out = free_port(), os.path.abspath(name)
    how, _, library = how.partition(":")
    source = [f"{ROOT}/tests/late/{name}.c"]
    if library:
        compiled("lib.so", "-shared", "-fPIC", "-Dmain=served", *source)
        with open("main.c", "w") as f:
            f.write("int served(int, char **);\nint main(int n, char **v) { return served(n, v); }\n")
        source = ["main.c", "./lib.so"]
    compiled(out, *source)
    return Session("kv", followers, more, [out, str(port), how], None, port, attached=attached)


def main():
    kind, twins = sys.argv[1], int(sys.argv[2])
    attached = "attached" in sys.argv[3:]
    connections = MANY if "many" in sys.argv[3:] else FEW
    alone = attached or "alone" in sys.argv[3:]
    session = begun(kind, 0 if alone else 1, attached)
    load = None
    try:
        if not alone:
            drop(session, "f1")
        asked_once(session)     # it may listen before it has all that it opens
        first = fds(session.leader()["pid"])    # with no client
        load = session.load(churn=2, pause=0.002, connections=connections)
        load.more(REPLIES)
        for n in range(1, twins + 1):
            name = twin(session)
            load.more(REPLIES)
            equal(session, name, load)
            if n % PROMOTED:
                drop(session, name)
                load.more(REPLIES)
                continue
            session.promote(name)
            load.more(REPLIES)
            if session.leader()["name"] != name:
                raise Wrong(f"{name} does not lead")
        replies = load.stop()
        none_left(session, first)
        session.stop()
    except Wrong as e:
        raise SystemExit(f"{e}\nmve: {session.mve.poll()}\n{session.log()[-3000:]}")
    finally:
        session.clean()
    if os.environ.get("SHOW_LOG"):
        print(session.log())
    print(f"{replies} replies, {twins} twins", file=sys.stderr)
    print("twin: ok")


main()
