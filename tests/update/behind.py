#!/usr/bin/env python3
"""A twin of a server that was begun alone, and stands: once it is a whole ring behind it is
dropped, and said to be.  It does not stay, and is not promoted with what it has not read."""
import os
import signal
import tempfile

import load
import served
import stages


def main():
    with tempfile.TemporaryDirectory() as work:
        old = served.build(f"{stages.KV}/v1.c", f"{work}/v1.so")
        with stages.Session(old, options=("--ring", "1M", "--when-full", "drop")) as s:
            s.mve("follow")
            twin = next(v for v in s.status()["versions"] if v["role"] == "follower")
            os.kill(twin["pid"], signal.SIGSTOP)
            load.until(lambda: all(v["role"] != "follower" for v in s.status()["versions"]),
                       s.status)
            why = s.status()["losses"][-1]["why"]
            assert "a whole ring behind" in why, why
            s.serves()
            s.done()
    print("twin_behind: ok")


main()
