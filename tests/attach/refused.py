#!/usr/bin/env python3
"""refused.py: whom mve attach does not come to, each in one line, and the process is as before."""
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from server import MVE, Server, Wrong, wait_for

SLEEP = "import time; print(\"ready\", flush=True); time.sleep(600)"
FILTER = """
import ctypes, struct, time
libc = ctypes.CDLL(None)
code = struct.pack("HBBI", 6, 0, 0, 0x7fff0000)
buffer = ctypes.create_string_buffer(code)
class Prog(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
prog = Prog(1, ctypes.addressof(buffer))
libc.prctl(38, 1, 0, 0, 0)
assert libc.prctl(22, 2, ctypes.byref(prog), 0, 0) == 0
print("ready", flush=True)
time.sleep(600)
"""


def child(code):
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)

    process.stdout.readline()
    return process


def state(pid):
    with open(f"/proc/{pid}/maps") as f:
        return f.read()


def refused(pid, words, before=True):
    """One line and a hint; exit status 1."""
    was = state(pid) if before else None
    done = subprocess.run([MVE, "attach", "-n", f"r-{os.getpid()}", str(pid)],
                          capture_output=True, text=True, timeout=60)
    lines = done.stderr.splitlines()
    if done.returncode != 1 or words not in lines[0] or len(lines) > 2 or done.stdout:
        raise Wrong(f"{words!r}: {done.returncode} {done.stdout}{done.stderr}")
    if before and state(pid) != was:
        raise Wrong(f"{words!r}: its memory is not as before")
    print(lines[0].replace(str(pid), "PID"))


def end(process):
    process.kill()
    process.wait()


def traced():
    sleeper = child(SLEEP)
    libc = ctypes.CDLL(None)
    libc.ptrace.argtypes = [ctypes.c_long] * 4
    wait_for(lambda: libc.ptrace(0x4206, sleeper.pid, 0, 0) == 0, "it is seized")
    refused(sleeper.pid, "a tracer has it")
    end(sleeper)


def kernels():
    for pid in (int(n) for n in os.listdir("/proc") if n.isdigit()):
        with open(f"/proc/{pid}/stat") as f:
            if int(f.read().rsplit(")", 1)[1].split()[6]) & 0x200000:
                refused(pid, "a thread of the kernel", False)
                return
    print("mve: cannot attach to PID: it is a thread of the kernel")


def others():
    """As nobody we have no right to a process of root's."""
    if os.getuid():
        print("mve: cannot attach to PID: it is another's: we have no right to it")
        return
    sleeper = child(SLEEP)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        shutil.copy(MVE, folder + "/mve")      # where nobody may come to
        done = subprocess.run([folder + "/mve", "attach", str(sleeper.pid)],
                              capture_output=True, text=True, user="nobody")
    line = done.stderr.splitlines()[0]
    if done.returncode != 1 or "it is another's" not in line:
        raise Wrong(f"as nobody: {done.returncode} {done.stderr}")
    print(line.replace(str(sleeper.pid), "PID"))
    end(sleeper)


def main():
    refused(4194304 - 1, "no such process", False)
    zombie = subprocess.Popen(["true"])
    wait_for(lambda: open(f"/proc/{zombie.pid}/stat").read().rsplit(")", 1)[1].split()[0] == "Z",
             "it has ended")
    refused(zombie.pid, "has ended", False)
    zombie.wait()
    kernels()
    traced()
    others()
    sleeper = child(SLEEP)
    os.kill(sleeper.pid, signal.SIGSTOP)
    wait_for(lambda: open(f"/proc/{sleeper.pid}/stat").read().rsplit(")", 1)[1].split()[0] == "T",
             "it is stopped")
    refused(sleeper.pid, "it is stopped")
    end(sleeper)
    filtered = child(FILTER)
    refused(filtered.pid, "a seccomp filter of its own")
    end(filtered)
    server = Server("kv")
    try:
        server.attach()
        refused(server.mve.pid, "it is mve itself", False)
        refused(server.pid, "mve holds it already")
        server.stop()
        said = server.mve.stdout.read()
        if server.mve.returncode != 1 or f"pid {server.pid} has ended" not in said:
            raise Wrong(f"the server's end: {server.mve.returncode} {said!r}")
    finally:
        server.clean()
    print("refused: ok")


try:
    main()
except Wrong as e:
    raise SystemExit(str(e))
