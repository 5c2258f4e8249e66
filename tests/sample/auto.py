"""--sample auto: a follower that stands still for a while is not waited for and misses
connections; --again: one that is dropped, since connections that it follows go on,
comes back."""
import os
import signal
import subprocess
import threading
import time

from session import MVE, NAME, Session, must, within


class Asks(threading.Thread):
    """Asks until it is told to end; over one connection each, or over one for all."""

    def __init__(self, session, kept):
        super().__init__(daemon=True)
        self.session, self.kept, self.over, self.done, self.wrong = session, kept, False, 0, None
        self.slowest = 0

    def run(self):
        try:
            client = self.session.connect() if self.kept else None
            while not self.over:
                began = time.monotonic()
                client.get() if client else self.session.get()
                self.slowest = max(self.slowest, time.monotonic() - began)
                self.done += 1
        except BaseException as wrong:  # told by the main thread
            self.wrong = repr(wrong)

    def end(self):
        self.over = True
        self.join(20)
        must(not self.wrong, "a request was lost:", self.wrong)


def counts(session):
    s = session.status()["sample"]
    return s["connections"], s["connections_followed"]


def stopped(session, pid, until):
    """The follower stands still until so many connections have come."""
    os.kill(pid, signal.SIGSTOP)
    reached = within(60, lambda: until(counts(session)))
    os.kill(pid, signal.SIGCONT)
    must(reached, "nothing more comes", counts(session))


def auto():
    session = Session("-f", "same", "--stateless", "--sample", "auto", "--ring", "1M")
    asks = Asks(session, kept=False)
    asks.start()
    must(within(20, lambda: asks.done > 100), asks.wrong)
    all_before, told_before = counts(session)
    stopped(session, session.version("f1")["pid"], lambda now: now[0] > all_before + 2000)
    all_after, told_after = counts(session)
    must(told_after - told_before < (all_after - all_before) * 0.9, "it was told of",
         told_after - told_before, "of", all_after - all_before)
    must(within(20, lambda: counts(session)[1] > told_after + 20), "it is told of none any more")
    asks.end()
    session.steady("f1")
    must(not session.status()["ring"]["waits"], "the leader has waited")
    session.stop()


def from_start():
    """What comes while the first connection is open is kept from all, for the sake of the
    start that is recorded; then a follower that is there from the start knows all."""
    session = Session("-f", "same", "--stateless", "--mark", "epoll_wait")
    first, second = session.connect(), session.connect()
    for _ in range(3):
        first.get()
        second.get()
    first.close()
    time.sleep(1)
    third = session.connect()
    for _ in range(3):
        second.get()
        third.get()
    session.steady("f1")
    all_, told = counts(session)
    must(within(30, lambda: told in (all_ - 1, all_)), "not all are followed:", all_, told)
    second.close()
    third.close()
    session.stop()


def again():
    session = Session("--stateless", "--mark", "epoll_wait", "--sample", "auto", "--ring", "1M",
                      "--when-full", "drop")
    session.get()
    asked = within(20, lambda: follow(session))
    must(asked, "it cannot follow")
    must(within(20, lambda: session.get() or session.version("one")["role"] == "follower"),
         "it does not join", session.version("one"))
    asks = Asks(session, kept=True)
    asks.start()
    # The connection that is kept is told, and fills the ring.
    pid = session.version("one")["pid"]
    os.kill(pid, signal.SIGSTOP)
    must(within(30, lambda: session.version("one")["pid"] != pid), "it does not come again:",
         session.version("one"), asks.wrong, asks.done)
    must(within(30, lambda: session.version("one")["role"] == "follower"), session.version("one"))
    done = counts(session)[1]
    must(within(10, lambda: session.get() or counts(session)[1] > done), "it follows nothing")
    asks.end()
    session.steady("one")
    # By the user's word it is gone for good.
    subprocess.run([MVE, "drop", NAME, "one"], check=True, timeout=20)
    time.sleep(2)
    must(session.version("one")["role"] == "ended", session.version("one"))
    session.stop()


def follow(session):
    asked = subprocess.run([MVE, "follow", NAME, "--name", "one", "--again", "--",
                            *session.server], capture_output=True, timeout=100, text=True)
    return asked.returncode == 0


auto()
from_start()
again()
print("auto: ok")
