#!/usr/bin/env python3
"""rewind.py FOLLOWER THREADS CASE...: a follower that differs goes back to its image of itself.
FOLLOWER is the program, or another build of it, by a sanitizer.

once	its memory is changed from outside, as a race would: it tries again, and goes on
shared	the same, of memory that processes share
locks	it takes locks in another order for that, and would say the same
turns	one at a time, what is met again stands for nobody: turns have told its order
crash	it crashes of that
image_gone, image_stopped, killed	its image, or it, is killed or stopped
again	its image is killed: there is another, without a line
forked, forks_lead, collected	of several processes: goes back, leads, leaves no copy behind
unkept	the ring has had no room for its image: that is reported, and why it was not tried
held	the ring is full while a difference is held, and waited for: its image stays, and it is tried
always	it is another program, as it says at a line: that is reported, and how often tried
"""
import json
import os
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MVE = os.environ.get("MVE", f"{ROOT}/build/mve")
BIN = os.environ.get("BIN", f"{ROOT}/build/tests")
TIMES = 8
IMAGES = 6          # so many, one after the other
FOLLOWER = "rewound"


def fail(why):
    print(f"FAILED: {why}")
    sys.exit(1)


class Session:
    def __init__(self, name, threads, differs=0, shared=False, forks=False, ring="64M", more=()):
        self.name = f"rewind-{name}-{os.getpid()}"
        word = [f"{BIN}/rewound", str(threads), "0"] + (["shared"] * shared or ["forks"] * forks)
        follower = " ".join([f"{BIN}/{FOLLOWER}", word[1], str(differs)] + word[3:])
        self.words = open(f"{self.name}.err", "w+")
        self.mve = subprocess.Popen(
            [MVE, "run", "-n", self.name, "--rewind", str(TIMES), "--ring", ring,
             *more, "-f", follower, "--", *word],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.words, text=True, bufsize=1)
        self.at = int(self.mve.stdout.readline().split()[-1], 16)
        self.lines = 0
        self.began = set()

    def line(self):
        self.mve.stdin.write("\n")
        self.lines += 1
        said = self.mve.stdout.readline()
        if not said.startswith(f"line {self.lines} by ") or not said.endswith(": 0\n"):
            fail(f"the leader says {said!r}")

    def status(self):
        out = subprocess.run([MVE, "status", self.name, "--json"], capture_output=True, text=True)
        return json.loads(out.stdout)

    def follower(self):
        f = self.status()["versions"][1]
        self.began |= {f["pid"], f["rewind"]["image"]} - {0}
        return f

    def wait(self, what, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            f = self.follower()
            if what(f):
                return f
            if f["role"] == "ended" and not what(f):
                fail(f"it has ended: {f['why']}\n{self.said()}")
            time.sleep(0.02)
        fail(f"it does not come to that: {json.dumps(self.follower(), indent=1)}\n{self.said()}")

    def said(self):
        self.words.seek(0)
        return self.words.read()

    def processes(self):
        """Those that have the program's name and this session's follower's memory of it."""
        out = subprocess.run(["pgrep", "-f", f"^{BIN}/rewound"], capture_output=True, text=True)
        return set(map(int, out.stdout.split()))

    def poke(self, pid, value=1):
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as mem:
            mem.seek(self.at)
            mem.write(value.to_bytes(4, "little"))

    def end(self):
        self.mve.stdin.close()
        if self.mve.wait(20):
            fail(f"the server ended with {self.mve.returncode}\n{self.said()}")
        # Where the leader's children go on for a moment, a copy of the monitor sees to the rest.
        end = time.monotonic() + 20
        while left := {pid for pid in self.began & self.processes() if not is_ending(pid)}:
            if time.monotonic() > end:
                fail(f"left behind: {left}")
            time.sleep(0.02)
        while not subprocess.run([MVE, "status", self.name], capture_output=True).returncode:
            if time.monotonic() > end:
                fail("the session stays")
            time.sleep(0.02)


def is_ending(pid):
    """It has been killed: it is on its way, or gone."""
    try:
        with open(f"/proc/{pid}/status") as f:
            status = dict(line.split(":", 1) for line in f)
        with open(f"/proc/{pid}/stat") as f:
            flags = int(f.read().rsplit(") ", 1)[1].split()[6])
    except OSError:
        return True
    return flags & 4 or int(status["SigPnd"], 16) >> signal.SIGKILL - 1 & 1


def has_read(f):
    return f["lag_cells"] == 0


def came_back(threads, shared=False, value=1, place="write", forks=False, more=()):
    s = Session("once", threads, shared=shared, forks=forks, more=more)
    for _ in range(20):
        s.line()
    f = s.wait(lambda f: has_read(f) and f["rewind"]["image"])
    before, first = f["pid"], f["rewind"]["image"]
    if forks and f["rewind"]["processes"] == 1:
        # It was taken before there were others.
        os.kill(first, signal.SIGKILL)
        f = s.wait(lambda f: f["rewind"]["image"] not in (0, first))
        if f["rewind"]["processes"] != threads + 1:
            fail(f["rewind"])
    s.poke(before, value)
    for _ in range(20):
        s.line()
    f = s.wait(lambda f: f["rewind"]["rewinds"] >= 1 and has_read(f) and f["role"] == "follower")
    if f["pid"] == before or f["verdicts"] or len(f["rewind"]["races"]) != 1:
        fail(json.dumps(f, indent=1))
    if not f["rewind"]["races"][0]["place"].startswith(f"{place} at "):
        fail(f["rewind"]["races"])
    for _ in range(20):
        s.line()
    s.wait(has_read)
    return s


def went_back_again(s):
    f = s.follower()
    s.poke(f["pid"])
    for _ in range(20):
        s.line()
    s.wait(lambda f: f["rewind"]["rewinds"] >= 2 and has_read(f) and f["role"] == "follower")


def once(*args, **more):
    came_back(*args, **more).end()


def always(threads):
    s = Session("always", threads, 50)
    for _ in range(49):
        s.line()
    s.wait(lambda f: has_read(f) and f["rewind"]["image"])
    begin = time.monotonic()
    s.line()
    f = s.wait(lambda f: f["role"] == "ended")
    if f["verdicts"] != {"diverged": 1} or f["rewind"]["rewinds"] != TIMES - 1:
        fail(json.dumps(f, indent=1))
    if f"tried {TIMES} times" not in f["why"]:
        fail(f["why"])
    print(f"  reported after {time.monotonic() - begin:.2f} s", file=sys.stderr)
    s.end()


def telling_lines(s, over):
    def lines():
        while not over.is_set():
            s.line()
    telling = threading.Thread(target=lines, daemon=True)
    telling.start()
    return telling


def unkept(threads):
    s = Session("unkept", threads, ring="1M", more=("--full-ms", "20000"))
    s.line()
    f = s.wait(lambda f: has_read(f) and f["rewind"]["image"])
    os.kill(f["pid"], signal.SIGSTOP)
    over = threading.Event()
    telling = telling_lines(s, over)
    while not s.status()["ring"]["waits"]:
        time.sleep(0.05)
    over.set()
    s.poke(f["pid"])
    os.kill(f["pid"], signal.SIGCONT)
    telling.join(20)
    f = s.wait(lambda f: f["role"] == "ended")
    if f["verdicts"] != {"diverged": 1} or f["rewind"]["rewinds"]:
        fail(json.dumps(f, indent=1))
    if f["why"] != "diverged, not tried again: the ring had no room for its image":
        fail(f["why"])
    if subprocess.run([MVE, "report", s.name], capture_output=True).returncode:
        fail("no report")
    s.end()


def held(threads):
    s = Session("held", threads, 50, ring="1M",
                more=("--when-full", "block", "--verdict-ms", "4000"))
    for _ in range(49):
        s.line()
    s.wait(lambda f: has_read(f) and f["rewind"]["image"])
    over = threading.Event()
    telling = telling_lines(s, over)
    f = s.wait(lambda f: f["role"] == "ended", 60)
    over.set()
    telling.join(20)
    if f["verdicts"] != {"diverged": 1} or f"tried {TIMES} times" not in f["why"]:
        fail(json.dumps(f, indent=1))
    s.end()


def shared(threads):
    once(threads, True)


def locks(threads):
    came_back(threads, value=2, place="a lock").end()


def turns(threads):
    s = came_back(threads, more=("--one-at-a-time",))
    stood = [w for w in s.follower()["waits"] if w["kind"] in ("again", "apart")]
    if len(stood) != 2 or any(w["longest_us"] for w in stood):
        fail(stood)
    s.end()


def forked(threads):
    once(threads, forks=True)


def standins(pid):
    """Stand-ins of a process' children: of whom, by who they are."""
    for child in subprocess.run(["pgrep", "-P", str(pid), "-x", "mve-stand-in"],
                                capture_output=True, text=True).stdout.split():
        with open(f"/proc/{child}/fdinfo/0") as f:
            yield int(dict(line.split(":", 1) for line in f)["Pid"]), int(child)


def hears(s, workers, ended, what):
    """One of the stand-ins ends, and at the next line the server says of whom it has heard."""
    end = time.monotonic() + 20
    while not (over := [w for w in workers if has_ended(workers[w])]):
        if time.monotonic() > end:
            fail(f"{workers}: none has ended")
        time.sleep(0.01)
    if len(over) > 1 or ended not in (None, over[0]):
        fail(f"{over} have ended, not {ended}")
    del workers[over[0]]
    s.mve.stdin.write("\n")
    s.lines += 1
    said = s.mve.stdout.readline()
    if not said.startswith("worker ") or not said.endswith(f": {what}\n"):
        fail(f"it says {said!r}, not {what!r}")
    if not s.mve.stdout.readline().startswith(f"line {s.lines} by "):
        fail("it does not go on")
    return said


def has_ended(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().split(") ")[1][0] == "Z"
    except OSError:
        return True


def forks_lead(threads):
    """It leads behind two ways back in a row, and hears of the ends of its children."""
    s = came_back(threads, forks=True)
    went_back_again(s)
    p = subprocess.run([MVE, "promote", s.name, "f1"], capture_output=True, text=True)
    if p.returncode:
        fail(f"no promotion: {p.stderr}\n{s.said()}")
    f = s.wait(lambda f: f["role"] == "leader")
    for _ in range(2 * threads):
        s.line()
    workers = dict(standins(f["pid"]))
    if len(workers) != threads:
        fail(f"{workers} stand in for {threads}")
    s.began |= set(workers) | set(workers.values())
    killed = min(workers)
    os.kill(killed, signal.SIGTERM)
    hears(s, workers, killed, "signal 15")
    s.mve.stdin.write("x")
    s.mve.stdin.flush()
    hears(s, workers, None, "status 7")
    s.end()


def children(pid):
    out = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True)
    return list(map(int, out.stdout.split()))


def collected(threads):
    """Of the images that its processes were the parents of no more are left than two each."""
    s = Session("collected", threads, forks=True, ring="1M")
    while (f := s.wait(has_read))["rewind"]["images"] < IMAGES:
        for _ in range(100):
            s.line()
    workers = [w for w in children(f["pid"]) if not has_ended(w)]
    if f["rewind"]["processes"] != threads + 1 or len(workers) < threads:
        fail(f"{workers}: {f['rewind']}")
    for worker in workers:
        dead = [p for p in children(worker) if has_ended(p)]
        if len(dead) > 2:
            fail(f"{worker} has not collected {dead}")
    s.end()


def crash(threads):
    once(threads, value=3, place="SIGSEGV")


def begun(threads, what):
    s = Session(what, threads)
    for _ in range(20):
        s.line()
    return s, s.wait(lambda f: has_read(f) and f["rewind"]["image"])


def image_gone(threads):
    """Its image is killed; at the next it differs already: a divergence, and the server goes on."""
    s, f = begun(threads, "image-gone")
    os.kill(f["rewind"]["image"], signal.SIGKILL)
    s.poke(f["pid"])
    for _ in range(20):
        s.line()
    f = s.wait(lambda f: f["role"] == "ended")
    if f["verdicts"] != {"diverged": 1} or f["rewind"]["rewinds"] not in (0, TIMES - 1):
        fail(json.dumps(f, indent=1))
    s.end()


def again(threads):
    """Its image is killed in a quiet server: it has another soon, and goes back to that."""
    s, f = begun(threads, "again")
    dead = f["rewind"]["image"]
    os.kill(dead, signal.SIGKILL)
    f = s.wait(lambda f: f["rewind"]["image"] not in (0, dead))
    s.poke(f["pid"])
    for _ in range(20):
        s.line()
    s.wait(lambda f: f["rewind"]["rewinds"] >= 1 and has_read(f) and f["role"] == "follower")
    s.end()


def image_stopped(threads):
    """It does not go on when it is woken: the follower is given up, and nothing is left."""
    s, f = begun(threads, "image-stopped")
    os.kill(f["rewind"]["image"], signal.SIGSTOP)
    s.poke(f["pid"])
    for _ in range(20):
        s.line()
    f = s.wait(lambda f: f["role"] == "ended")
    if "its image did not go on" not in f["why"]:
        fail(f["why"])
    s.end()


def killed(threads):
    """The follower is killed at any moment around its way back: so is all that is its own."""
    for ms in 0, 205, 210, 215, 220, 240:
        s, f = begun(threads, "killed")
        s.poke(f["pid"])
        for _ in range(20):
            s.line()
        time.sleep(ms / 1000)
        f = s.follower()
        for pid in f["pid"], f["rewind"]["image"]:
            if pid:
                kill(pid)
        s.wait(lambda f: f["role"] == "ended")
        s.line()
        s.end()


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


CASES = {"once": once, "locks": locks, "turns": turns, "shared": shared, "always": always,
         "unkept": unkept, "held": held, "forked": forked,
         "forks_lead": forks_lead, "collected": collected, "crash": crash,
         "again": again, "image_gone": image_gone, "image_stopped": image_stopped, "killed": killed}


def main():
    global FOLLOWER
    FOLLOWER = sys.argv[1]
    for case in sys.argv[3:]:
        CASES[case](int(sys.argv[2]))
    print("rewind: ok")


main()
