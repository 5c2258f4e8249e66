#!/usr/bin/env python3
"""many.py [N]: a server of more processes than a takeover once had room for is promoted."""
import os
import socket
import subprocess
import sys

from load import Wrong
from session import ROOT, Session, free_port


def processes(port):
    with socket.create_connection(("127.0.0.1", port), 30) as s:
        s.settimeout(30)
        return int(s.recv(32) or 0)


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 600
    out = os.getcwd() + "/many"
    subprocess.run(["gcc", "-O1", "-o", out, ROOT + "/tests/takeover/many.c"], check=True)
    port = free_port()
    session = Session("kv", 1, (), [out, str(port), str(n)], None, port)
    try:
        if processes(port) != n:
            raise Wrong("not as many processes as asked for")
        session.wait_for(lambda: not next(v["lag_cells"] for v in session.versions()
                                          if v["role"] == "follower"), "the follower reads on")
        session.promote("f1")
        session.wait_for(lambda: session.leader()["name"] == "f1", "f1 leads")
        if processes(port) != n:
            raise Wrong("the successor answers otherwise")
    finally:
        session.clean()
    print("many: ok")


main()
