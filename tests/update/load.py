"""Clients of the threaded kv that go on asking while something happens to it."""
import itertools
import os
import threading
import time

import served

# A client rests for as long as so many of its requests took: who follows can keep up on any
# machine, however busy.
RESTS, REST_LEAST_S, REST_MOST_S = 20, 0.001, 0.1
_count = itertools.count()


def rest(took_s):
    time.sleep(min(max(RESTS * took_s, REST_LEAST_S), REST_MOST_S))


def unique():
    """For names of sessions."""
    return f"{os.getpid()}-{next(_count)}"


def until(is_so, why):
    end = time.monotonic() + served.HANGS_S
    while not is_so():
        assert time.monotonic() < end, why()
        time.sleep(0.02)


class Load(threading.Thread):
    """PUT and GET in turn, numbered, until it is told to stop."""

    def __init__(self, server, number):
        super().__init__(daemon=True)
        self.client, self.number, self.done, self.wrong = server.client(), number, 0, None
        self.stopping = threading.Event()

    def run(self):
        try:
            while not self.stopping.is_set():
                key, value = f"load-{self.number}-{self.done % 50}", f"value {self.done}"
                begun = time.monotonic()
                self.client.expect(f"PUT {key} {value}", "OK")
                self.client.expect(f"GET {key}", f"VALUE {value}")
                self.done += 1
                rest(time.monotonic() - begun)
        except (AssertionError, OSError) as wrong:
            self.wrong = wrong

    def goes_on(self, done):
        end = time.monotonic() + served.HANGS_S
        while self.done <= done and not self.wrong and time.monotonic() < end:
            time.sleep(0.001)
        assert self.done > done, f"client {self.number} stands still: {self.wrong}"

    def stop(self):
        self.stopping.set()
        self.join(served.HANGS_S)
        assert not self.is_alive() and not self.wrong, f"client {self.number}: {self.wrong}"
