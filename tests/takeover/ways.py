#!/usr/bin/env python3
"""ways.py [WAY...]: how a leader can fail, and what becomes of its clients.

The server is kv, built with requests that make it crash, exit or hang; what only
the leader does is planted in its build alone.
"""
import os
import signal
import socket
import subprocess
import sys
import time

from load import Load, Wrong
from session import MVE, Session, kv_build, free_port, program

COMMON = "-DKV_PLANT"


def kv_session(folder, planted, followers=1, options=(), also=False):
    """A leader with the planted requests; followers have them if `also`."""
    port = free_port()
    leader = f"{kv_build(folder, COMMON, *planted)} {port}"
    other = leader if also else f"{kv_build(folder, COMMON)} {port}"
    return Session("kv", followers, options, leader.split(), other, port)


def ask(port, line):
    with socket.create_connection(("127.0.0.1", port), 10) as s:
        s.settimeout(10)
        s.sendall(line)
        reply = b""
        while not reply.endswith(b"\n"):
            more = s.recv(1000)
            if not more:
                return reply + b"(closed)"
            reply += more
        return reply


def failed(folder, request, planted, options=()):
    """The planted request is answered by the follower, and nobody else notices."""
    session = kv_session(folder, planted, options=options)
    try:
        load = session.load()
        load.more(100)
        reply = ask(session.port, request + b"\n")
        load.more(100)
        session.wait_for(lambda: session.leader()["name"] == "f1", "f1 leads")
        if reply != b"ERROR unknown request\n":
            raise Wrong(f"the planted request: {reply!r}")
        load.stop()
        session.stop()
        return session.log()
    except Wrong as e:
        raise Wrong(f"{e}\n{session.log()}")
    finally:
        session.clean()


def crash(folder):
    return failed(folder, b"CRASH now", ["-DKV_CRASH"])


def abort(folder):
    return failed(folder, b"ABORT now", ["-DKV_ABORT"])


def error(folder):
    return failed(folder, b"EXIT now", ["-DKV_EXIT"], ["--failover", "error"])


def hang(folder):
    return failed(folder, b"HANG now", ["-DKV_HANG"], ["--hang", "300"])


def hang_maps(folder):
    """What it does in its loop nobody else can see."""
    return failed(folder, b"HANG now", ["-DKV_HANG", "-DKV_MAPS"], ["--hang", "300"])


def chain(folder):
    """The same request kills the first follower; the second takes over."""
    port = free_port()
    bad = f"{kv_build(folder, COMMON, '-DKV_CRASH')} {port}"
    good = f"{kv_build(folder, COMMON)} {port}"
    session = Session("kv", 0, ["-f", bad, "-f", good], bad.split(), None, port)
    try:
        load = session.load()
        load.more(100)
        reply = ask(port, b"CRASH now\n")
        load.more(100)
        session.wait_for(lambda: session.leader()["name"] == "f2", "f2 leads")
        if reply != b"ERROR unknown request\n":
            raise Wrong(f"the planted request: {reply!r}")
        load.stop()
        session.stop()
        return session.log()
    except Wrong as e:
        raise Wrong(f"{e}\n{session.log()}")
    finally:
        session.clean()


def all_die(folder):
    """It kills every version: the session ends as the server would have."""
    session = kv_session(folder, ["-DKV_CRASH"], 2, also=True)
    try:
        with socket.create_connection(("127.0.0.1", session.port)) as s:
            s.sendall(b"CRASH now\n")
            session.mve.wait(15)
        if session.mve.returncode != -signal.SIGSEGV:
            raise Wrong(f"mve ended with {session.mve.returncode}")
        return session.log()
    except Wrong as e:
        raise Wrong(f"{e}\n{session.log()}")
    finally:
        session.clean()


def killed(folder):
    """SIGKILL leaves nothing to take: the session ends as the server did."""
    session = kv_session(folder, [])
    try:
        os.kill(session.leader()["pid"], signal.SIGKILL)
        session.mve.wait(15)
        if session.mve.returncode != -signal.SIGKILL:
            raise Wrong(f"mve ended with {session.mve.returncode}")
        return session.log()
    except Wrong as e:
        raise Wrong(f"{e}\n{session.log()}")
    finally:
        session.clean()


