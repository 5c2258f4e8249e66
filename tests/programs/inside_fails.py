#!/usr/bin/env python3
"""mve itself fails in a version, and the server goes on.

The code of the inside is written over in one process, as only a test may: a function makes
what is no instruction, looks at address 0, or fails a MUST.  Then
- a follower is dropped, with a report that says what failed, where, and what came before;
- a leader is replaced, and no request is lost that it had not begun;
- a leader that nobody may replace, and one without followers, goes on alone, and holds no
  latch that another thread waits for.
"""
import json
import os
import subprocess
import sys
import time

ROOT = os.environ.get("ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
MVE = os.environ.get("MVE", ROOT + "/build/mve")
INSIDE = os.path.join(os.path.dirname(MVE), "inside.elf")
SESSION = os.environ.get("MVE_SESSION", f"t-{os.getpid()}")
LIMIT_S = 30

SERVER = r"""
import sys, os, threading
# With a second thread each call is looked at before it is made.
threading.Thread(target=threading.Event().wait, daemon=True).start()
for line in iter(sys.stdin.readline, ""):
    if line == "code\n":
        import mmap
        mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    if line == "file\n":
        import mmap
        with open("code", "wb") as f:
            f.write(b"\x0f\x05" * 2048)
        with open("code", "rb") as f:
            mmap.mmap(f.fileno(), 4096, flags=mmap.MAP_PRIVATE,
                      prot=mmap.PROT_READ | mmap.PROT_EXEC)
    os.write(1, ("%d said " % sys.stdin.fileno() + line).encode())
"""

SEGV = bytes.fromhex("8a042500000000")		# mov 0, %al
ILL = bytes.fromhex("0f0b")			# ud2


def symbols():
    out = subprocess.check_output(["nm", INSIDE], text=True)
    return {f[2]: int(f[0], 16) for f in map(str.split, out.splitlines()) if len(f) == 3}


SYMBOL = symbols()
BASE = 0x100000


def fails_must(function):
    """Code that says the first MUST of the image does not hold, and comes back if it may."""
    at = SYMBOL[function]
    lea = (SYMBOL["musts_start"] - (at + 7)) & 0xffffffff
    call = (SYMBOL["must_failed"] - (at + 12)) & 0xffffffff
    return b"\x48\x8d\x3d" + lea.to_bytes(4, "little") + b"\xe9" + call.to_bytes(4, "little")


def plant(pid, function, code):
    with open(f"/proc/{pid}/maps") as f:
        base = next(int(l.split("-")[0], 16) for l in f if "mve-inside" in l)
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as mem:
        mem.seek(base + SYMBOL[function] - BASE)
        mem.write(code)


class Session:
    def __init__(self, *options):
        self.err = open("err", "w+")
        self.mve = subprocess.Popen(
            [MVE, "run", "-n", SESSION, *options, "--", sys.executable, "-c", SERVER],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.err)
        self.said = 0
        self.ask("begin")

    def ask(self, word):
        self.mve.stdin.write(word.encode() + b"\n")
        self.mve.stdin.flush()
        line = self.mve.stdout.readline().decode()
        assert line == f"0 said {word}\n", f"{word}: {line!r}: {self.words()}"

    def words(self):
        return open("err").read()

    def status(self):
        return json.loads(subprocess.check_output([MVE, "status", SESSION, "--json"]))

    def pid(self):
        return self.status()["server"]

    def row(self, name):
        return next(v for v in self.status()["versions"] if v["role"] == name)

    def settled(self):
        """Followed, some calls long: the follower's row."""
        self.until(lambda: any(v["role"] == "follower" for v in self.status()["versions"]))
        for i in range(20):
            self.ask(f"before {i}")
        self.until(lambda: not self.row("follower")["lag_cells"])
        return self.row("follower")

    def until(self, what):
        end = time.time() + LIMIT_S
        while not what():
            assert time.time() < end, f"not within {LIMIT_S} s: {self.words()}"
            time.sleep(0.05)

    def has_said(self, *words):
        return all(w in self.words() for w in words)

    def end(self):
        self.mve.stdin.close()
        assert self.mve.wait(LIMIT_S) == 0, self.words()

    def __enter__(self):
        return self

    def __exit__(self, *wrong):
        if self.mve.poll() is None:
            subprocess.run([MVE, "stop", "--kill", SESSION], stderr=subprocess.DEVNULL)
            self.mve.wait(LIMIT_S)


def report():
    text = subprocess.check_output([MVE, "report", SESSION, "--json"], text=True)
    return json.loads(text)


def must_text():
    """The words of that MUST, which begin with file and line."""
    with open(INSIDE, "rb") as f:
        f.seek(SYMBOL["musts_start"] - BASE)
        return f.read(300).split(b"\0")[0].decode()


def follower(function, code, *words):
    with Session("-f", "same") as s:
        plant(s.settled()["pid"], function, code)
        for i in range(5):
            s.ask(f"behind {i}")
        s.until(lambda: s.has_said("dropped: mve failed in it", *words))
        r = report()
        assert r["verdict"] == "mve failed", r
        assert all(w in r["summary"] for w in words), r["summary"]
        assert len(r["window"]) == 16 and any("before" in str(row) for row in r["window"]), r
        s.ask("more")
        s.end()
    print(f"follower, {words[0]}: ok", flush=True)


def replaced(function, code, *words):
    with Session("-f", "same") as s:
        s.settled()
        leader = s.pid()
        plant(leader, function, code)
        for i in range(5):
            s.ask(f"behind {i}")
        s.until(lambda: s.has_said("mve failed", "leads", *words))
        s.until(lambda: s.pid() != leader)
        assert any("before" in str(row) for row in report()["window"]), report()
        s.end()
    print(f"replaced, {words[0]}: ok", flush=True)


def alone(options, word, function, code, *words):
    with Session(*options) as s:
        if options:
            s.settled()
        pid = s.pid()
        plant(pid, function, code)
        for i in range(5):
            s.ask(word)
        assert s.pid() == pid
        s.until(lambda: s.has_said("mve failed", *words))
        s.end()
    print(f"alone {' '.join(options)}, {words[0]}: ok", flush=True)


def main():
    must = must_text()
    assert must.startswith("engine/"), must
    follower("follow_call", SEGV, "SIGSEGV at 0x0", "follow_call", "engine/inside/replay")
    follower("follow_call", ILL, "SIGILL", "follow_call")
    follower("follow_call", fails_must("follow_call"), "MUST", must)
    replaced("ask_write", SEGV, "SIGSEGV at 0x0", "ask_write", "syscalls.def")
    replaced("ask_write", fails_must("ask_write"), "MUST", must)
    off = ("-f", "same", "--failover", "off")
    alone(off, "more", "ask_write", SEGV, "SIGSEGV at 0x0", "goes on alone")
    alone(off, "more", "ask_write", fails_must("ask_write"), "MUST", "goes on alone")
    # Behind a call that has been made, which is not made again.
    alone(off, "more", "asked_write", SEGV, "SIGSEGV at 0x0", "goes on alone")
    alone((), "code", "seal_break", fails_must("seal_break"), "MUST", "the server goes on")
    # Where it holds a latch, which others (and its next such call) wait for.
    alone((), "file", "seal_break", fails_must("seal_break"), "MUST", "the server goes on")
    print("inside_fails: ok")


main()
