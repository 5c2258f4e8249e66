#!/usr/bin/env python3
"""memory.py: the state of a server is a memfd that it maps and writes by calls: nothing of it
is lost when its leader crashes, and what follows is seen both ways."""
import os
import signal
import socket
import subprocess

from load import Wrong
from session import ROOT, Session, free_port


def build(folder):
    out = f"{folder}/memory"
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-w", "-o", out,
                    ROOT + "/tests/takeover/memory.c"], check=True)
    return out


def ask(client, wanted):
    client.sendall(b"x")
    reply = b""
    while not reply.endswith(b"\n"):
        more = client.recv(1000)
        if not more:
            raise Wrong("the connection is closed")
        reply += more
    if reply.decode() != "{0} {0} {0}, {0} {0} {0}\n".format(wanted):
        raise Wrong(f"request {wanted}: {reply.decode()!r}")


def main():
    port = free_port()
    session = Session("memory", 2, (), [build(os.getcwd()), str(port)], None, port)
    try:
        client = socket.create_connection(("127.0.0.1", port), 10)
        for n in range(1, 31):
            if n % 10 == 0 and n < 30:
                was = session.leader()["pid"]
                os.kill(was, signal.SIGSEGV)
                session.wait_for(lambda: session.leader()["pid"] != was, "another leads")
            ask(client, n)
        client.close()
        session.stop()
        for word in ("dropped", "diverged"):
            if word in session.log():
                raise Wrong(f"a follower was {word}")
    except (Wrong, OSError) as e:
        raise SystemExit(f"{e}\n{session.log()}")
    finally:
        session.clean()
    print("memory: ok")


if __name__ == "__main__":
    main()
