#!/usr/bin/env python3
"""Spares that cannot be, and those that go: a server of too many processes, one whose memory the
machine does not have twice, options that do not go together.  What is said, and that it is
served on."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../takeover"))
from load import Wrong                                  # noqa: E402
from session import MVE, Session, free_port, kv_build   # noqa: E402


PROCESSES = 511    # beside the shell and the server
CROWD = "it has more than 512 processes"


def refused(words, *options):
    done = subprocess.run([MVE, "run", *options, "--", "true"], capture_output=True, text=True)
    if done.returncode != 2 or words not in done.stderr or "hint:" not in done.stderr:
        raise Wrong(f"{options}: {done.returncode}: {done.stderr}")


def crowded(folder):
    """A server with as many processes as a spare may have, and more: it is said once, and served."""
    port = free_port()
    session = Session("kv", followers=0, options=("--spare", "1"), port=port, command=[
        "sh", "-c", f"for i in $(seq {PROCESSES}); do sleep 1000 & all=\"$all $!\"; done;"
        f"{kv_build(folder)} {port} & trap \"kill $all $!\" TERM; wait; wait"])
    try:
        # One may have come before there were so many; it is not replaced.
        for was in session.following():
            subprocess.run([MVE, "drop", session.name, was], check=True)
        session.wait_for(lambda: f"no spare: {CROWD}" in session.log(), "a word")
        spares = session.status()["spares"]
        if spares["there"] or spares["why"] != CROWD:
            raise Wrong(f"status: {spares}")
        session.load().more(20)
        session.stop()
        if session.log().count("no spare") != 1:
            raise Wrong(session.log())
    finally:
        session.clean()


def dropped():
    """The user ends one: another comes, and none is counted as lost."""
    session = Session("kv", followers=0, options=("--spare", "1"))
    try:
        session.wait_for(session.following, "a spare")
        was = session.following()[0]
        subprocess.run([MVE, "drop", session.name, was], check=True)
        session.wait_for(lambda: session.following() not in ([], [was]), "another")
        spares = session.status()["spares"]
        if spares["lost"] or spares["made"] != 2 or spares["there"] != 1:
            raise Wrong(f"status: {spares}")
        if not any("own_kib" in v for v in session.versions() if v["role"] == "follower"):
            raise Wrong("status does not say what it costs")
        session.stop()
    finally:
        session.clean()


def main():
    folder = os.getcwd()
    try:
        refused("not a value of --spare", "--spare", "6")
        refused("not a value of --spare", "--spare", "-1")
        refused("--spare with --stateless", "--spare", "1", "--stateless")
        refused("too many versions", "--spare", "4", "-f", "same", "-f", "same")
        refused("too many versions", "--spare", "5", "--record", "x.log")
        crowded(folder)
        dropped()
    except Wrong as e:
        raise SystemExit(str(e))
    print("spare: ok")


main()
