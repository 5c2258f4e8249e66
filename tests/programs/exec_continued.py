#!/usr/bin/env python3
"""A process that is stopped by a signal on its way through execve, and continued, is held behind
it: its program's calls are counted, and a follower's do nothing to the world.  The monitor stands
still until the process has asked it, so that nothing hangs on who is faster.
"""
import json
import os
import re
import signal
import subprocess
import sys
import time

MVE, NAME = os.environ["MVE"], os.environ["MVE_SESSION"]
READ, FUTEX = 0, 202


def status():
    p = subprocess.run([MVE, "status", NAME, "--json"], capture_output=True, text=True)
    return json.loads(p.stdout) if p.returncode == 0 else {}


def word(pid, key):
    with open(f"/proc/{pid}/status") as f:
        return re.search(rf"^{key}:\s*(\S+)", f.read(), re.M)[1]


def until(what, why):
    end = time.monotonic() + 60
    while not what():
        if time.monotonic() > end:
            sys.exit(f"FAILED: {why}")
        time.sleep(0.01)


def child(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return int((f.read().split() or [0])[0])


def is_in(pid, call):
    with open(f"/proc/{pid}/syscall") as f:
        return f.read().startswith(f"{call} ")


def stop(pid):
    os.kill(pid, signal.SIGSTOP)
    until(lambda: word(pid, "State") == "T", f"{pid} does not stop")


def main():
    ready, go = os.pipe()
    mve = subprocess.Popen([MVE, "run", "-n", NAME, "--", "sh", "-c",
                            "read go; sleep 1000; exit 0"], stdin=ready)
    until(lambda: status().get("server"), "it does not begin")
    until(lambda: is_in(status()["server"], READ), "it does not read")
    before = status()
    monitor, server = before["monitor"], before["server"]
    stop(monitor)
    os.write(go, b"go\n")
    until(lambda: child(server), "it has no child")
    pid = child(server)
    until(lambda: is_in(pid, FUTEX), "it does not ask")
    stop(pid)
    os.kill(monitor, signal.SIGCONT)    # which gives it to the server: that one is not stopped
    until(lambda: word(pid, "TracerPid") != "0", "it is not seen through its execve")
    os.kill(pid, signal.SIGCONT)
    until(lambda: word(pid, "Name") == "sleep" and word(pid, "TracerPid") == "0",
          "it does not execute its program")
    with open(f"/proc/{pid}/maps") as f:
        if "memfd:mve-inside" not in f.read():
            sys.exit("FAILED: its program runs unheld")
    now = status()
    if (now["programs"], now["unheld"]) != (before["programs"] + 1, 0):
        sys.exit(f"FAILED: {now['programs']} programs, {now['unheld']} of them unheld")
    os.kill(pid, signal.SIGTERM)
    if mve.wait(60):
        sys.exit(f"FAILED: status {mve.returncode}")
    print("exec_continued: ok")


main()
