#!/usr/bin/env python3
"""guests.py: processes that share memory take their descriptors at the same time, each its own."""
import os
import socket
import subprocess

from load import Wrong
from session import ROOT, Session, free_port

GUESTS = 20
FILES = (200, 2)    # of every second one, as in guests.c


def said(port, guest):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(20)
        s.connect(f"\0guests-{port}-{guest}")
        text = b""
        while part := s.recv(65536):
            text += part
        return text.decode()


def listens(port, guest):
    try:
        said(port, guest)
        return True
    except ConnectionRefusedError:
        return False


def look(port, who):
    for guest in range(GUESTS):
        text = said(port, guest)
        if text != "".join(f"file {i} of guest {guest}\n" for i in range(FILES[guest % 2])):
            raise Wrong(f"{who}: guest {guest} says {text[:200]!r}")


def main():
    out = os.getcwd() + "/guests"
    subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", "-o", out, ROOT + "/tests/takeover/guests.c"],
                   check=True)
    port = free_port()
    session = Session("kv", 2, (), [out, str(port)], None, port)
    try:
        for guest in range(GUESTS):
            session.wait_for(lambda: listens(port, guest), f"guest {guest} listens")
        look(port, "v0")
        for name in ("f1", "f2"):
            session.promote(name)
            session.wait_for(lambda: session.leader()["name"] == name, name + " leads")
            look(port, name)
    finally:
        session.clean()
    print("guests: ok")


main()
