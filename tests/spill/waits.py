"""What tests of the spiller share: the session, its end with a word, and waiting for something."""
import os
import socket
import sys
import time

MVE, NAME, ROOT = (os.environ[k] for k in ("MVE", "MVE_SESSION", "ROOT"))
sys.path.append(ROOT + "/tests/servers")
from free_port import free_port     # noqa: E402

LONG = 120      # seconds: what is not done by then will never be


def fail(why):
    print(f"FAILED: {why}")
    if os.path.exists("server.log"):
        with open("server.log", errors="replace") as log:
            print(log.read()[-3000:])
    sys.exit(1)


def waited(what, why):
    end = time.monotonic() + LONG
    while not (value := what()):
        if time.monotonic() > end:
            fail(f"not in {LONG} s: {why}")
        time.sleep(0.05)
    return value


def connect(port):
    """A connection, or None: nobody listens yet."""
    try:
        return socket.create_connection(("127.0.0.1", port))
    except OSError:
        return None
