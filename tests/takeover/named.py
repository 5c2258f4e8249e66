#!/usr/bin/env python3
"""named.py: a version that takes over goes on with the ids of the leader before it, in calls
that were hot before and in children that it makes then."""
import os
import socket
import subprocess

from load import Wrong
from session import ROOT, Session, free_port


def asked(link):
    link.sendall(b".")
    return link.makefile().readline()


def main():
    out, port = os.getcwd() + "/named", free_port()
    subprocess.run(["gcc", "-O1", "-o", out, ROOT + "/tests/takeover/named.c"], check=True)
    session = Session("named", 1, (), [out, str(port)], None, port)
    try:
        with socket.create_connection(("127.0.0.1", port), 60) as link:
            first = asked(link)
            if not first.endswith(" 1\n"):
                raise Wrong(f"the leader says {first}")
            for name in ("f1", "v0", "f1"):
                session.promote(name, keep=True)
                session.wait_for(lambda: session.leader()["name"] == name and
                                 len(session.following()) == 1, f"{name} leads")
                for _ in range(3):
                    now = asked(link)
                    if now != first:
                        raise Wrong(f"{name} says {now}, and before {first}")
        session.stop()
    except Wrong as e:
        raise SystemExit(f"{e}\n{session.log()[-2000:]}")
    finally:
        session.clean()
    print("named: ok")


if __name__ == "__main__":
    main()
