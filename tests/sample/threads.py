"""Servers with threads, and an AddressSanitizer build that comes late, finds something,
and comes again; where it cannot see what the threads do it says so and ends.

threads.py [JOINS]: so often, for each of the ways of threads.c."""
import os
import subprocess
import sys
import threading
import time

from session import MVE, NAME, ROOT, Session, must, within

JOINS = int(sys.argv[1]) if sys.argv[1:] else 2
FLAGS = ["-g", "-O1", "-fno-omit-frame-pointer", "-pthread"]


class Load(threading.Thread):
    """Short connections, each reply checked."""

    def __init__(self, session):
        super().__init__(daemon=True)
        self.session, self.over, self.wrong, self.done = session, False, None, 0

    def run(self):
        try:
            while not self.over:
                ask(self.session, f"load {self.done}", f"again {self.done}")
                self.done += 1
                time.sleep(0.003)  # a follower with a thread for each is to keep up
        except (OSError, AssertionError) as wrong:  # told by the main thread
            self.wrong = repr(wrong)


def ask(session, *lines):
    client = session.connect()
    for line in lines:
        client.socket.sendall(line.encode())
        got = client.socket.recv(200)
        assert got == line.encode(), (line, got)
    client.close()


def build():
    for out, more in ("server", []), ("server-asan", ["-fsanitize=address"]):
        subprocess.run(["gcc", *FLAGS, *more, f"{ROOT}/tests/sample/threads.c", "-o", out],
                       check=True)


def follow(name, command):
    return subprocess.run([MVE, "follow", NAME, "--name", name, "--", *command],
                          capture_output=True, timeout=100, text=True)


def ended(session, name):
    v = session.version(name)
    return v["role"] == "ended" and v


def joined(session, name, command):
    asked = follow(name, command)
    must(asked.returncode == 0, name, asked.stdout, asked.stderr)
    must(within(20, lambda: session.version(name)["requests"] > 20), name, "hears of nothing:",
         session.version(name))
    must(session.version(name)["role"] == "follower", name, session.version(name))

    def found():
        """A thread that has not passed a mark since has connections that are kept."""
        ask(session, "hello", "stale", "on")
        time.sleep(0.1)
        return ended(session, name)
    must(within(20, found), name, "finds nothing:", session.version(name))
    v = session.version(name)
    must(v["verdicts"] == {"found": 1}, name, v)
    shown = subprocess.run([MVE, "report", NAME], capture_output=True, timeout=20, text=True)
    must("heap-use-after-free in stale at threads.c" in shown.stdout and
         "hellostale" in shown.stdout, shown.stdout)


def refused(session, name, command):
    """A connection goes to a thread that nobody can follow: it must not seem checked."""
    follow(name, command)
    v = within(20, lambda: ended(session, name))
    must(v and "passed no --mark" in v["why"], name, session.version(name))


def taken(session, name, command):
    """A thread of the start ends, which a newcomer has for good; its lane is another's next."""
    ask(session, "done")
    follow(name, command)
    v = within(20, lambda: ended(session, name))
    must(v and v["verdicts"] == {"unsupported": 1}, name, session.version(name))


def served(way, mark, then):
    session = Session("--stateless", "--mark", mark,
                      command=lambda port: [os.path.abspath("server"), way, str(port)])
    ask(session, "first")
    load = Load(session)
    load.start()
    _, *words = session.server
    command = [os.path.abspath("server-asan"), *words]
    must(within(10, lambda: "start is not over" not in follow("none", ["/bin/false"]).stderr),
         way, "the start is never over")
    must(within(10, lambda: not session.version("none") or ended(session, "none")), "none")
    for i in range(JOINS):
        then(session, f"late{i}", command)
        must(not load.wrong, way, "a request was lost:", load.wrong)
    load.over = True
    load.join(20)
    must(not load.wrong, way, "a request was lost:", load.wrong)
    session.stop()


def main():
    build()
    served("each", "accept", joined)
    served("loops", "epoll_wait", joined)
    served("pool", "accept", refused)
    served("helped", "accept", taken)
    print("threads: ok")


main()