def taker(folder):
    """The successor is killed while it takes over: the next one does."""
    for wait_ms in (0.0, 0.2, 0.5, 1.0):
        session = kv_session(folder, [], 2)
        try:
            load = session.load()
            load.more(100)
            pids = {v["name"]: v["pid"] for v in session.versions()}
            os.kill(pids["f1"], signal.SIGSTOP)     # f2 has least to read
            load.more(100)
            os.kill(pids["v0"], signal.SIGSEGV)
            time.sleep(wait_ms / 1000)
            os.kill(pids["f2"], signal.SIGKILL)
            os.kill(pids["f1"], signal.SIGCONT)
            try:
                load.more(100)
            except Wrong:
                # It had taken all, and its end took the connections with it.
                session.mve.wait(3)
                print(f"after {wait_ms} ms: all was taken already")
                continue
            session.wait_for(lambda: session.leader()["name"] == "f1", "f1 leads")
            load.stop()
            session.stop()
            print(f"after {wait_ms} ms: {session.log().splitlines()[-2]}")
        finally:
            session.clean()
    return ""


def differs(folder):
    """--on-divergence promote: the follower's way is taken to be the right one."""
    port = free_port()
    session = Session("kv", 0, ["-f", f"{kv_build(folder, COMMON)} {port}",
                                "--on-divergence", "promote"],
                      [kv_build(folder, COMMON, "-DKV_OTHER"), str(port)], None, port)
    try:
        load = session.load()
        load.more(100)
        reply = ask(port, b"OTHER now\n")
        session.wait_for(lambda: session.leader()["name"] == "f1", "f1 leads")
        load.more(100)
        if reply != b"OTHER\n" or ask(port, b"OTHER now\n") != b"ERROR unknown request\n":
            raise Wrong(f"the planted request: {reply!r}")
        load.stop()
        session.stop()
        return session.log()
    except Wrong as e:
        raise Wrong(f"{e}\n{session.log()}")
    finally:
        session.clean()


def too_late(folder):
    """Promoted while it has much to read, a follower that differs there, or is stopped,
    does not lead: the leader goes on, and no client notices."""
    for goes_on in (True, False):
        session = kv_session(folder, ["-DKV_OTHER"])
        try:
            load = session.load()
            pid = next(v["pid"] for v in session.versions() if v["name"] == "f1")
            os.kill(pid, signal.SIGSTOP)
            load.more(100)
            if goes_on and ask(session.port, b"OTHER now\n") != b"OTHER\n":
                raise Wrong("the leader does not answer")
            load.more(100)
            if goes_on:
                os.kill(pid, signal.SIGCONT)
            done = subprocess.run([MVE, "promote", session.name, "f1"], capture_output=True,
                                  text=True, timeout=10)
            words = "does not come to the end" if goes_on else "is stopped"
            if not done.returncode or words not in done.stderr:
                raise Wrong(f"mve promote: {done.returncode}: {done.stderr}")
            load.more(100)
            os.kill(pid, signal.SIGCONT)
            load.more(100)
            session.wait_for(lambda: bool(session.following()) != goes_on, "what f1 is then")
            load.stop()
            if session.leader()["name"] != "v0":
                raise Wrong("the leader is another")
            session.stop()
        except Wrong as e:
            raise Wrong(f"{e}\n{session.log()}")
        finally:
            session.clean()
    return ""


def unlike(folder, leader, follower, request):
    """--on-divergence ignore: under load the two differ; then the follower leads, and
    what it kept of its clients is right."""
    port = free_port()
    session = Session("kv", 0, ["-f", f"{kv_build(folder, COMMON, *follower)} {port}",
                                "--on-divergence", "ignore"],
                      [kv_build(folder, COMMON, *leader), str(port)], None, port)
    try:
        load = session.load()
        for _ in range(5):
            load.more(100)
            ask(port, request + b"\n")
        session.wait_for(lambda: next(v for v in session.versions() if v["name"] == "f1")
                         ["verdicts"]["diverged"] == 5, "five differences")
        load.more(100)
        session.promote("f1")
        load.more(100)
        load.stop()
        session.stop()
        return session.log()
    except Wrong as e:
        raise Wrong(f"{e}\n{session.log()}")
    finally:
        session.clean()


def ignored(folder):
    return "".join(unlike(folder, *way) for way in (
        (["-DKV_OTHER"], [], b"OTHER now"),     # another content
        (["-DKV_EXTRA"], [], b"EXTRA now"),     # a call that only the leader makes
        ([], ["-DKV_EXTRA"], b"EXTRA now")))    # and only the follower


def apart_session(folder, *options):
    """A follower whose rules have connections apart."""
    port = free_port()
    with open(f"{folder}/apart.rules", "w") as rules:
        rules.write("rule connection @apart accept4(_) as a => a\n")
    return Session("kv", 0, ["-f", f"{kv_build(folder, COMMON)} {port}", "--rules",
                             f"{folder}/apart.rules", *options],
                   [kv_build(folder, COMMON, "-DKV_OTHER", "-DKV_CRASH"), str(port)], None, port)


