#!/usr/bin/env python3
"""leaving.py: `mve stop` finds the server on its way out, without memory and not ended yet:
it waits for that, and does not take it for a stranger's process."""
import os
import signal
import subprocess
import time

from session import MVE, ROOT


def text(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def wait_for(what, words, seconds=20):
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            raise SystemExit(f"not in {seconds} s: {words}")


def one(program, name):
    subprocess.run([MVE, "run", "-n", name, "--", program, "pid"], check=True, timeout=30)
    wait_for(lambda: text("pid").endswith("\n"), "the daemon is there")
    pid = int(text("pid"))
    os.kill(pid, signal.SIGUSR1)
    wait_for(lambda: not text(f"/proc/{pid}/maps"), "its memory is gone")
    done = subprocess.run([MVE, "stop", name], capture_output=True, text=True, timeout=60)
    # It may have ended before it was looked for.
    if done.returncode and "no such session" not in done.stderr:
        subprocess.run([MVE, "stop", name, "--kill"], capture_output=True)
        raise SystemExit(f"stop: {done.returncode} {done.stderr}")


def main():
    program = os.getcwd() + "/leaving"
    subprocess.run(["gcc", "-O1", "-w", "-D_GNU_SOURCE", "-o", program,
                    ROOT + "/tests/takeover/leaving.c"], check=True)
    one(program, os.environ.get("MVE_SESSION", "leaving"))
    print("leaving: ok")


if __name__ == "__main__":
    main()
