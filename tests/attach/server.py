"""A server that runs natively, numbered requests to it, and mve attach and detach."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import shutil
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../takeover"))
from load import Load, Wrong                                                # noqa: E402
from session import MVE, free_port, listens, server_command                 # noqa: E402

WAIT_S = 120


def wait_for(what, words, seconds=WAIT_S):
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            raise Wrong(f"not in {seconds} s: {words}")
        time.sleep(0.01)


def family(pid):
    """The process and all that stem from it."""
    found = [pid]
    for at in found:
        try:
            for task in os.listdir(f"/proc/{at}/task"):
                with open(f"/proc/{at}/task/{task}/children") as f:
                    found += [int(word) for word in f.read().split()]
        except OSError:     # it has ended
            pass
    return found


class Server:
    def __init__(self, kind, *more, under=()):
        self.kind, self.port = kind, free_port()
        self.folder = tempfile.mkdtemp(prefix="mve-attach-", dir="/tmp")
        self.log_path = self.folder + "/log"
        self.name = "%s-a" % os.environ.get("MVE_SESSION", f"t-{os.getpid()}")
        self.mve = None
        command = list(under) + server_command(kind, self.port, self.folder) + list(more)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)
        wait_for(lambda: listens(self.port), "the server listens")

    @property
    def pid(self):
        return self.process.pid

    def load(self, **how):
        return Load(self.port, self.kind, **how)

    def attach(self, *options):
        """The words of mve attach; it holds the server."""
        self.mve = subprocess.Popen([MVE, "attach", "-n", self.name, *options, str(self.pid)],
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True)
        line = self.mve.stdout.readline()
        if "holds pid" not in line:
            raise Wrong(f"mve attach: {line}{self.mve.stdout.read()}")
        return line

    def stood_ms(self, line):
        return float(re.search(r"stood for ([0-9.]+) ms", line).group(1))

    def status(self):
        done = subprocess.run([MVE, "status", self.name, "--json"], capture_output=True,
                              text=True, timeout=WAIT_S)
        if done.returncode:
            raise Wrong(f"mve status: {done.stderr}")
        return json.loads(done.stdout)

    def left(self):
        """Whether mve detach leaves it: on a busy machine a thread may be in a call for longer
        than it is waited for, which is to be tried again."""
        done = subprocess.run([MVE, "detach", self.name], capture_output=True, text=True,
                              timeout=WAIT_S)
        if done.returncode and "try again" not in done.stderr:
            raise Wrong(f"mve detach: {done.returncode} {done.stdout}{done.stderr}")
        return not done.returncode

    def check(self):
        """It runs, and what it wrote is no complaint."""
        if self.process.poll() is not None:
            raise Wrong(f"the server has ended: {self.process.returncode}\n{self.log()}")

    def log(self):
        with open(self.log_path, errors="replace") as log:
            return log.read()[-3000:]

    def stop(self):
        """By SIGTERM, as its user would; mve ends with it."""
        self.check()
        self.process.terminate()
        self.process.wait(WAIT_S)
        if self.mve:
            self.mve.wait(WAIT_S)

    def clean(self):
        for process in (self.process, self.mve):
            if process and process.poll() is None:
                members = family(process.pid) if process is self.process else [process.pid]
                for pid in members:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                process.wait(WAIT_S)
        shutil.rmtree(self.folder, ignore_errors=True)
