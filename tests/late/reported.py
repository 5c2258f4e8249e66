#!/usr/bin/env python3
"""A server is begun alone, so its libraries' code lies on the shelf, and then followed by a twin,
whose memory is changed: the report of what differs has the stack with all of its files."""
import json
import os
import re
import subprocess
import sys
import time

sys.path.append(os.path.dirname(os.path.abspath(__file__)) + "/../log")
from kv import MVE, build, connect, fail, free_port, mve    # noqa: E402

NAME = f"reported-{os.getpid()}"


def change(pid, old, new):
    """In its memory that can be written, besides the inside's; how often."""
    changed = 0
    with open(f"/proc/{pid}/maps") as f, open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        for line in f:
            if not re.search(r" rw-p .*(/server|\[heap\]| 0 *)$", line):
                continue
            start, end = (int(w, 16) for w in line.split()[0].split("-"))
            memory.seek(start)
            for m in re.finditer(old, memory.read(min(end - start, 1 << 26)) or b""):
                memory.seek(start + m.start())
                changed += memory.write(new) == len(new)
    return changed


def twin_of(monitor, server):
    found = subprocess.run(["pgrep", "-x", "server", "--ns", str(server)], capture_output=True,
                           text=True, check=True).stdout.split()
    return [int(pid) for pid in found if int(pid) != server and
            os.readlink(f"/proc/{pid}/exe") == os.readlink(f"/proc/{server}/exe")]


build("server")
port = free_port()
session = subprocess.Popen([MVE, "run", "-n", NAME, "--rewind", "0", "--", "./server", str(port)],
                           stderr=subprocess.DEVNULL)
with connect(port) as link:
    talk = link.makefile("rw")
    for line, answer in ("PUT early bird\n", "OK\n"), ("GET early\n", "VALUE bird\n"):
        talk.write(line)
        talk.flush()
        if talk.readline() != answer:
            fail(line)
    mve("follow", NAME)
    status = json.loads(mve("status", NAME, "--json").stdout)
    twins = twin_of(status["monitor"], status["server"])
    if not sum(change(pid, b"bird\0", b"bard\0") for pid in twins):
        fail(f"{twins}: nothing to be changed")
    talk.write("GET early\n")
    talk.flush()
    if talk.readline() != "VALUE bird\n":
        fail("a wrong answer")

    for _ in range(300):
        said = subprocess.run([MVE, "report", NAME], capture_output=True, text=True, check=False)
        if not said.returncode:
            break
        time.sleep(0.1)
mve("stop", NAME)
session.wait(60)
if "mve-code" in said.stdout or not re.search(r"#\d+ +_start", said.stdout):
    fail(f"the stack is not whole:\n{said.stdout}{said.stderr}")
print("reported: ok")
