#!/usr/bin/env python3
"""again.py SERVER ROUNDS [OPTION...]: mve comes to a server that serves, and leaves it, again and
again.  No request is lost, doubled or wrong; and when mve has left, the server's code is that of
its files, byte for byte, its signals' actions and masks are those that it had, and nothing more is
mapped than there was."""
import sys

from left import is_left, signals
from server import WAIT_S, Server, Wrong, family, wait_for

REPLIES = 150


def detach(server):
    wait_for(server.left, "it is left", 60)
    if server.mve.wait(WAIT_S):
        raise Wrong(f"mve attach ended with {server.mve.returncode}: {server.mve.stdout.read()}")
    return server.mve.stdout.read()


def main():
    kind, rounds, more = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    server = Server(kind, *more)
    worst = [0.0, 0.0]
    try:
        load = server.load(pause=0.001)
        load.more(REPLIES)
        for _ in range(rounds):
            before = {pid: signals(pid) for pid in family(server.pid)}
            worst[0] = max(worst[0], server.stood_ms(server.attach()))
            load.more(REPLIES)
            words = detach(server)
            if "cannot" in words:
                raise Wrong(words)
            worst[1] = max(worst[1], server.stood_ms(words))
            for pid in before:
                is_left(pid, before[pid])
            load.more(REPLIES)
            server.check()
        replies = load.stop()
        server.mve = None
        server.stop()
    except Wrong as e:
        raise SystemExit(f"{e}\n{server.log()}")
    finally:
        server.clean()
    print(f"{replies} replies, stood at most {worst[0]} ms to come, {worst[1]} ms to leave",
          file=sys.stderr)
    print("again: ok")


main()
