"""A session of mve that is looked at while it runs: leader, followers, lag."""

import json
import os
import subprocess
import time

from . import processes

CATCH_UP_S = 20


class Session:
    def __init__(self, mve, words):
        self.mve = mve
        self.name = words[words.index("-n") + 1]
        self.looks = 0

    def status(self):
        self.looks += 1
        run = subprocess.run([self.mve, "status", self.name, "--json"],
                             capture_output=True, text=True, check=False)
        if run.returncode:
            raise processes.Failed(" ".join(run.stderr.split()) or
                                   "mve status fails")
        status = json.loads(run.stdout)
        if "versions" not in status:
            raise processes.Failed(f"mve status: {status}")
        return status

    def versions(self, followers):
        """The rows of leader and followers; Failed when one is missing."""
        rows = self.status()["versions"]
        for row in rows:
            if row["role"] == "ended":
                raise processes.Failed(
                    f"{row['name']} has ended: {row['why']}")
        if len(rows) != followers + 1:
            raise processes.Failed(f"{len(rows) - 1} followers")
        return rows

    def wait(self, followers, near=0, seconds=CATCH_UP_S):
        """Until every follower runs and has read everything.

        near: cells that may be left: a thread that sleeps in both versions
        reads on when its own sleep is over.
        """
        end = time.monotonic() + seconds
        while True:
            rows = self.versions(followers)
            behind = sum(row["lag_cells"] for row in rows)
            if behind <= near and rows[0]["role"] in ("leader", "solo") and \
                    all(row["role"] == "follower" for row in rows[1:]):
                return rows
            if time.monotonic() > end:
                raise processes.Failed(
                    f"followers {behind} cells behind after {seconds} s")
            time.sleep(0.001)


def tree(pid):
    """A process and what it started."""
    return [pid, *processes.descendants(pid)]


def threads(pid):
    try:
        return [int(t) for t in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def move(pids, cpu):
    """All threads of these processes to one CPU."""
    for pid in pids:
        for tid in threads(pid):
            try:
                os.sched_setaffinity(tid, {cpu})
            except OSError:
                pass


def stand_back(pids):
    """A small share of their CPU for all threads of these processes, beside ours."""
    nice = min(os.nice(0) + 10, 19)
    for pid in pids:
        for tid in threads(pid):
            try:
                os.setpriority(os.PRIO_PROCESS, tid, nice)
            except OSError:
                pass


def cpu_ns(pids):
    return sum(map(processes.cpu_ns, pids))
