#!/usr/bin/env python3
"""slow.py WAY...: programs and libraries on a file system that answers the programs, but not
the monitor: what is asked of it meanwhile is answered, and the programs go on in the end.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

from load import Wrong
from session import MVE, ROOT
from slowfs import SlowFs
from waiting import ASKED, Run


def is_monitors(pid):
    """The monitor, or a child of it that runs nothing else."""
    try:
        return os.path.samefile(f"/proc/{pid}/exe", MVE)
    except OSError:
        return False


def answers(run, fs):
    """Questions, once the monitor has turned to the file system."""
    end = time.monotonic() + 30
    while not fs.asked:
        if time.monotonic() > end or run.mve.poll() is not None:
            raise Wrong(f"nobody has asked: {run.text} {run.mve.poll()}")
        run.read(0.05)
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


WAYS = {
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
    try:
        fs = SlowFs(where, {"waiting": data})
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
