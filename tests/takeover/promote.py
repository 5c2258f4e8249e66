#!/usr/bin/env python3
"""promote.py SERVER ROUNDS: the follower is promoted under load, the old leader
stays as its follower, and back again: no connection, no reply is lost, none
comes twice, no descriptor and no memory leaks."""
import os
import re
import sys

from load import Wrong
from session import Session, fds, rss_kib

REPLIES = 40
GROWTH_KIB = 4096   # of a version, by what allocators and stacks may take


def sizes(session):
    pids = {v["name"]: v["pid"] for v in session.versions()}
    pids["mve"] = session.mve.pid
    return {name: rss_kib(pid) for name, pid in pids.items()}


def files(session):
    """The monitor has more for moments: what it looks at, and children that look for it."""
    return {"leader": fds(session.leader()["pid"]), "mve": fds(session.mve.pid)}


def look_at_policies(session):
    """A follower's threads push nobody off a processor, a leader's are as they were made."""
    for version in session.versions():
        leads = version["name"] == session.leader()["name"]
        for tid in os.listdir(f"/proc/{version['pid']}/task"):
            policy = os.sched_getscheduler(int(tid))
            if policy != (os.SCHED_OTHER if leads else os.SCHED_BATCH):
                raise Wrong(f"{version['name']}: thread {tid} has policy {policy}")


def there_and_back(session, load):
    for name in ("f1", "v0"):
        load.more(REPLIES)
        session.promote(name, keep=True)
        load.more(REPLIES)
        session.wait_for(lambda: session.leader()["name"] == name and
                         len(session.following()) == 1, f"{name} leads")
        look_at_policies(session)


def main():
    kind, rounds = sys.argv[1], int(sys.argv[2])
    session = Session(kind)
    try:
        load = session.load(churn=0)
        there_and_back(session, load)
        memory, first = sizes(session), files(session)
        for _ in range(rounds):
            there_and_back(session, load)
        memory_end = sizes(session)
        session.wait_for(lambda: all(n <= first[who] for who, n in files(session).items()),
                         f"no descriptor leaks (first {first}, now {files(session)})")
        replies = load.stop()
        session.stop()
        log = session.log()
        if "dropped" in log:
            raise Wrong("a follower was dropped")
        if any(memory_end[v] > memory[v] + GROWTH_KIB for v in memory):
            raise Wrong(f"memory leaks: {memory} KiB, then {memory_end} KiB")
    except Wrong as e:
        raise SystemExit(f"{e}\nmve: {session.mve.poll()}\n{session.log()[-3000:]}")
    finally:
        session.clean()
    if os.environ.get("SHOW_LOG"):
        print(log)
    micros = sorted(int(n) for n in re.findall(r"running after (\d+) us", log))
    print(f"{len(micros)} promotions, {replies} replies; running again after {micros[0]} to "
          f"{micros[-1]} us, half of them {micros[len(micros) // 2]} us; slowest reply "
          f"{load.slowest * 1000:.0f} ms; KiB {memory} -> {memory_end}")
    print("promote: ok")


if __name__ == "__main__":
    main()
