"""Real servers that are updated while numbered requests go on: what their tests share.

A server is Debian's source with a patch of ours (servers/update/); a *round* is one update of it,
which is promoted and committed, or aborted at one of its stages.  Clients ask across all of it,
each on one connection: no reply is missing or wrong, none is closed.
"""
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

import load
import served

MVE = f"{served.BIN}/mve"
# Where a round ends: most go all the way.
ENDS = ("commit", "updating", "commit", "old leads", "commit", "new leads", "commit", "auto",
        "stopping")
# Ends before the new version follows: nobody waits for the update.
EARLY = ("stopping", "updating")


def built(server, version):
    done = subprocess.run([f"{served.ROOT}/servers/update/build", server, version],
                          stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout.strip()


def until_listens(port, process):
    end = time.monotonic() + served.HANGS_S
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"nobody listens: {process.poll()}")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """One build at work, by mve-driver: natively, or in a session."""

    def __init__(self, build, words, in_session):
        self.folder = tempfile.mkdtemp(prefix="mve-real-")
        self.port = free_port()
        self.name = f"real-{load.unique()}" if in_session else None
        self.copies = itertools.count()
        before = [MVE, "run", "-n", self.name, "--when-full", "block", "--"] if in_session else []
        self.log = open(f"{self.folder}/log", "w+")
        self.process = subprocess.Popen(
            [*before, f"{served.BIN}/mve-driver", self.named(build), *words(self.port)],
            cwd=self.folder, stdout=self.log, stderr=subprocess.STDOUT)

    def __enter__(self):
        until_listens(self.port, self.process)
        return self

    def __exit__(self, *what):
        ended = self.process.poll()
        if what[0] and self.name:
            print(self.mve("report", ok=False)[1])
            print(self.mve("status", ok=False)[1])
        self.process.terminate()
        try:
            self.process.wait(served.HANGS_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
        if what[0]:
            self.log.seek(0)
            print(f"the server: status {ended}\n{self.log.read()[-6000:]}")
        self.log.close()
        shutil.rmtree(self.folder)

    def named(self, build):
        """Each build that is loaded needs a name of its own."""
        path = f"{self.folder}/build-{next(self.copies)}.so"
        shutil.copyfile(build, path)
        return path

    def mve(self, verb, *words, ok=True):
        return served.run(MVE, verb, self.name, *words, ok=ok)

    def status(self):
        return json.loads(self.mve("status", "--json")[1])

    def until(self, stage):
        def is_there():
            now = self.status()["update"]
            assert now["stage"] in (stage, was["stage"]) or stage != "new leads", now
            return now["stage"] == stage
        was = self.status()["update"]
        load.until(is_there, lambda: f"not '{stage}': {self.status()['update']}")


class Load(threading.Thread):
    """A client that asks until it is told to stop; step() is a server's own."""

    def __init__(self, client, number):
        super().__init__(daemon=True)
        self.client, self.number, self.done, self.wrong = client, number, 0, None
        self.longest, self.stopping = 0.0, threading.Event()

    def step(self, n):
        raise NotImplementedError

    def run(self):
        try:
            while not self.stopping.is_set():
                begun = time.monotonic()
                self.step(self.done)
                took = time.monotonic() - begun
                self.longest = max(self.longest, took)
                self.done += 1
                load.rest(took)
        except (AssertionError, OSError, EOFError) as wrong:
            self.wrong = wrong

    def goes_on(self):
        done, end = self.done, time.monotonic() + served.HANGS_S
        while self.done <= done + 1 and not self.wrong and time.monotonic() < end:
            time.sleep(0.001)
        assert self.done > done + 1, f"client {self.number} stands still: {self.wrong}"

    def stop(self):
        self.stopping.set()
        self.join(served.HANGS_S)
        assert not self.is_alive() and not self.wrong, f"client {self.number}: {self.wrong}"


def serves(loads):
    for one in loads:
        one.goes_on()


def update(server, build, loads, end, words):
    """One round; true: the new build is what runs behind it."""
    to = server.named(build)
    more = ("--no-wait",) if end in EARLY else ("--auto=1",) if end == "auto" else ()
    server.mve("update", "--to", to, *words, "--retry", "8/200", *more)
    if end == "auto":
        load.until(lambda: server.status()["update"]["stage"] == "alone", server.status)
        assert server.status()["update"]["build"] == to, server.status()["update"]
        serves(loads)
        return True
    if end == "updating":   # or what it has come to meanwhile
        load.until(lambda: server.status()["update"]["stage"] != "stopping", server.status)
    if end != "stopping":
        serves(loads)
    if end in ("commit", "new leads"):
        server.mve("promote")
        server.until("new leads")
        serves(loads)
    server.mve("commit" if end == "commit" else "abort")
    load.until(lambda: server.status()["update"]["stage"] == "alone", server.status)
    runs = server.status()["update"]["build"]
    assert (runs == to) == (end == "commit"), (end, server.status()["update"])
    serves(loads)
    return end == "commit"


def rounds(server, builds, loads, times, words=lambda new: ("--code",)):
    """From one build to the other and back; which of the two runs in the end."""
    runs = 0
    for i in range(times):
        end = ENDS[i % len(ENDS)]
        if update(server, builds[1 - runs], loads, end, words(1 - runs)):
            runs = 1 - runs
        print(f"round {i}: {end}, {[one.done for one in loads]} requests, longest "
              f"{max(one.longest for one in loads) * 1000:.0f} ms", flush=True)
        for one in loads:
            one.longest = 0.0
    return runs