def not_promoted(session):
    """Refused by name; the leader goes on, and so does the follower."""
    load = session.load()
    for keep in ([], ["--keep"]):
        load.more(100)
        done = subprocess.run([MVE, "promote", session.name, "f1", *keep], capture_output=True,
                              text=True, timeout=10)
        if done.returncode == 0 or "(@apart), so it cannot lead" not in done.stderr:
            raise Wrong(f"mve promote {keep}: {done.returncode}: {done.stderr}")
        load.more(100)
    if session.leader()["name"] != "v0" or session.following() != ["f1"]:
        raise Wrong("who leads, or follows, is another")
    load.stop()


def no_successor(session):
    """The leader crashes: the session ends as a server would that nobody watched."""
    pids = [v["pid"] for v in session.versions()]
    with socket.create_connection(("127.0.0.1", session.port)) as s:
        began = time.monotonic()
        s.sendall(b"CRASH now\n")
        session.mve.wait(15)
    took = time.monotonic() - began
    if session.status() or not all(session.ended(pid, 1) for pid in pids):
        raise Wrong("the session is left behind")
    if session.mve.returncode != -signal.SIGSEGV or took > 3:
        raise Wrong(f"mve ended with {session.mve.returncode} after {took:.1f} s")
    if "(@apart), so it cannot lead" not in session.log():
        raise Wrong("it does not say why nobody went on")


def not_by_policy(session):
    """--on-divergence promote: it is dropped, and that says why; the leader goes on."""
    load = session.load()
    load.more(100)
    if ask(session.port, b"OTHER now\n") != b"OTHER\n":
        raise Wrong("the leader does not answer")
    session.wait_for(lambda: not session.following(), "f1 is dropped")
    load.more(100)
    load.stop()
    if session.leader()["name"] != "v0" or "(@apart), so it cannot lead" not in session.log():
        raise Wrong("another leads, or it does not say why not")
    session.stop()


def twinless(folder):
    """--on-divergence promote: one that has not made a process that the leader has cannot take
    its place, and that is known before anybody is stopped for it."""
    port, kv = free_port(), kv_build(folder, COMMON)
    session = Session("kv", 0, ["-f", f"sh -c 'exec {kv} {port}'", "--on-divergence", "promote"],
                      ["sh", "-c", f"sleep 1000 & exec {kv} {port}"], None, port)
    try:
        session.wait_for(lambda: not session.following(), "f1 is dropped")
        load = session.load()
        load.more(100)
        load.stop()
        if session.leader()["name"] != "v0" or "has no twin in it" not in session.log():
            raise Wrong("another leads, or it does not say why not")
        return session.log()
    except Wrong as e:
        raise Wrong(f"{e}\n{session.log()}")
    finally:
        session.clean()


def apart(folder):
    """Such a follower does not lead: not by a user's wish, nor by policy, nor by a crash."""
    log = ""
    for options, ways in (((), (not_promoted, no_successor)),
                          (("--on-divergence", "promote"), (not_by_policy,))):
        session = apart_session(folder, *options)
        try:
            for way in ways:
                way(session)
            log += session.log()
        except Wrong as e:
            raise Wrong(f"{e}\n{session.log()}")
        finally:
            session.clean()
    return log


def worker(_):
    """A worker of nginx dies, then another, then the master: one takeover each."""
    session = Session("nginx", 3)
    try:
        load = session.load()
        for n in range(3):
            load.more(100)
            was = session.leader()
            children = open(f"/proc/{was['pid']}/task/{was['pid']}/children").read().split()
            os.kill(int(children[0]) if n < 2 else was["pid"], signal.SIGSEGV)
            session.wait_for(lambda: session.leader()["name"] != was["name"], "another leads")
            load.more(100)
        load.stop()
        session.stop()
        return session.log()
    except Wrong as e:
        raise Wrong(f"{e}\n{session.log()}")
    finally:
        session.clean()


WAYS = {f.__name__: f for f in (crash, abort, error, hang, hang_maps, chain, all_die, killed, taker, differs,
                                too_late, ignored, apart, twinless, worker)}


def main():
    folder = os.getcwd()
    for name in sys.argv[1:] or WAYS:
        try:
            log = WAYS[name](folder)
        except (Wrong, subprocess.TimeoutExpired) as e:
            raise SystemExit(f"{name}: {e}")
        print(f"--- {name}")
        print("\n".join(l for l in log.splitlines() if l.startswith("mve: ")))
    print("ways: ok")


if __name__ == "__main__":
    main()
