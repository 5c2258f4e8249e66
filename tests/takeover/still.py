#!/usr/bin/env python3
"""still.py [WAY...]: a follower that does not move does not lead, is said to stand still and is
given up; and the server serves on, whatever was asked."""
import ctypes
import json
import os
import signal
import subprocess
import sys
import time

from load import Wrong
from session import MVE, ROOT, Session, free_port
from ways import ask

STILL_MS = 1500
NAPS_MS = 4000          # it is looked at often enough to be met awake
COMPUTES_MS = 300       # more than it has needed to begin


def build(*defines):
    out = f"{os.getcwd()}/still{''.join(defines)}"
    if not os.path.exists(out):
        subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-pthread", *defines, "-o", out,
                        ROOT + "/tests/takeover/still.c"], check=True)
    return out


def session_of(threads, *options, followers=("-DSTILL",)):
    port = free_port()
    follow = [w for f in followers
              for w in ("-f", f"{build(*f.split())} {port} {threads}")]
    return Session("still", 0, [*follow, *options], [build(), str(port), str(threads)], None, port)


def serves(session, n=20):
    for i in range(n):
        line = b"line %d\n" % i
        if ask(session.port, line) != line:
            raise Wrong("the server does not answer")


def noted(session):
    """Who serves stands in session.json, and who may come to: where the monitor is killed it is
    gone by."""
    with open(os.path.join(os.environ["XDG_RUNTIME_DIR"], "mve", session.name,
                           "session.json"), encoding="utf-8") as file:
        saved = json.load(file)
    pids = {v["role"]: v["pid"] for v in session.versions()}
    if saved["server"] != pids["leader"] or [n["pid"] for n in saved["next"]] != [pids["follower"]]:
        raise Wrong(f"session.json: server {saved['server']}, next {saved['next']}")


