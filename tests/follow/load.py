"""What the clients of tests/follow share: tasks that run at once until the time
is over, each a thread; a reply that is not the expected one ends the client."""
import socket
import sys
import threading
import time

WAIT_S = 30     # for an answer


class Wrong(Exception):
    """A reply that is not the expected one."""


class Load:
    def __init__(self, seconds):
        self.end = time.monotonic() + seconds
        self.done = 0
        self.trouble = []
        self.tasks = []
        self.lock = threading.Lock()

    def over(self):
        return time.monotonic() >= self.end or bool(self.trouble)

    def _repeat(self, make, number):
        count = 0
        try:
            step = make(self, number)
            while not self.over():
                count += step()
        except Exception as e:  # whatever it is, the load has failed
            self.trouble.append(f"{make.__name__} {number}: {type(e).__name__}: {e}"[:400])
        with self.lock:
            self.done += count

    def add(self, make, copies=1):
        """make(load, number) gives a function whose result counts requests."""
        for number in range(copies):
            self.tasks.append(threading.Thread(target=self._repeat, args=(make, number),
                                               daemon=True))

    def run(self):
        for task in self.tasks:
            task.start()
        for task in self.tasks:
            task.join(max(self.end - time.monotonic(), 0) + 60)
        if any(task.is_alive() for task in self.tasks):
            self.trouble.append("a reply does not come")
        if self.trouble:
            sys.exit("\n".join(self.trouble[:3]))
        print(self.done)


def must(got, expected, about=""):
    if got != expected:
        raise Wrong(f"{about}: {str(got)[:150]}, not {str(expected)[:150]}")
    return 1


def connect(port):
    s = socket.create_connection(("127.0.0.1", port), WAIT_S)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s
