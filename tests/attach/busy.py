#!/usr/bin/env python3
"""busy.py ROUNDS: mve comes to a program whose threads are at everything that a thread can be at
(busy.c), and leaves it, again and again; it sees nothing of that."""
import os
import subprocess
import sys
import tempfile
import time

from server import MVE, WAIT_S, Wrong

HERE = os.path.dirname(os.path.abspath(__file__))
PAUSE_S = 0.05
TRIES = 20          # it may be forking, or in a handler


def build(folder):
    out = folder + "/busy"
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-pthread", "-o", out, HERE + "/busy.c",
                    "-lm"], check=True)
    return out


def attach(pid, name):
    for _ in range(TRIES):
        mve = subprocess.Popen([MVE, "attach", "-n", name, str(pid)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        line = mve.stdout.readline()
        if "holds pid" in line:
            return mve
        words = line + mve.communicate()[0]
        if "try again" not in words:
            raise Wrong(f"mve attach: {words}")
    raise Wrong(f"mve attach, {TRIES} times: {words}")


def detach(mve, name):
    for _ in range(TRIES):
        done = subprocess.run([MVE, "detach", name], capture_output=True, text=True,
                              timeout=WAIT_S)
        if not done.returncode:
            words = mve.communicate(timeout=WAIT_S)[0]
            if "cannot leave" in words:
                raise Wrong(words)
            return
        if "try again" not in done.stderr:
            break
    mve.kill()
    raise Wrong(f"mve detach: {done.stderr}{mve.communicate()[0]}")


def main():
    name = "%s-b" % os.environ.get("MVE_SESSION", f"t-{os.getpid()}")
    mve = None
    with tempfile.TemporaryDirectory(prefix="mve-attach-", dir="/tmp") as folder:
        program = subprocess.Popen([build(folder)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, text=True)
        try:
            program.stdout.readline()
            for n in range(int(sys.argv[1])):
                time.sleep(PAUSE_S)
                mve = attach(program.pid, name)
                time.sleep(PAUSE_S)
                detach(mve, name)
                if program.poll() is not None:
                    raise Wrong(f"round {n}: it has ended: {program.returncode}")
            time.sleep(PAUSE_S)
            program.terminate()
            words = program.communicate(timeout=WAIT_S)[0]
            if "busy: ok" not in words or program.returncode:
                raise Wrong(f"{program.returncode}: {words}")
        except Wrong as e:
            time.sleep(PAUSE_S)
            ended = program.poll()
            program.kill()
            raise SystemExit(f"{e}\n{ended}: {program.communicate()[0]}")
        finally:
            for process in (program, mve):
                if process and process.poll() is None:
                    process.kill()
                    process.wait()
    print("busy: ok")


main()
