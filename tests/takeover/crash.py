#!/usr/bin/env python3
"""crash.py SERVER ROUNDS [FOLLOWERS]: the leader dies of SIGSEGV under load,
ROUNDS times, a new session whenever no follower is left; no connection, no
reply is lost, none comes twice."""
import os
import re
import signal
import sys
import time

from load import Wrong
from session import Session, fds

REPLIES = 40    # of the load between two crashes


def crash(session, load):
    leader = session.leader()
    left = len(session.following())
    load.more(REPLIES)
    os.kill(leader["pid"], signal.SIGSEGV)
    load.more(REPLIES)
    session.wait_for(lambda: session.leader()["pid"] != leader["pid"], "another leads")
    if not session.ended(leader["pid"], 6):
        raise Wrong("the old leader does not end")
    session.wait_for(lambda: len(session.following()) == left - 1,
                     f"{left - 1} followers follow it")


def main():
    os.environ["MVE_LOG"] = "note"      # waits that were given up after seconds
    kind, rounds = sys.argv[1], int(sys.argv[2])
    followers = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    done, replies, micros, slowest = 0, 0, [], 0.0
    while done < rounds:
        # What a starved follower's full ring does is another test's.
        session = Session(kind, min(followers, rounds - done), ["--when-full", "block"])
        try:
            load = session.load()
            while load.replies < 100 and not load.error:    # its workers have begun
                time.sleep(0.01)
            files = fds(session.mve.pid)
            while done < rounds and session.following():
                crash(session, load)
                done += 1
            replies += load.stop()
            if fds(session.mve.pid) > files:
                raise Wrong(f"descriptors of mve leak: {files}, then {fds(session.mve.pid)}")
            slowest = max(slowest, load.slowest)
            session.stop()
            log = session.log()
            micros += [int(n) for n in re.findall(r"running after (\d+) us", log)]
            if "dropped" in log:
                raise Wrong(f"a follower was dropped\n{log}")
            if "mve[note]" in log:
                raise Wrong(f"a wait for order was given up\n{log}")
        except Wrong as e:
            raise SystemExit(f"crash {done + 1}: {e}\n{session.log()}")
        finally:
            session.clean()
    micros.sort()
    print(f"{done} crashes, {replies} replies; running again after {micros[0]} to {micros[-1]} us,"
          f" half of them {micros[len(micros) // 2]} us; slowest reply {slowest * 1000:.0f} ms")
    print("crash: ok")


if __name__ == "__main__":
    main()
