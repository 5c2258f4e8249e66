#!/usr/bin/env python3
"""slow.py WAY...: programs and libraries on a file system that answers the programs, but not
the monitor: what is asked of it meanwhile is answered, and the programs go on in the end.
"""
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time

from load import Wrong
from session import MVE, ROOT
from slowfs import SlowFs
from waiting import ASKED, Run, elf

CROWD = 12      # of programs there at once: more than are looked at beside the loop


# ELF's head for another machine's class, and no more: exit is not reached.
I386 = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9) + struct.pack(
    "<HHIIIIIHHHHHH", 2, 3, 1, 0x8048054, 52, 0, 0, 52, 32, 1, 0, 0, 0) + struct.pack(
    "<IIIIIIII", 1, 0, 0x8048000, 0x8048000, 96, 96, 5, 0x1000) + b"\x90" * 16


def is_monitors(pid):
    """The monitor, or a child of it that runs nothing else."""
    try:
        return os.path.samefile(f"/proc/{pid}/exe", MVE)
    except OSError:
        return False


def answers(run, fs):
    """Questions, once the monitor has turned to the file system."""
    asked(fs, run)
    for _ in range(ASKED):
        try:
            if not run.asked():
                raise Wrong("no answer")
        except subprocess.TimeoutExpired:
            raise Wrong("the monitor waits for a file")


def served(fs, way, program, options=(), file=None):
    fs.held = is_monitors
    run = Run(os.path.dirname(program), (way, file or f"{fs.where}/waiting"), options)
    answers(run, fs)
    fs.release()
    code, words = run.end()
    if code not in (0, 2):
        raise Wrong(f"status {code}: {run.text} {words}")
    return f"{ASKED} questions answered"


def answered(fs, program):
    """One that does answer: its code is planned as that of others."""
    os.environ["MVE_LOG"] = "patch"
    run = Run(os.path.dirname(program), ("exec", f"{fs.where}/waiting"))
    code, words = run.end()
    del os.environ["MVE_LOG"]
    if code != 2 or f"{fs.where}/waiting: " not in words or "unheld" in words:
        raise Wrong(f"status {code}: {words}")
    return "planned"


def asked(fs, run):
    """The monitor has turned to the file system."""
    end = time.monotonic() + 30
    while not fs.asked:
        if time.monotonic() > end or run.mve.poll() is not None:
            raise Wrong(f"nobody has asked: {run.text} {run.mve.poll()}")
        run.read(0.05)


def crowd(fs, program, options=()):
    """Many 32-bit programs there, which cannot be held: each waits until that is known.  One
    that lies here waits for none of them."""
    fs.held = is_monitors
    near = f"{os.path.dirname(program)}/near"
    elf(near, 1 << 20)
    run = Run(os.path.dirname(program), ("crowd", f"{fs.where}/i386", str(CROWD), near), options)
    asked(fs, run)
    run.mve.stdin.write(b"\n")
    run.mve.stdin.flush()
    run.until(b"the other: 7\n")
    fs.release()
    code, words = run.end()
    if code or f"failed: {CROWD}".encode() not in run.text:
        raise Wrong(f"status {code}: {run.text} {words}")
    return "the one that is near waits for none, and each waits for its own file"


def crashed(fs, program):
    """A follower there crashes: its stack is read, and the monitor does not wait for names."""
    run = Run(f"{os.path.dirname(program)}/crash", (), ("-f", f"{fs.where}/crashes"))
    run.followed()
    run.mve.stdin.write(b"a")
    run.mve.stdin.flush()
    run.until(b"a")
    fs.held = is_monitors
    run.mve.stdin.write(b"x")
    run.mve.stdin.flush()
    run.until(b"x")
    end = time.monotonic() + 60
    try:
        while not (shown := run.asked()) or any(v["role"] == "follower"
                                                for v in shown["versions"]):
            if time.monotonic() > end:
                raise Wrong(f"the follower is not dropped: {shown}")
    except subprocess.TimeoutExpired:
        raise Wrong("the monitor waits for a file")
    finally:
        fs.release()
    code, words = run.end()
    if code or "crashed: SIG" not in words:
        raise Wrong(f"status {code}: {words}")
    return "dropped, and questions answered"


CRASHES = """#include <unistd.h>
int main(void) { char c; while (read(0, &c, 1) == 1) { if (CRASH && c == 'x') __builtin_trap();
write(1, &c, 1); } return 0; }"""


def crashes_make(folder):
    os.mkdir(f"{folder}/crash")
    for name, crash in ("waiting", 0), ("crashes", 1):
        subprocess.run(["gcc", "-x", "c", "-", f"-DCRASH={crash}", "-o",
                        f"{folder}/crash/{name}"], input=CRASHES, text=True, check=True)


WAYS = {
    "crashed": crashed,
    "crowd": crowd,
    "crowd_followed": lambda fs, program: crowd(fs, program, ("-f", "same")),
    "map": lambda fs, program: served(fs, "map", program),
    "map_followed": lambda fs, program: served(fs, "map", program, ("-f", "same")),
    "exec": lambda fs, program: served(fs, "exec", program),
    "answered": answered,
    "exec_followed": lambda fs, program: served(fs, "exec", program, ("-f", "same")),
}


def tried(way, folder):
    program = f"{folder}/waiting"
    where = f"{folder}/slow"
    with open(program, "rb") as file:
        data = file.read()
    with open(f"{folder}/crash/crashes", "rb") as file:
        crashes = file.read()
    try:
        fs = SlowFs(where, {"waiting": data, "crashes": crashes} | {f"i386.{i}": I386 for i in range(CROWD)})
    except OSError as e:
        print(f"slow: no FUSE: {e}")
        sys.exit(77)
    try:
        print(f"{way}: {WAYS[way](fs, program)}", flush=True)
    finally:
        fs.close()


def main():
    folder = tempfile.mkdtemp(prefix="mve-slow-", dir="/tmp")
    try:
        os.mkdir(f"{folder}/slow")
        subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", "-pthread", "-o", f"{folder}/waiting",
                        f"{ROOT}/tests/takeover/waiting.c"], check=True)
        crashes_make(folder)
        for way in sys.argv[1:]:
            tried(way, folder)
    finally:
        shutil.rmtree(folder)
    print("slow: ok")


if __name__ == "__main__":
    try:
        main()
    except (Wrong, subprocess.TimeoutExpired) as e:
        print(f"slow: {e}")
        for run in Run.all:
            run.mve.kill()
            subprocess.run([MVE, "stop", "--kill", run.name], capture_output=True)
        sys.exit(1)
