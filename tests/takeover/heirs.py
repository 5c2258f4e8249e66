#!/usr/bin/env python3
"""heirs.py: a follower's process waits for children whose end it was told of; its own child,
which has a copy of its memory, must not end whoever has their ids when it leads."""
import os
import signal
import socket
import subprocess
import sys
import time

from load import Wrong
from session import ROOT, Session, free_port


def ask(port, what):
    with socket.create_connection(("127.0.0.1", port), 10) as s:
        s.settimeout(20)
        s.sendall(what + b"\n")
        if s.recv(8) != b"OK\n":
            raise Wrong(f"{what}: no answer")


def stat(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            words = f.read().rpartition(")")[2].split()
        return words[0], int(words[1])
    except OSError:
        return None, 0


def dead_children(pid):
    return [int(p) for p in os.listdir("/proc") if p.isdigit() and stat(p) == ("Z", pid)]


def stranger(pid):
    """A process of this id, in our own namespace of ids."""
    for _ in range(100):
        with open("/proc/sys/kernel/ns_last_pid", "w") as f:
            f.write(str(pid - 1))
        made = subprocess.Popen(["sleep", "60"])
        if made.pid == pid:
            return made
        made.kill()
        made.wait()
    raise Wrong(f"nobody could be given the id {pid}")


def session_run():
    out = os.getcwd() + "/heirs"
    subprocess.run(["gcc", "-O1", "-o", out, ROOT + "/tests/takeover/heirs.c"], check=True)
    port = free_port()
    session = Session("kv", 1, (), [out, str(port)], None, port)
    try:
        follower = next(v["pid"] for v in session.versions() if v["role"] == "follower")
        ask(port, b"kill")
        session.wait_for(lambda: dead_children(follower), "a twin that is not waited for")
        ids = dead_children(follower)
        ask(port, b"heir")
        ask(port, b"kill")
        session.wait_for(lambda: not set(ids) & set(dead_children(follower)), "it is")
        others = [stranger(pid) for pid in ids]
        os.kill(session.leader()["pid"], signal.SIGSEGV)
        session.wait_for(lambda: session.leader()["name"] == "f1", "f1 leads")
        time.sleep(0.5)
        if any(o.poll() is not None for o in others):
            raise Wrong("a stranger was ended that had got the id of a child")
        for o in others:
            o.kill()
            o.wait()
        session.stop()
    except (Wrong, OSError) as e:
        raise SystemExit(f"{e}\n{session.log()}")
    finally:
        session.clean()
    print("heirs: ok")


def main():
    if sys.argv[1:] == ["inside"]:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        session_run()
        return
    done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child",
                           sys.executable, os.path.abspath(__file__), "inside"], timeout=100)
    raise SystemExit(done.returncode)


if __name__ == "__main__":
    main()
