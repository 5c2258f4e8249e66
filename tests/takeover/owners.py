#!/usr/bin/env python3
"""owners.py: mutexes that name their owner to the kernel, held since before another version leads:
what becomes of them is what becomes of them natively."""
import os
import socket
import subprocess

from load import Wrong
from session import ROOT, Session, free_port, says

EXPECTED = {"end": os.strerror(130), "kill": os.strerror(130)}


def build():
    out = os.getcwd() + "/owners"
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-pthread", "-o", out,
                    ROOT + "/tests/takeover/owners.c"], check=True)
    return out


def run(*options):
    port = free_port()
    session = Session("owners", 1, options, [build(), str(port)], None, port)
    try:
        session.promote("f1")
        with socket.create_connection(("127.0.0.1", port), 20) as client:
            client.settimeout(20)
            peer = client.makefile("rw")
            for word, expected in EXPECTED.items():
                got = says(peer, word)
                if got != expected:
                    raise Wrong(f"{word}: {got!r}, not {expected!r}")
        session.stop()
    except (Wrong, OSError) as e:
        raise SystemExit(f"{options}: {e!r}\n{session.log()}")
    finally:
        session.clean()


def main():
    run()
    run("--one-at-a-time")
    print("owners: ok")


if __name__ == "__main__":
    main()
