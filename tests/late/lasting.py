#!/usr/bin/env python3
"""lasting.py twins|attached|promoted: calls that time ends, of a server that stands again and
again meanwhile: each ends when its time has passed, not before, and not that long behind the last
time that it stood.
`twins`: ever new twins are made of a server that runs alone.  `attached`: of one that mve has
come to.  `promoted`: it and its follower lead in turns."""
import os
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../takeover"))
from load import Wrong                                              # noqa: E402
from session import MVE, ROOT, Session, free_port                   # noqa: E402

LIMIT_MS = 3000


def build(folder):
    out = f"{folder}/lasting"
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-pthread", "-o", out,
                    ROOT + "/tests/late/lasting.c"], check=True)
    return out


def ask(port, word):
    with socket.create_connection(("127.0.0.1", port), 20) as client:
        client.sendall(word.encode())
        words = client.makefile().readline().split()
    return {words[i]: int(words[i + 1]) for i in range(0, len(words), 2)}


def twin(session):
    done = subprocess.run([MVE, "follow", session.name], capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise Wrong(f"mve follow: {done.stderr}\n{session.log()}")
    subprocess.run([MVE, "drop", session.name, done.stdout.split(":")[0]], check=True, timeout=120)


def change(session):
    session.promote(session.following()[0], keep=True)


def run(how):
    port = free_port()
    session = Session("lasting", int(how == "promoted"), (), [build(os.getcwd()), str(port)],
                      port=port, attached=how == "attached")
    stands = []

    def ended():
        """The server has stood once more; all are back."""
        change(session) if how == "promoted" else twin(session)
        stands.append(ask(port, "say"))
        return all(stands[-1].values())
    try:
        ask(port, "begin")
        session.wait_for(ended, "each wait has come to its end")
        early = {name: ms for name, ms in stands[-1].items() if ms < LIMIT_MS}
        if early:
            raise Wrong(f"too early: {early}")
        if "diverged" in session.log():
            raise Wrong(session.log())
        session.stop()
        print(len(stands), "times", stands[-1])
        print("lasting: ok")
    finally:
        session.clean()


if __name__ == "__main__":
    try:
        run(sys.argv[1])
    except Wrong as wrong:
        print(wrong)
        sys.exit(1)
