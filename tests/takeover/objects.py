#!/usr/bin/env python3
"""objects.py: of each kind of thing that the kernel keeps for a process (engine/abi/state.def)
a server has one, and whoever leads has it as it was: promoted to and fro, and after a crash."""
import os
import signal
import socket
import subprocess

from load import Wrong
from session import ROOT, Session, free_port


def tell(client):
    client.sendall(b"tell\n")
    reply = b""
    while not reply.endswith(b"\n"):
        more = client.recv(20000)
        if not more:
            raise Wrong("the connection is closed")
        reply += more
    return reply.decode().strip().split("; ")


def look(client, before, when):
    now = tell(client)
    wrong = [f"{b} became {n}" for b, n in zip(before, now) if b != n]
    if wrong or len(now) != len(before):
        raise Wrong(f"{when}: {wrong or now}")


def main():
    out, folder = os.getcwd() + "/objects", os.getcwd() + "/objects.dir"
    os.makedirs(folder)
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-o", out,
                    ROOT + "/tests/takeover/objects.c", "-lrt"], check=True)
    port = free_port()
    session = Session("kv", 2, (), [out, str(port), folder], None, port)
    try:
        client = socket.create_connection(("127.0.0.1", port), 10)
        client.settimeout(10)
        before = tell(client)
        look(client, before, "at first")
        for name in ("f1", "v0", "f1"):
            session.wait_for(lambda: not any(v["lag_cells"] for v in session.versions()),
                             "all have read on")
            session.promote(name, keep=True)
            look(client, before, f"{name} was promoted")
            session.wait_for(lambda: len(session.following()) == 2, "all others follow")
        was = session.leader()["pid"]
        os.kill(was, signal.SIGSEGV)
        session.wait_for(lambda: session.leader()["pid"] != was, "another leads")
        look(client, before, "the leader crashed")
        session.stop()
    except (Wrong, OSError) as e:
        raise SystemExit(f"{e}\n{session.log()}")
    finally:
        session.clean()
    print("objects: ok")


if __name__ == "__main__":
    main()
