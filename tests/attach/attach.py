#!/usr/bin/env python3
"""attach.py SERVER [OPTION...]: mve comes to a server that serves.  No request is lost, doubled
or wrong; from then on its calls are counted, as good as none of them trapped, and status knows
all of its processes."""
import sys

from server import Server, Wrong, family

REPLIES = 300       # several of them by one call, where requests come together
TRAPPED = 0.05      # of the calls: those that threads were in when mve came


def main():
    server = Server(sys.argv[1], *sys.argv[2:])
    try:
        load = server.load(pause=0.001)
        load.more(REPLIES)
        before = family(server.pid)
        print(server.attach().strip(), file=sys.stderr)
        load.more(REPLIES)
        status = server.status()
        if [p["times"] for p in status["pauses"] if p["kind"] == "attach"] != [1]:
            raise Wrong(f"pauses: {status['pauses']}")
        patched, trapped = status["calls"]["patch"], status["calls"]["trap"]
        held = {image["pid"] for image in status["images"]}
        if not set(before) <= held:
            raise Wrong(f"not all of {before} are held: {held}")
        if patched < REPLIES // 8 or trapped > patched * TRAPPED:
            raise Wrong(f"{patched} calls patched, {trapped} trapped")
        if not all(image["sealed"] for image in status["images"]):
            raise Wrong(f"not sealed: {status['images']}")
        load.more(REPLIES)
        replies = load.stop()
        server.stop()
    except Wrong as e:
        raise SystemExit(f"{e}\n{server.log()}")
    finally:
        server.clean()
    print(f"{replies} replies", file=sys.stderr)
    print("attach: ok")


main()