def used_ms(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return int(file.read().rsplit(")", 1)[1].split()[11]) * 1000 // os.sysconf("SC_CLK_TCK")


def promote_refused(session, words):
    began = time.monotonic()
    done = subprocess.run([MVE, "promote", session.name, "f1"], capture_output=True, text=True,
                          timeout=10)
    if done.returncode != 1 or words not in done.stderr:
        raise Wrong(f"promote: {done.returncode}: {done.stderr}")
    serves(session)
    if session.leader()["name"] != "v0":
        raise Wrong(f"{session.leader()['name']} leads")
    return time.monotonic() - began


def stands(session, word, threads):
    """The follower's thread stands from here on: nobody promotes it, and it is dropped."""
    serves(session)
    if ask(session.port, word) != word:
        raise Wrong("the leader does not answer")
    if word != b"later\n":
        serves(session)
    promote_refused(session, "come to the end" if word == b"spin\n" else "does not move")
    serves(session)


def verdict(session):
    session.wait_for(lambda: not session.following(), "f1 is dropped")
    if "f1: dropped: does not move" not in session.log():
        raise Wrong("it does not say why")
    serves(session)
    session.stop()
    return session.log()


def one(word, threads, seen=True):
    session = session_of(threads, "--still", str(STILL_MS))
    try:
        stands(session, word, threads)
        return verdict(session) if seen else session.log()
    except Wrong as e:
        raise Wrong(f"{word}, {threads} threads: {e}\n{session.log()}\n{session.status_text()}")
    finally:
        session.clean()


def stall():
    return one(b"stall\n", 1) + one(b"stall\n", 3)


def naps():
    """It is awake now and then, and stands all the same."""
    log = ""
    for threads in 1, 3:
        session = session_of(threads, "--still", str(NAPS_MS))
        try:
            serves(session)
            if ask(session.port, b"naps\n") != b"naps\n":
                raise Wrong("the leader does not answer")
            log += verdict(session)
        except Wrong as e:
            raise Wrong(f"naps, {threads} threads: {e}\n{session.log()}\n{session.status_text()}")
        finally:
            session.clean()
    return log


def later():
    return one(b"later\n", 1, seen=False)


def spin():
    return one(b"spin\n", 1, seen=False)


def stopped_promote():
    """A stopped follower is not promoted, and goes on to follow when it runs again."""
    session = session_of(1, followers=("",))
    try:
        serves(session)
        pid = next(v["pid"] for v in session.versions() if v["name"] == "f1")
        os.kill(pid, signal.SIGSTOP)
        serves(session)
        promote_refused(session, "stopped")
        os.kill(pid, signal.SIGCONT)
        session.wait_for(lambda: not any(v["lag_cells"] for v in session.versions()), "f1 reads")
        session.promote("f1")
        serves(session)
        if session.leader()["name"] != "f1":
            raise Wrong("f1 does not lead")
        session.stop()
        return session.log()
    except Wrong as e:
        raise Wrong(f"{e}\n{session.log()}")
    finally:
        session.clean()


def stopped_leader():
    """The leader stands still for a second, stopped: nobody takes over, and it goes on."""
    session = session_of(1, followers=("",))
    try:
        serves(session)
        pid = session.leader()["pid"]
        os.kill(pid, signal.SIGSTOP)
        done = subprocess.run([MVE, "promote", session.name, "f1"], capture_output=True, text=True,
                              timeout=10)
        os.kill(pid, signal.SIGCONT)
        if done.returncode != 1:
            raise Wrong(f"promote: {done.returncode}: {done.stderr}")
        serves(session)
        if session.leader()["pid"] != pid or "SIGSYS" in session.log():
            raise Wrong("the leader is another")
        session.promote("f1", keep=True)
        serves(session)
        session.stop()
        return session.log()
    except Wrong as e:
        raise Wrong(f"{e}\n{session.log()}")
    finally:
        session.clean()


def spinlater():
    """It has read all, and computes: it is refused before the leader is stopped for it."""
    session = session_of(1)
    try:
        serves(session)
        if ask(session.port, b"spinlater\n") != b"spinlater\n":
            raise Wrong("the leader does not answer")
        pid = next(v["pid"] for v in session.versions() if v["name"] == "f1")
        session.wait_for(lambda: used_ms(pid) > COMPUTES_MS, "it computes")
        promote_refused(session, "computes, and comes to no call")
        noted(session)
        serves(session)
        subprocess.run([MVE, "drop", session.name, "f1"], check=True, timeout=20)
        session.stop()
        return session.log()
    except Wrong as e:
        raise Wrong(f"{e}\n{session.log()}")
    finally:
        session.clean()


def stopped_crash():
    """The leader crashes, and its only follower is stopped: it goes on, and leads."""
    session = session_of(1, followers=("",))
    try:
        serves(session)
        pids = {v["name"]: v["pid"] for v in session.versions()}
        os.kill(pids["f1"], signal.SIGSTOP)
        serves(session, 3)
        os.kill(pids["v0"], signal.SIGSEGV)
        serves(session)
        if session.leader()["name"] != "f1":
            raise Wrong("f1 does not lead")
        session.stop()
        return session.log()
    except (Wrong, OSError) as e:
        raise Wrong(f"{e!r}\n{session.log()}")
    finally:
        session.clean()


def held(followers):
    """The leader crashes, and the follower that would lead is held by a debugger."""
    session = session_of(1, followers=("",) * followers)
    try:
        serves(session)
        pids = {v["name"]: v["pid"] for v in session.versions()}
        hold(pids["f1"])
        serves(session, 3)
        if followers == 2:      # which has more to read
            os.kill(pids["f2"], signal.SIGSTOP)
            serves(session, 3)
        os.kill(pids["v0"], signal.SIGSEGV)
        return session, pids
    except BaseException:
        session.clean()
        raise


def hold(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    for request in (0x4206, 0x4207):    # PTRACE_SEIZE, PTRACE_INTERRUPT
        if libc.ptrace(request, pid, None, None):
            raise Wrong(f"cannot hold {pid}: {os.strerror(ctypes.get_errno())}")
    os.waitpid(pid, 0x40000000)


def held_next():
    """Then the next one leads."""
    session, pids = held(2)
    try:
        serves(session)
        session.wait_for(lambda: session.leader()["name"] == "f2", "f2 leads")
        session.stop()
        return session.log()
    except (Wrong, OSError) as e:
        raise Wrong(f"{e!r}\n{session.log()}")
    finally:
        session.clean()


def held_ends():
    """Then the session ends as its leader did, and says so."""
    session, pids = held(1)
    try:
        session.mve.wait(20)
        if session.mve.returncode != -signal.SIGSEGV:
            raise Wrong(f"mve ended with {session.mve.returncode}")
        if not all(session.ended(pid) for pid in pids.values()):
            raise Wrong("a process is left behind")
        if "did not take over" not in session.log():
            raise Wrong("it does not say why")
        return session.log()
    except Wrong as e:
        raise Wrong(f"{e}\n{session.log()}")
    finally:
        session.clean()


WAYS = {f.__name__: f for f in (stall, naps, later, spin, stopped_promote, stopped_leader, spinlater,
                                stopped_crash, held_next, held_ends)}


def main():
    for name in sys.argv[1:] or WAYS:
        try:
            log = WAYS[name]()
        except (Wrong, OSError, subprocess.TimeoutExpired) as e:
            raise SystemExit(f"{name}: {e}")
        print(f"--- {name}")
        print("\n".join(l for l in log.splitlines() if l.startswith("mve: ")))
    print("still: ok")


if __name__ == "__main__":
    main()
