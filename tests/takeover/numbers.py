#!/usr/bin/env python3
"""numbers.py: a thousand descriptors of many kinds keep their numbers, their flags and what
an epoll set says of them: promoted and back, and after crashes.  The kernel is asked for few
of them one by one (/proc/PID/fdinfo), which is what a takeover of 10,000 would spend most
of its time with."""
import os
import re
import signal
import socket
import subprocess

from load import Wrong
from session import ROOT, Session, free_port

ASKED_MAX = 20      # of more than 700
SENT = re.compile(r"(\d+) descriptors sent after \d+ us, (\d+) by their fdinfo")


def build(folder):
    out = f"{folder}/numbers"
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-w", "-pthread", "-o", out,
                    ROOT + "/tests/takeover/numbers.c"], check=True)
    return out


def ask(client):
    client.sendall(b"?")
    reply = b""
    while not reply.endswith(b"\n"):
        more = client.recv(100000)
        if not more:
            raise Wrong("the connection is closed")
        reply += more
    return reply.decode().split()


def same(client, wanted, when):
    got = ask(client)
    if got != wanted:
        raise Wrong(f"{when}: {sorted(set(wanted) ^ set(got))}")


def sent(session):
    rows = SENT.findall(session.log())
    for n, asked in rows:
        if int(n) < 700 or int(asked) > ASKED_MAX:
            raise Wrong(f"{asked} of {n} descriptors were asked for one by one")
    return len(rows)


def main():
    os.environ["MVE_LOG"] = "take"
    port = free_port()
    session = Session("numbers", 3, (), [build(os.getcwd()), str(port)], None, port)
    try:
        client = socket.create_connection(("127.0.0.1", port), 20)
        wanted = ask(client)
        for way in ("promote", "back", "crash", "crash"):
            was = session.leader()
            if way == "crash":
                os.kill(was["pid"], signal.SIGSEGV)
                session.wait_for(lambda: session.leader()["pid"] != was["pid"], "another leads")
            else:
                session.promote(session.following()[-1 if way == "promote" else 0], keep=True)
            same(client, wanted, way)
        if sent(session) < 4:
            raise Wrong("not every takeover said how it went")
        client.close()
        session.stop()
        for word in ("dropped", "diverged"):
            if word in session.log():
                raise Wrong(f"a follower was {word}")
    except (Wrong, OSError) as e:
        raise SystemExit(f"{e}\n{session.log()}")
    finally:
        session.clean()
    print("numbers: ok")


if __name__ == "__main__":
    main()
