"""The ways of holding a program that are laid side by side.

A way is a list of words put before a command, or a reason why it cannot be
had here.  mve is tried once before it is measured, so that a build that does
not work is one clear word and not a table of nonsense.
"""

import os

from . import processes


class Ways:
    def __init__(self, build, folder):
        self.build = build
        self.folder = folder
        self.mve = os.path.join(build, "mve")
        self.strace = processes.which("strace")
        self._serial = 0
        self._tried = {}

    def program(self, name):
        return os.path.join(self.build, "perf", name)

    def _session(self):
        self._serial += 1
        return f"bench-{os.getpid()}-{self._serial}"

    def mve_run(self, tier=None):
        tier = [f"--tier={tier}"] if tier else []
        return [self.mve, "run", *tier, "-n", self._session(), "--"]

    def mve_led(self, followers, *options, same="same"):
        """A leader with so many followers; "-n NAME" is among the words."""
        follow = ["-f", same] * followers
        return [self.mve, "run", "-n", self._session(), *options, *follow,
                "--"]

    def mve_attach(self, pid):
        return [self.mve, "attach", "-n", self._session(), str(pid)]

    def mve_trace(self):
        return [self.mve, "trace", "-o", "/dev/null", "--"]

    def strace_run(self, *options):
        return [self.strace, *options, "-o", "/dev/null"]

    def _try(self, key, words):
        if key not in self._tried:
            try:
                processes.output([*words, "/bin/true"], self.folder, 15)
                self._tried[key] = None
            except processes.Failed as e:
                self._tried[key] = str(e)
        return self._tried[key]

    def mve_missing(self, what="run", tier=None):
        """Why mve cannot be measured, or None."""
        if not os.access(self.mve, os.X_OK):
            return "skipped: build/mve missing"
        words = {"trace": self.mve_trace, "led": lambda: self.mve_led(1)}.get(
            what, lambda: self.mve_run(tier))()
        reason = self._try((what, tier), words)
        return reason and f"skipped: mve {what}: {reason}"

    def strace_missing(self):
        return None if self.strace else "skipped: strace is not installed"
