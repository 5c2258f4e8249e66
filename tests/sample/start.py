"""A server is followed late whose monitor was held up while its start ended under load:
what was told before the first connection has ended is kept all the same."""
import os
import signal
import subprocess
import sys
import time

from session import MVE, NAME, Session, httpd, must, nginx, within

SERVER, REQUESTS = sys.argv[1], 400


class Quiet(Session):
    """Nobody has connected when it is ready."""

    def listens(self):
        with open("/proc/net/tcp", encoding="ascii") as table:
            return any(f":{self.port:04X} " in line and " 0A " in line for line in table)


def follow(session, name):
    asked = subprocess.run([MVE, "follow", NAME, "--name", name, "--", *session.server],
                           capture_output=True, timeout=100, text=True)
    must(asked.returncode == 0, name, "does not join:", asked.stdout, asked.stderr)


def told(session, name):
    """It follows, if connections come."""
    session.get()
    return session.version(name)["requests"] > 20


def main():
    session = Quiet("-f", "same", "--stateless", "--mark", "epoll_wait",
                    command={"httpd": httpd, "nginx": nginx}[SERVER])
    time.sleep(0.3)  # what it does at its start has been seen
    os.kill(session.mve.pid, signal.SIGSTOP)
    for _ in range(REQUESTS):
        session.get()
    os.kill(session.mve.pid, signal.SIGCONT)
    follow(session, "late")
    must(within(20, lambda: told(session, "late")), session.version("late"))
    for name in ("f1", "late"):
        session.steady(name, lag=2000)
    session.stop()
    print(f"start_{SERVER}: ok")


main()
