"""free_port.py: prints a port of 127.0.0.1 that is free now, and that nobody else takes before
the server does: no client, for it is outside the range that the kernel gives to those (one that
tries a port of that range may come to be connected with itself, too), and no other test, for
each is given the next one."""
import fcntl
import os
import socket

FIRST, LAST = 10000, 32000


def ports():
    """(first, behind): below what the kernel gives to clients, where that leaves room."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as words:
        low = int(words.read().split()[0])
    return FIRST, max(min(LAST, low), FIRST + 1000)


def next_number():
    """One more each time, for all tests of this user."""
    path = f"/tmp/mve-test-ports-{os.geteuid()}"
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        words = os.read(file, 20)
        number = int(words) if words.strip().isdigit() else os.getpid()
        os.pwrite(file, b"%20d" % (number + 1), 0)
        return number
    finally:
        os.close(file)


def is_free(port, kind):
    with socket.socket(socket.AF_INET, kind) as s:
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port(kind=socket.SOCK_STREAM):
    first, behind = ports()
    while True:
        port = first + next_number() % (behind - first)
        if is_free(port, kind):
            return port


if __name__ == "__main__":
    print(free_port())
