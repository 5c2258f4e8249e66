#!/usr/bin/env python3
"""rogue.py SERVER [WHAT...]: a follower that goes wrong under load costs the leader
nothing but a line in the log, by its client's own count of replies.

What a follower could do to itself is done to it from outside, through
/proc/PID/mem: to the kernel it is the same process's memory.
"""
import os
import random
import re
import signal
import sys
import time

from load import Wrong
from session import Session

REPLIES = 200


def maps(pid):
    with open(f"/proc/{pid}/maps") as file:
        for line in file:
            at, rights, _, _, _, *path = line.split()
            low, high = (int(x, 16) for x in at.split("-"))
            yield low, high, rights, path[0] if path else ""


def write(pid, at, data):
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(at)
        memory.write(data)


def place(pid):
    """Where its first thread stands in a call."""
    for _ in range(5000):       # on a busy machine it may be ready to run for long
        words = open(f"/proc/{pid}/syscall").read().split()
        if len(words) > 2:
            return int(words[-1], 16)
        time.sleep(0.001)
    raise Wrong("it never stands in a call")


def crash(pid):
    write(pid, place(pid), b"\x0f\x0b" * 4)     # ud2


def loop(pid):
    write(pid, place(pid), b"\xeb\xfe" * 4)     # a jump to itself


def stack(pid):
    low, high = next((l, h) for l, h, _, path in maps(pid) if path == "[stack]")
    write(pid, high - 65536 if high - low > 65536 else low, random.randbytes(60000))


def stop(pid):
    os.kill(pid, signal.SIGSTOP)


def kill(pid):
    os.kill(pid, signal.SIGKILL)


def fault(pid):
    """From outside: a follower does not hear it."""
    os.kill(pid, signal.SIGSEGV)


def ring(pid):
    """Garbage over all of its own part: lanes, cursors, chunk tables, chunks."""
    found = [(l, h) for l, h, rights, path in maps(pid)
             if "mve-stream" in path and rights.startswith("rw")]
    if not found:
        raise Wrong("no writable part of the streams")
    for low, high in found:
        for at in range(low, min(high, low + (4 << 20)), 65536):
            write(pid, at, random.randbytes(65536 if at + 65536 <= high else high - at))


def others(pid):
    """What is not its own cannot be written, nor be made writable."""
    with open(f"/proc/{pid}/smaps") as file:
        parts = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", file.read(), flags=re.M)
    mine = [p for p in parts if "mve-stream" in p and " r--s " in p.split("\n")[0]]
    if not mine or any(" mw" in re.search("VmFlags:.*", p).group() for p in mine):
        raise Wrong("the streams of others can be made writable")
    for part in mine:
        try:
            write(pid, int(part.split("-")[0], 16), b"garbage!")
        except OSError:
            continue
        raise Wrong("the streams of others can be written")


DEEDS = {"crash": (crash, "dropped"), "loop": (loop, "dropped"), "stack": (stack, ""),
         "stop": (stop, "dropped"), "kill": (kill, "dropped"), "fault": (fault, ""),
         "ring": (ring, "dropped"), "others": (others, "")}


def go_wrong(kind, what):
    deed, word = DEEDS[what]
    session = Session(kind, 1, ["--ring", "1M", "--when-full", "drop", "--full-ms", "100"])
    pid = None
    try:
        load = session.load()
        load.more(REPLIES)
        leader = session.leader()["pid"]
        pid = next(v["pid"] for v in session.versions() if v["role"] == "follower")
        deed(pid)
        load.more(REPLIES)
        if word:
            session.wait_for(lambda: word in session.log(), "a line in the log")
        load.more(REPLIES)
        if session.leader()["pid"] != leader:
            raise Wrong("another leads")
        if not word and what != "stack" and not session.following():
            raise Wrong("the follower was dropped")
        replies = load.stop()
        session.stop()
        gone = session.ended(pid)
        lines = [l for l in session.log().splitlines() if "dropped" in l]
        if not gone:
            raise Wrong("the follower's process stays")
        print(f"{what}: {replies} replies, slowest {load.slowest * 1000:.0f} ms"
              + "".join(f"; {l.split(': ', 2)[-1]}" for l in lines))
    except Wrong as e:
        raise SystemExit(f"{what}: {e}\n{session.log()}")
    finally:
        session.clean()


def main():
    for what in sys.argv[2:] or DEEDS:
        go_wrong(sys.argv[1], what)
    print("rogue: ok")


if __name__ == "__main__":
    main()
