#!/usr/bin/env python3
"""children.py forks TWINS | bgsave | ended TWINS [alone|attached]: twins of a leader that has
children, and one that leads.
`forks`: a server that forks for each connection: each child goes on where it was, what it has
in shared memory is there, and its parent hears that it has ended.  `bgsave`: Redis, whose child
saves its memory: the next leader hears that it has.  `ended`: a server that does not wait for
those that have ended: it hears of each, in whichever version.  `alone`: the session was begun without a
follower, and tells nothing until the first.  `attached`: mve has come to a server that ran."""
import os
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../takeover"))
from load import Wrong                                              # noqa: E402
from session import MVE, Session, free_port, program                # noqa: E402

CLIENTS = 6
REQUESTS = 5
SAVED_S = 60


def twin(session):
    done = subprocess.run([MVE, "follow", session.name], capture_output=True, text=True,
                          timeout=120)
    if done.returncode:
        raise Wrong(f"mve follow: {done.stderr}\n{session.log()}")
    return done.stdout.split(":")[0]


def equal(session, name):
    def row():
        return next(v for v in session.versions() if v["name"] == name)
    session.wait_for(lambda: row()["lag_cells"] == 0 or row()["role"] != "follower", "it reads")
    if row()["role"] != "follower" or row()["verdicts"]:
        raise Wrong(f"{row()}\n{session.log()}")


class Client:
    """Knows what its child answers: how many it was asked, and what there was before it."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 20)
        self.file, self.n, self.before = self.socket.makefile("rb"), 0, None

    def ask(self):
        for _ in range(REQUESTS):
            self.n += 1
            self.socket.sendall(b"request\n")
            got, before = map(int, self.file.readline().split())
            self.before = before if self.before is None else self.before
            if (got, before) != (self.n, self.before):
                raise Wrong(f"{got} {before}, expected {self.n} {self.before}")

    def close(self):
        self.file.close()
        self.socket.close()


def children_are(session, port, served):
    """A new one is told of all that others have served, once they have been waited for."""
    def told():
        c = Client(port)
        c.ask()
        c.close()
        served.append(c.n)
        return c.before == sum(served[:-1])
    session.wait_for(told, "all ends are heard of")


def begun(kind, how, **more):
    if how:
        return Session(kind, followers=0, attached=how == "attached", **more)
    session = Session(kind, followers=1, **more)
    subprocess.run([MVE, "drop", session.name, "f1"], check=True)
    return session


def forks(how, twins):
    port = free_port()
    subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", "-o", "forker",
                    os.path.join(HERE, "forker.c")], check=True)
    session = begun("forker", how, port=port, command=[os.path.abspath("forker"), str(port)])
    try:
        served, clients = [], []
        for n in range(twins):
            clients += [Client(port) for _ in range(CLIENTS)]
            for c in clients:
                c.ask()
            name = twin(session)
            for c in clients:
                c.ask()
            equal(session, name)
            if n % 2:
                session.promote(name)
            else:
                subprocess.run([MVE, "drop", session.name, name], check=True)
            for c in clients:
                c.ask()
            for c in clients[:CLIENTS]:
                served.append(c.n)
                c.close()
            clients = clients[CLIENTS:]
            children_are(session, port, served)
        session.stop()
    finally:
        session.clean()


def ask(client, line):
    client.socket.sendall(line.encode() + b"\n")
    return client.file.readline().decode().strip()


def ended(how, twins):
    port = free_port()
    subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", "-o", "ended", os.path.join(HERE, "ended.c")],
                   check=True)
    session = begun("ended", how, port=port, command=[os.path.abspath("ended"), str(port)])
    try:
        client, ends = Client(port), {}

        def more():
            for line, end in (("end 7", "exit 7"), ("end 0", "exit 0"), ("kill", "signal 9")):
                ends[int(ask(client, line))] = end

        def heard(words):
            if ask(client, words) != (end := ends.pop(int(words.split()[1]))):
                raise Wrong(f"{words}: expected {end}")
        for n in range(twins):
            more()
            more()
            name = twin(session)
            more()
            for number in list(ends)[1::3]:     # from before it, and from behind
                heard(f"wait {number}")
            equal(session, name)
            if n % 2:
                subprocess.run([MVE, "drop", session.name, name], check=True)
                continue
            session.promote(name)
            more()
            for number in list(ends)[::2]:
                heard(f"wait {number}")
        left = sorted(ends.values())
        if sorted(ask(client, "any") for _ in left) != left or ask(client, "any") != "none":
            raise Wrong(f"others than {left}")
        session.stop()
    finally:
        session.clean()


def cli(session, *words):
    return subprocess.run(["redis-cli", "-p", str(session.port), *words], capture_output=True,
                          text=True, timeout=60).stdout


def bgsave(how):
    port, folder = free_port(), os.getcwd()
    session = begun("redis", how, port=port, command=[
        program("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--save", "",
        "--dir", folder, "--rdb-key-save-delay", "20000"])
    try:
        for n in range(500):
            cli(session, "set", f"k{n}", "v")
        cli(session, "bgsave")
        name = twin(session)
        session.promote(name)
        if "rdb_bgsave_in_progress:1" not in cli(session, "info", "persistence"):
            raise Wrong("its child has ended already")
        session.wait_for(lambda: "rdb_bgsave_in_progress:0" in cli(session, "info", "persistence"),
                         "it is saved", SAVED_S)
        if "rdb_last_bgsave_status:ok" not in cli(session, "info", "persistence"):
            raise Wrong(cli(session, "info", "persistence"))
        session.stop()
    finally:
        session.clean()


def main():
    words = sys.argv[1:]
    how = words.pop() if words[-1] in ("alone", "attached") else None
    try:
        if words[0] == "bgsave":
            bgsave(how)
        else:
            {"forks": forks, "ended": ended}[words[0]](how, int(words[1]))
    except Wrong as e:
        raise SystemExit(str(e)[-3000:])
    print("children: ok")


main()
