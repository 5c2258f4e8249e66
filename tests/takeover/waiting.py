#!/usr/bin/env python3
"""waiting.py WAY...: what takes long, or for ever, while others ask the monitor.

A program maps or executes a file that takes seconds to plan; what is asked meanwhile is
answered before it goes on.
"""
import json
import os
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time

from load import Wrong
from session import MVE, ROOT

SIZE = 600 << 20
MANY, MANY_SIZE = 20, 2 << 20       # of programs that begin at once
EXIT = b"\xb8\xe7\x00\x00\x00\xbf\x07\x00\x00\x00\x0f\x05"      # exit_group(7)
ASKED = 5       # questions; of the one or other the monitor may hear before it is busy


def elf(path, size=SIZE):
    """A program, and a library, that is nearly all a hole."""
    head = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 2, 62, 1, 0x401000, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0x400000, 0x400000, size, size, 0x1000)
    with open(path, "wb") as file:
        file.write(head + load)
        file.seek(0x1000)
        file.write(EXIT)
        file.truncate(size)
    os.chmod(path, 0o755)


class Run:
    all = []

    def __init__(self, folder, args, options=(), command="run"):
        self.name = f"{os.environ.get('MVE_SESSION', f't-{os.getpid()}')}-w"
        self.mve = subprocess.Popen(
            [MVE, command, "-n", self.name, *options, "--", f"{folder}/waiting", *args],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.text = b""
        Run.all.append(self)

    def read(self, seconds):
        """What has come; False at the end."""
        if not select.select([self.mve.stdout], [], [], seconds)[0]:
            return True
        more = os.read(self.mve.stdout.fileno(), 4096)
        self.text += more
        return bool(more)

    def until(self, words):
        end = time.monotonic() + 60
        while words not in self.text:
            if not self.read(1) or time.monotonic() > end:
                self.mve.kill()         # its words end
                subprocess.run([MVE, "stop", "--kill", self.name], capture_output=True)
                raise Wrong(f"no {words}: {self.text} {self.mve.stderr.read()}")

    def asked(self):
        done = subprocess.run([MVE, "status", self.name, "--json"], capture_output=True,
                              timeout=30)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def followed(self):
        """It begins by itself; until then there is nobody to go on."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if any(v["role"] == "follower" for v in (self.asked() or {}).get("versions", [])):
                return
            time.sleep(0.02)
        raise Wrong("no follower begins")

    def end(self):
        """Its status and words; nothing of it goes on."""
        out, words = self.mve.communicate(timeout=120)
        self.text += out
        return self.mve.returncode, words.decode()


def served(folder, way, options=()):
    run = Run(folder, (way, f"{folder}/huge"), options)
    run.until(b"begins")
    answers = 0
    while run.mve.poll() is None and b"over" not in run.text and answers < ASKED:
        asked = run.asked()
        run.read(0)
        answers += bool(asked) and b"over" not in run.text and run.mve.poll() is None
    code, words = run.end()
    if code != (7 if way == "exec" else 0):
        raise Wrong(f"{way}: status {code}: {run.text} {words}")
    if answers < ASKED:
        raise Wrong(f"{way}: {answers} of {ASKED} questions were answered while it was planned")
    return f"{answers} questions answered"


def crash(folder):
    follower = f"{folder}/waiting stay {folder}/huge"
    run = Run(folder, ("crash", f"{folder}/huge"), ("-f", follower))
    run.until(b"begins")
    run.followed()
    run.mve.stdin.write(b"\n")
    run.mve.stdin.close()
    run.mve.stdin = None
    code, words = run.end()
    if code or b"has come to its end" not in run.text or " leads (" not in words:
        raise Wrong(f"status {code}: {run.text} {words}")
    return "the follower leads"


def planners(mve):
    """Children of the monitor that run nothing but it."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                parent = int(stat.read().rsplit(")", 1)[1].split()[1])
            if parent == mve and os.readlink(f"/proc/{pid}/exe") == os.readlink(
                    f"/proc/{mve}/exe"):
                yield int(pid)
        except OSError:
            pass


def killed(folder):
    """Who plans is killed: the program goes on, and that is said."""
    run = Run(folder, ("map", f"{folder}/huge"))
    run.until(b"begins")
    while run.mve.poll() is None and not (found := list(planners(run.mve.pid))):
        pass
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    code, words = run.end()
    if code or b"over" not in run.text or "cannot plan a file" not in words:
        raise Wrong(f"status {code}: {run.text} {words}")
    return "it goes on"


def many(folder):
    """More programs at once than are planned at one time: each has its plan before it runs."""
    for i in range(MANY):
        elf(f"{folder}/one.{i}", MANY_SIZE)
    os.environ["MVE_LOG"] = "patch"
    run = Run(folder, ("many", f"{folder}/one", str(MANY)))
    del os.environ["MVE_LOG"]
    code, words = run.end()
    planned = [f"{folder}/one.{i}: " in words for i in range(MANY)]
    if code or not all(planned):
        raise Wrong(f"status {code}, {sum(planned)} of {MANY} were planned")
    return "all are planned"


