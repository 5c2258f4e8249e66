#!/usr/bin/env python3
"""ending.py ROUNDS: a promotion comes while processes of the leader's are on their way out:
what has told its end is not waited for, so each promotion is well."""
import os
import socket
import subprocess
import sys

from load import Wrong
from session import ROOT, Session, free_port


def answers(port):
    with socket.create_connection(("127.0.0.1", port), 60) as client:
        client.settimeout(60)
        if client.recv(100) != b"here\n":
            raise Wrong("no answer")


def main():
    out, port, name = f"{os.getcwd()}/ending", free_port(), ""
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-o", out,
                    ROOT + "/tests/takeover/ending.c"], check=True)
    session = Session("ending", 1, (), [out, str(port)], None, port)
    try:
        for i in range(int(sys.argv[1])):
            name = "v0" if i % 2 else "f1"
            session.promote(name, keep=True)
            session.wait_for(lambda: session.leader()["name"] == name and
                             len(session.following()) == 1, f"{name} leads and is followed")
            answers(port)
        session.stop()
        if "dropped" in session.log():
            raise Wrong("a follower was dropped")
    except (Wrong, OSError) as e:
        raise SystemExit(f"{e!r} after {name}\n{session.log()}\n{session.status_text()}")
    finally:
        session.clean()
    print("ending: ok")


if __name__ == "__main__":
    main()
