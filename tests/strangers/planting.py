"""A difference is planted in a follower that is there and loaded: one byte of a text that its
server has, and sends only when it is asked for it (`plant` of servers.py: what is sent, and a part
of the answer).  It is changed wherever the follower has it in memory of its own, its image too, as
if its program had come with it: so it is there each time that the difference is tried again."""
import os
import re
import socket
import time

import clients
from clients import Wrong

WIDE = 1 << 30      # nothing that is wider: a sanitizer's shadow, what a heap has only reserved


def tree(pid, but):
    """The processes below this one, but those of that branch."""
    below = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                below.setdefault(int(file.read().rsplit(")", 1)[1].split()[1]), []).append(int(name))
        except OSError:     # it has ended
            pass
    found = [pid]
    for one in found:
        found += [child for child in below.get(one, []) if child != but]
    return found[1:]


def own(pid):
    """Where memory lies that nobody shares with it."""
    with open(f"/proc/{pid}/maps") as file:
        for line in file:
            span, rights, *_ = line.split()
            start, end = (int(word, 16) for word in span.split("-"))
            if rights[0] == "r" and rights[3] == "p" and end - start < WIDE:
                yield start, end


def change(pid, text, other):
    """In how many places there was that text and is the other one now."""
    count = 0
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        for start, end in own(pid):
            try:
                memory.seek(start)
                has = memory.read(end - start)
            except OSError:     # [vvar], or it is gone
                continue
            for found in re.finditer(re.escape(text), has or b""):
                memory.seek(start + found.start())
                count += memory.write(other) == len(other)
    return count


def everywhere(monitor, leader, text, other):
    """Until there is no process, an image that was just made, that has the text."""
    program = os.readlink(f"/proc/{monitor}/exe")
    places = 0
    while True:
        new = 0
        for pid in tree(monitor, leader):
            try:
                if os.readlink(f"/proc/{pid}/exe") != program:
                    new += change(pid, text, other)
            except OSError:     # it has ended
                pass
        places += new
        if not new:
            return places


def ask(port, words, text):
    """The leader has it still."""
    with socket.create_connection(("127.0.0.1", port), clients.WAIT_S) as s:
        s.settimeout(clients.WAIT_S)
        s.sendall(words)
        data = b""
        while text not in data:
            new = s.recv(1 << 16)
            if not new:
                raise Wrong(f"asked for {text!r}: {data!r:.120}")
            data += new


def plant(session):
    """How many places it has, since when one of the answers differs, and what is said there."""
    words, text = session.server.plant
    status = session.status()
    other = text[:-1] + bytes([text[-1] ^ 1])
    leader = next(v["pid"] for v in status["versions"] if v["role"] == "leader")
    end, places = time.monotonic() + clients.WAIT_S, 0
    while not places and time.monotonic() < end:    # it may be on its way back to its image
        places = everywhere(status["monitor"], leader, text, other)
    if not places:
        raise Wrong(f"nowhere in the follower: {text!r}")
    ask(session.server.port, words, text)
    return places, time.monotonic(), other.decode()
