"""steady.py FILE FOLLOWERS [DISTANCE [BEHIND]]: is the session of this status one leader
and so many followers that keep up?  A follower of another release may wait for what
its leader does next: it is up to BEHIND cells behind.  steady.py FILE pids: its
versions' pids."""
import json
import sys


def main():
    with open(sys.argv[1]) as file:
        versions = json.load(file)["versions"]
    if sys.argv[2] == "pids":
        print(*(v["pid"] for v in versions))
        return None
    leader, *rest = versions
    distance = int(sys.argv[3]) if len(sys.argv) > 3 else 100
    behind = int(sys.argv[4]) if sys.argv[4:] and sys.argv[4] else 0
    if len(rest) != int(sys.argv[2]):
        return f"{len(rest)} followers"
    for v in rest:
        name = v["name"]
        if v["role"] != "follower" or not v["alive"] or v["why"]:
            return f"{name} is {v['role']}: {v['why']}"
        if v["verdicts"]:
            return f"{name}: {v['verdicts']}"
        if v["lag_cells"] > behind:
            return f"{name} is {v['lag_cells']} cells behind"
        # It may make more: threads sleep for each other as often as they must.  Releases
        # differ in how often they look: Redis 8 makes 6 % more calls than 7.
        share = 5 if behind else 20
        if leader["calls"] - v["calls"] > max(distance, leader["calls"] // share):
            return f"{name} made {v['calls']} calls, the leader {leader['calls']}"
    print(leader["calls"], "calls led,", ", ".join(str(v["calls"]) for v in rest), "followed")
    return None


sys.exit(main())
