#!/usr/bin/env python3
"""gone.py [stateless] PART...: descriptors that were given up and copied in each way that there
is.  Natively, and whoever leads: the same bytes are locked, epoll sets say the same of the
same items, copies are what they are copies of.  A follower of another build, promoted to
and fro, and after a crash."""
import fcntl
import glob
import os
import resource
import signal
import socket
import subprocess
import sys
import time

from load import Wrong
from session import ROOT, Session, free_port, is_locked, listens


def build(name, *defines):
    out = f"{os.getcwd()}/{name}"
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", *defines, "-o", out,
                    ROOT + "/tests/takeover/gone.c"], check=True)
    return out


def ask(client, line):
    client.sendall(line.encode() + b"\n")
    reply = b""
    while not reply.endswith(b"\n"):
        more = client.recv(20000)
        if not more:
            raise Wrong(f"{line}: the connection is closed")
        reply += more
    return reply.decode().strip().split("; ")


def held(path):
    """What of the file is locked by another process: bytes, and whether to read them, too."""
    return [(byte, how == fcntl.F_WRLCK) for byte in range(0, 20)
            for how in (fcntl.F_WRLCK, fcntl.F_RDLCK) if is_locked(path, byte, 1, how)]


def locks(folder):
    return {name.rpartition("/")[2]: held(name) for name in glob.glob(folder + "/lock-*")
            if not name.endswith(".other")}


def connect(port):
    client = socket.create_connection(("127.0.0.1", port), 20)
    client.settimeout(20)
    return client


def native(program, parts):
    """What it says and has locked where nobody looks on: at first, and once more."""
    folder, port = os.getcwd() + "/native", free_port()
    os.makedirs(folder)
    server = subprocess.Popen([program, str(port), folder, parts])
    try:
        while not listens(port):
            time.sleep(0.02)
        client = connect(port)
        return [(ask(client, what), locks(folder)) for what in ("tell", "again", "again")]
    finally:
        server.kill()
        server.wait()


def differs(before, now):
    if isinstance(before, dict):
        return [f"{k} was {before[k]}, is {now.get(k)}" for k in before if before[k] != now.get(k)]
    return [f"{b!r} became {n!r}" for b, n in zip(before, now) if b != n] or \
        ([] if len(before) == len(now) else [f"{len(before)} things became {len(now)}"])


class Gone:
    def __init__(self, program, other, parts, options):
        self.folder, port = os.getcwd() + "/held", free_port()
        os.makedirs(self.folder)
        self.session = Session("gone", 2, options, [program, str(port), self.folder, parts],
                               f"{other} {port} {self.folder} {parts}", port)
        self.client = connect(port)

    def look(self, line, wanted, when):
        wrong = differs(wanted[0], ask(self.client, line)) + differs(wanted[1], locks(self.folder))
        if wrong:
            raise Wrong(f"{when}: {'; '.join(wrong)}")

    def promote(self, name):
        self.session.wait_for(lambda: not any(v["lag_cells"] for v in self.session.versions()),
                              "all have read on")
        self.session.promote(name, keep=True)
        self.session.wait_for(lambda: len(self.session.following()) == 2, "all others follow")

    def run(self, wanted):
        self.look("tell", wanted[0], "at first")
        self.promote("f1")
        self.look("tell", wanted[0], "f1 was promoted")
        self.look("again", wanted[1], "once more, in f1")
        self.promote("v0")
        self.look("tell", wanted[1], "v0 was promoted")
        was = self.session.leader()["pid"]
        os.kill(was, signal.SIGSEGV)
        self.session.wait_for(lambda: self.session.leader()["pid"] != was, "another leads")
        self.look("tell", wanted[1], "the leader crashed")
        self.look("again", wanted[2], "once more, behind the crash")
        self.session.stop()
        for word in ("diverged", "record lock"):
            if word in self.session.log():
                raise Wrong(f"'{word}' was said")


def main():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    program, other = build("gone"), build("other", "-DSHIFT=100")
    parts = ",".join(sys.argv[1:])
    options = ["--stateless"] if "stateless" in sys.argv else []
    wanted = native(program, parts)
    gone = Gone(program, other, parts, options)
    try:
        gone.run(wanted)
    except (Wrong, OSError) as e:
        raise SystemExit(f"{e}\n{gone.session.log()}")
    finally:
        gone.session.clean()
    print("gone: ok")


if __name__ == "__main__":
    main()
