#!/usr/bin/env python3
"""spare.py SERVER ROUNDS: the leader dies under numbered requests, ROUNDS times, of a session
that keeps two twins.  Each time one of them leads, and a new one comes; some times a spare is
killed instead, and replaced: later each time, so not often.  No request is lost, doubled or
wrong; nothing is left."""
import os
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../takeover"))
from load import Wrong                                  # noqa: E402
from session import Session, fds                        # noqa: E402

SPARES = 2
REPLIES = 100       # between two deaths
LOST = 10           # each so many rounds a spare is killed,
LOSSES = 3          # but no more than so often


def whole(session):
    return len(session.following()) == SPARES


def masks(session):
    """What signals the leader's threads block: each thread of it has its twin's."""
    tasks = f"/proc/{session.leader()['pid']}/task"
    found = []
    for tid in os.listdir(tasks):
        with open(f"{tasks}/{tid}/status") as f:
            said = dict(line.split(":\t", 1) for line in f)
            found.append((said["Name"].strip(), said["SigBlk"].strip()))
    return sorted(found)


def masks_wait(session, first):
    try:
        session.wait_for(lambda: masks(session) == first, "each thread has its first mask")
    except Wrong as e:
        raise Wrong(f"{e}\nfirst {first}\nnow {masks(session)}") from e


def leader_dies(session):
    old = session.leader()["pid"]
    os.kill(old, signal.SIGSEGV)
    session.wait_for(lambda: session.leader()["pid"] != old, "another leads")
    if not session.ended(old, 6):
        raise Wrong("the old leader does not end")


def spare_dies(session):
    name = session.following()[0]
    pid = next(v["pid"] for v in session.versions() if v["name"] == name)
    os.kill(pid, signal.SIGKILL)
    session.wait_for(lambda: name not in session.following(), f"{name} is lost")


def main():
    kind, rounds = sys.argv[1], int(sys.argv[2])
    session = Session(kind, followers=0, options=("--spare", str(SPARES)))
    try:
        session.wait_for(lambda: whole(session), "the spares come")
        load = session.load(churn=2, pause=0.001)
        load.more(REPLIES)
        first, own = fds(session.leader()["pid"]), fds(session.mve.pid)
        with load.rest():
            blocked = masks(session)
        for n in range(1, rounds + 1):
            lost = not n % LOST and n <= LOST * LOSSES
            (spare_dies if lost else leader_dies)(session)
            load.more(REPLIES)
            session.wait_for(lambda: whole(session), "a new one comes", 90)
            with load.rest():
                masks_wait(session, blocked)
        session.wait_for(lambda: fds(session.leader()["pid"]) <= first, "no descriptor is left")
        if fds(session.mve.pid) > own:
            raise Wrong(f"descriptors of mve: {own}, then {fds(session.mve.pid)}")
        status = session.status()
        spares, pauses = status["spares"], {p["kind"]: p for p in status["pauses"]}
        replies = load.stop()
        session.stop()
        log = session.log()
    except Wrong as e:
        raise SystemExit(f"{e}\n{session.status_text()[:1500]}\n{session.log()[-3000:]}")
    finally:
        session.clean()
    if spares["lost"] != min(rounds // LOST, LOSSES) or spares["there"] != SPARES:
        raise SystemExit(f"status says {spares}\n{log[-3000:]}")
    if pauses["takeover"]["times"] != rounds - spares["lost"] or \
            pauses["twin"]["times"] < spares["made"] or not pauses["twin"]["longest_us"] or \
            status["joins"] != spares["made"] or status["lost"] != spares["lost"]:
        raise SystemExit(f"status says {status['pauses']}, {status['joins']} joined")
    micros = sorted(int(n) for n in re.findall(r"running after (\d+) us", log) or [0])
    print(f"{replies} replies, {rounds} deaths, {spares}; running again after "
          f"{micros[len(micros) // 2]} us, {micros[-1]} at most", file=sys.stderr)
    print("spare: ok")


main()
