#!/usr/bin/env python3
"""retry.py: a follower of a program that differs from itself is replaced by a twin of the leader
under its name, as often as was said; a spare as well.  It is said to be no finding, with what
makes it; the server serves on, and ends as it would alone."""
import json
import os
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../takeover"))
from load import Wrong                                  # noqa: E402
from session import MVE, Session, free_port             # noqa: E402

TIMES = 2
ECHOES = 20


class Peer:
    def __init__(self, port):
        self.file = socket.create_connection(("127.0.0.1", port), 60).makefile("rw")

    def ask(self, line):
        self.file.write(line + "\n")
        self.file.flush()
        return self.file.readline().strip()

    def echoes(self):
        for n in range(ECHOES):
            if self.ask(f"echo {n}") != f"echo {n}":
                raise Wrong("a wrong answer")


def begin(*options, followers=0):
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-pthread", "-o", "itself",
                    HERE + "/itself.c"], check=True)
    port = free_port()
    session = Session("itself", followers, options, [os.path.abspath("itself"), str(port)],
                      port=port)
    return session, Peer(port)


def follows(session, *not_these):
    """One follows that is none of these processes; it has read all, and nothing was wrong."""
    for v in session.versions():
        if v["role"] == "follower" and v["pid"] not in not_these and not v["lag_cells"]:
            return not v["verdicts"]
    return False


def process(session):
    return next(v["pid"] for v in session.versions() if v["role"] == "follower")


def end(session, peer):
    peer.file.write("end\n")
    peer.file.flush()
    if session.mve.wait(20):
        raise Wrong(f"mve run: {session.mve.returncode}\n{session.log()}")


def reports(session, *options):
    return subprocess.run([MVE, "report", session.name, *options], capture_output=True,
                          text=True, check=True).stdout


def said(session):
    """The report and the log say what it is."""
    itself = json.loads(reports(session, "1", "--json"))["itself"]
    if "2 threads" not in itself or "atomics" not in itself:
        raise Wrong(f"the report: {itself}")
    if " itself " not in reports(session, "--list") or "no finding:" not in reports(session):
        raise Wrong(reports(session, "--list") + reports(session))
    if "no finding: the program differs from itself" not in session.log():
        raise Wrong(session.log())


def replaced():
    session, peer = begin("--on-divergence", f"retry:{TIMES}/50", followers=1)
    try:
        for times in range(TIMES + 1):
            peer.echoes()
            session.wait_for(lambda: follows(session), "it reads")
            was = process(session)
            peer.ask("differs")
            if times < TIMES:
                session.wait_for(lambda: follows(session, was), "another", 60)
                row = next(v for v in session.versions() if v["name"] == "f1")
                if row["retry"]["times"] != times + 1 or "diverged" not in row["retry"]["why"]:
                    raise Wrong(json.dumps(row, indent=1))
        session.wait_for(lambda: "f1: not replaced any more: it was 2 times" in session.log(),
                         "the last", 60)
        peer.echoes()
        if session.following() or "replaced by a twin 2 times" not in session.status_text() or \
                "2 joined late, 3 lost:" not in session.status_text():
            raise Wrong(session.status_text())
        losses = session.status()["losses"]
        if [one["name"] for one in losses] != 3 * ["f1"] or \
                not all("diverged" in one["why"] for one in losses):
            raise Wrong(f"losses: {losses}")
        end(session, peer)
        said(session)
    finally:
        session.clean()


def spared():
    session, peer = begin("--spare", "1")
    try:
        session.wait_for(lambda: follows(session), "a spare", 60)
        was = process(session)
        peer.echoes()
        peer.ask("differs")
        session.wait_for(lambda: follows(session, was), "another", 60)
        spares = session.status()["spares"]
        if spares["lost"] != 1 or "diverged" not in spares["why"]:
            raise Wrong(f"status: {spares}")
        end(session, peer)
        said(session)
    finally:
        session.clean()


def alone():
    """It sleeps in stdio, whose calls are by a table: what it called is not to be found."""
    session, peer = begin()
    try:
        peer.echoes()
        done = subprocess.run([MVE, "follow", session.name], capture_output=True, text=True)
        if done.returncode:
            raise Wrong(f"{done.stdout}{done.stderr}{session.log()}")
        peer.echoes()
        session.wait_for(lambda: follows(session), "it reads")
        end(session, peer)
    finally:
        session.clean()


def main():
    try:
        alone()
        replaced()
        spared()
    except Wrong as e:
        raise SystemExit(str(e))
    print("retry: ok")


main()