def counted(run):
    """How many calls it has made; None: the monitor has not answered."""
    done = subprocess.run([MVE, "status", run.name], capture_output=True, text=True, timeout=30)
    words = [line.split()[0] for line in done.stdout.splitlines() if " calls: " in line]
    return int(words[0]) if done.returncode == 0 and words else None


def stalls(run):
    """The program, since nobody reads; its monitor answers."""
    end = time.monotonic() + 60
    before, now = None, counted(run)
    while now is None or before != now:
        if time.monotonic() > end:
            raise Wrong("no answer while nobody reads")
        time.sleep(0.5)
        before, now = now, counted(run)


def trace(folder):
    """A pipe of 64 KiB, and 3,000 calls."""
    fifo = f"{folder}/fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    for how in ("file", "stderr"):
        run = Run(folder, ("calls", "-"), ("-o", fifo) if how == "file" else (), "trace")
        stalls(run)
        if run.mve.poll() is not None:
            raise Wrong(f"{how}: it did not wait for its trace: {run.mve.stderr.read()}")
        if how == "file":
            os.set_blocking(reader, True)
            with open(reader, "rb") as text:
                lines = text.read()
            code, words = run.end()
        else:
            code, words = run.end()
            lines = words.encode()
        if code or lines.count(b"getppid()") != 3000 or b"exit_group(0)" not in lines:
            raise Wrong(f"{how}: status {code}, {lines.count(b'getppid()')} calls: "
                        f"{lines[-300:]}")
    return "the loop goes on, and no line is lost"


def woken(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(next(l.split()[1] for l in file if l.startswith("voluntary")))


def reader(folder):
    """A pipe that nobody reads at first: the session is there, and ends when it is told to.
    Until then it sleeps."""
    fifo = f"{folder}/later"
    os.mkfifo(fifo)
    run = Run(folder, ("calls", "-"), ("-o", fifo), "trace")
    end = time.monotonic() + 30
    while not run.asked():
        if run.mve.poll() is not None or time.monotonic() > end:
            raise Wrong("no session before somebody reads the trace")
    with open(fifo, "rb") as text:
        lines = text.read()
    code, words = run.end()
    if code or lines.count(b"getppid()") != 3000 or b"exit_group(0)" not in lines:
        raise Wrong(f"status {code}, {lines.count(b'getppid()')} calls: {words}")
    run = Run(folder, ("calls", "-"), ("-o", fifo), "trace")
    while not run.asked():
        pass
    stop = subprocess.run([MVE, "stop", run.name], capture_output=True, timeout=60)
    if stop.returncode:
        raise Wrong(f"stop: {stop.stderr}")
    end, times = time.monotonic() + 30, -1
    while times:
        if time.monotonic() > end:
            raise Wrong(f"woken {times} times in a second, and nobody reads the trace")
        before = woken(run.mve.pid)
        time.sleep(1)
        times = woken(run.mve.pid) - before
    run.mve.send_signal(signal.SIGTERM)
    run.end()
    return "the session is there before who reads"


def status(folder):
    """A pipe that nobody reads, and one that somebody does."""
    fifo = f"{folder}/status"
    os.mkfifo(fifo)
    run = Run(folder, ("none", "-"), ("--status", fifo))
    code, words = run.end()
    if code or "nobody reads it" not in words:
        raise Wrong(f"status {code}: {words}")
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    run = Run(folder, ("none", "-"), ("--status", fifo))
    run.mve.wait(60)
    with open(reader, "rb") as text:
        have = text.read()
    if run.end()[0] or b'"session"' not in have and b'"name"' not in have:
        raise Wrong(f"{have}")
    return "written where somebody reads"


WAYS = {
    "many": many,
    "trace": trace,
    "reader": reader,
    "status": status,
    "killed": killed,
    "map": lambda folder: served(folder, "map"),
    "map_followed": lambda folder: served(folder, "map", ("-f", "same")),
    "exec": lambda folder: served(folder, "exec"),
    "exec_followed": lambda folder: served(folder, "exec", ("-f", "same")),
    "crash": crash,
}


def main():
    with tempfile.TemporaryDirectory(prefix="mve-waiting-", dir="/tmp") as folder:
        subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", "-pthread", "-o", f"{folder}/waiting",
                        f"{ROOT}/tests/takeover/waiting.c"], check=True)
        elf(f"{folder}/huge")
        for way in sys.argv[1:]:
            print(f"{way}: {WAYS[way](folder)}")
    print("waiting: ok")


if __name__ == "__main__":
    try:
        main()
    except (Wrong, subprocess.TimeoutExpired) as e:
        print(f"waiting: {e}")
        for run in Run.all:
            run.mve.kill()
            subprocess.run([MVE, "stop", "--kill", run.name], capture_output=True)
        sys.exit(1)
