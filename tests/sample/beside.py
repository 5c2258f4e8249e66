"""mve follow beside followers that live: they and the newcomer follow on, none differs,
and the leader loses no request."""
import os
import signal
import subprocess
import sys
import threading
import time

from session import MVE, NAME, Session, httpd, must, nginx, within

SERVER, JOINS = sys.argv[1], int(sys.argv[2])


class Load(threading.Thread):
    """Connections that stay open for a while, beside others for one request."""

    def __init__(self, session):
        super().__init__(daemon=True)
        self.session, self.over, self.wrong, self.done = session, False, None, 0
        self.goes = threading.Event()
        self.goes.set()

    def run(self):
        try:
            kept = [self.session.connect() for _ in range(3)]
            while not self.over:
                for client in kept:
                    self.goes.wait()
                    client.get()
                    self.session.get()
                    self.done += 2
                kept.pop(0).close()
                kept.append(self.session.connect())
            for client in kept:
                client.close()
        except BaseException as wrong:  # told by the main thread
            self.wrong = repr(wrong)


def follow(session, name):
    asked = subprocess.run([MVE, "follow", NAME, "--name", name, "--", *session.server],
                           capture_output=True, timeout=100, text=True)
    must(asked.returncode == 0, name, "does not join:", asked.stdout, asked.stderr)
    must(within(300, lambda: session.version(name)["role"] == "follower"), name,
         "is ready and does not join:", asked.stdout, session.version(name))


def all_follow(session, load, names):
    """Each is told of more, and nothing is said of any.  What followers can keep up with is
    the machine's affair: the load pauses until they have read all."""
    before = {name: session.version(name)["requests"] for name in names}
    for name in names:
        must(within(120, lambda: session.version(name)["requests"] > before[name] + 20), name,
             "is told of no more:", session.version(name))
    load.goes.clear()
    for name in names:
        must(within(300, lambda: session.version(name)["lag_cells"] < 200), name, "stands still:",
             session.version(name))
        session.steady(name, lag=200)
    load.goes.set()


def main():
    session = Session("-f", "same", "--stateless", "--mark", "epoll_wait",
                      command={"httpd": httpd, "nginx": nginx}[SERVER])
    session.get()
    load = Load(session)
    load.start()
    time.sleep(2)  # its start is over
    for i in range(JOINS):
        one, two = f"one{i}", f"two{i}"
        follow(session, one)
        all_follow(session, load, ["f1", one])
        follow(session, two)
        all_follow(session, load, ["f1", one, two])
        subprocess.run([MVE, "drop", NAME, one], check=True, timeout=20)
        os.kill(session.version(two)["pid"], signal.SIGKILL)
        must(within(10, lambda: session.version(two)["role"] == "ended"), session.version(two))
        all_follow(session, load, ["f1"])
    promoted = subprocess.run([MVE, "promote", NAME, "f1"], capture_output=True, timeout=100,
                              text=True)
    must(promoted.returncode == 1 and "all connections" in promoted.stderr, promoted.stderr)
    load.over = True
    load.join(60)
    must(not load.wrong, "a request was lost:", load.wrong)
    session.stop()
    print(f"beside_{SERVER}: ok")


main()
