#!/usr/bin/env python3
"""rollback.py MVE MVE_CC ROOT [CRASHES [PART...]]: mve run --rollback takes requests back.

servers/kv with bugs, built by mve-cc, alone and with a follower: of CRASHES requests that fail
among ten times as many good ones each bad one closes its own connection and is counted, each good
one is answered once, memory does not grow, and what is stored is as if they had never been: also
in the follower, which leads at last.
"""
import os
import re
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE + "/../takeover")
from rollback_session import Session, Wrong, build, states  # noqa: E402

MVE, CC, ROOT = sys.argv[1:4]
CRASHES = int(sys.argv[4]) if len(sys.argv) > 4 else 100


def load(s, crashes, bad=("CRASH", "ABORT")):
    """What is stored at the end, as a dict."""
    peers = [s.connect() for _ in range(5)]
    kept, early = {}, 0
    for n in range(crashes * 10):
        if n % 10 == 5:
            s.bad(bad[n // 10 % len(bad)])
        peer, key = peers[n % 5], f"key-{n % 200}"
        if n % 3 == 2 and key in kept:
            s.ask(peer, f"GET {key}", f"VALUE {kept[key]}")
        else:
            kept[key] = n
            s.ask(peer, f"PUT {key} {n}", "OK")
        if n == crashes * 2:
            early = s.memory()
    for peer in peers:
        peer.setblocking(False)
        try:
            raise Wrong(f"more than was asked for: {peer.recv(100)!r}")
        except BlockingIOError:
            pass
    grown = s.memory() - early
    if grown > 2048:
        raise Wrong(f"grown by {grown} KiB")
    return kept


def check(s, kept):
    peer = s.connect()
    for key, value in kept.items():
        s.ask(peer, f"GET {key}", f"VALUE {value}")


def descriptors(s):
    return len(os.listdir(f"/proc/{s.server()}/fd"))


def alone():
    s = Session(MVE, ["--rollback"], ["./kv", "0"])
    early = descriptors(s)
    kept = load(s, CRASHES)
    check(s, kept)
    s.counted(CRASHES)
    sites = s.status()["sites"]
    slow = [at for at in sites["hot_unpatched"] + sites["seen_trapped"] if "/kv+" in at["place"]]
    if slow:
        raise Wrong(f"the runtime's own calls were trapped: {slow}")
    time.sleep(0.2)
    if descriptors(s) > early + 8:
        raise Wrong(f"descriptors: {early} at first, {descriptors(s)} then")
    report = s.report()
    if "the request: " not in report or report.count("  #") < 3 or \
       " in plant at " not in report:
        raise Wrong(f"the report says {report!r}")
    s.end()


def followed():
    s = Session(MVE, ["--rollback", "-f", "same"], ["./kv", "0"])
    kept = load(s, CRASHES)
    s.counted(CRASHES)
    s.follows()
    subprocess.run([MVE, "promote", s.name, "f1"], check=True, timeout=60)
    check(s, kept)
    s.bad("CRASH")
    check(s, kept)
    s.end()


def other_builds():
    """A follower that has not the bug goes back likewise; one without checkpoints is dropped."""
    s = Session(MVE, ["--rollback", "-f", "./kv-good 0"], ["./kv", "0"])
    kept = load(s, 20)
    s.counted(20)
    s.follows()
    subprocess.run([MVE, "promote", s.name, "f1"], check=True, timeout=60)
    check(s, kept)
    s.end()
    subprocess.run(["cc", "-D_GNU_SOURCE", "-O2", ROOT + "/servers/kv/v1.c", "-o", "kv-native"],
                   check=True)
    s = Session(MVE, ["--rollback", "-f", "./kv-native 0"], ["./kv", "0"])
    check(s, load(s, 20, ["ABORT"]))
    s.counted(20)
    if not s.says("it has no checkpoint of that request") or not s.says("f1: dropped: "):
        raise Wrong(f"nothing is said of a follower without checkpoints: {s.said()!r}")
    s.end()


def spares(crashes=5):
    """A twin goes back with its leader, leads on, and has twins itself.  One is there where a
    follower without checkpoints was dropped."""
    s = Session(MVE, ["--rollback", "-f", "./kv-native 0", "--spare", "1"], ["./kv", "0"])
    for generation in range(3):
        s.until("a twin follows", lambda now: now["spares"]["there"] == 1)
        kept = load(s, crashes, ["CRASH", "ABORT"])
        if s.status()["spares"]["lost"]:
            raise Wrong(f"generation {generation}: {s.status()['spares']}; said {s.said()!r}")
        peer, before = s.connect(), s.server()
        s.ask(peer, "GET key-0", "VALUE " + str(kept["key-0"]))
        os.kill(before, signal.SIGSEGV)
        s.until("a twin leads", lambda now: s.server() != before)
        s.ask(peer, "GET key-0", "VALUE " + str(kept["key-0"]))
    check(s, kept)
    s.end()


def lost():
    """A follower that cannot go back with its leader says why, and is dropped."""
    build(CC, HERE + "/seam_server.c", "loses", "-Wno-infinite-recursion", "-DLOSES")
    s = Session(MVE, ["--rollback", "-f", "./loses first"], ["./seam_server", "first"])
    s.bad("null")
    if not s.says("f1: a failure is not taken back: ") or not s.says("f1: dropped: "):
        raise Wrong(f"a follower cannot go back: said {s.said()!r}")
    s.bad("null")
    s.counted(2)
    s.end()


def amends():
    """--reply, and --refuse-known: the same bytes are tried once."""
    reply = "SORRY\n" * 100
    with open("reply", "w") as f:
        f.write(reply)
    s = Session(MVE, ["--rollback", "--reply", "reply", "--refuse-known", "-f", "same"],
                ["./kv", "0"])
    peer = s.connect()
    for n in range(20):
        s.ask(peer, f"PUT a {n}", "OK")
        s.bad("CRASH", reply.encode())
        s.bad(f"CRASH {n % 2}", reply.encode())
        s.bad(f"CRASH {n % 2}", reply.encode(), 3)
        s.ask(peer, "GET a", f"VALUE {n}")
    s.bad("CRASH again", reply.encode(), 7)
    s.bad("CRASH again", reply.encode())
    got = s.status()["versions"][0]["rollback"]
    if got != {"taken_back": 4, "not": 0, "refused": 58}:
        raise Wrong(f"counted {got}; said {s.said()!r}")
    s.follows()
    subprocess.run([MVE, "promote", s.name, "f1"], check=True, timeout=60)
    s.bad("CRASH 1", reply.encode())
    shown = subprocess.run([MVE, "status", s.name], capture_output=True, text=True).stdout
    if not re.search(r"^  f1 .* 0 requests .* taken back, 0 were not; 1 refused$", shown, re.M):
        raise Wrong(f"what f1 has refused is not shown: {shown}")
    s.end()


def opened():
    """What a request has opened is closed with it, also by a library."""
    s = Session(MVE, ["--rollback", "-f", "same"], ["./seam_server", "first"])
    s.bad("opened")
    early = descriptors(s)
    for n in range(50):
        s.bad("opened")
    s.follows()
    if descriptors(s) != early:
        raise Wrong(f"descriptors: {early} at first, {descriptors(s)} then")
    s.end()


def humble():
    """Of a server that has given up its rights."""
    s = Session(MVE, ["--rollback", "-f", "same"], ["./seam_server", "humble"])
    for n in range(10):
        s.bad("null")
    s.follows()
    subprocess.run([MVE, "promote", s.name, "f1"], check=True, timeout=60)
    s.bad("null")
    s.end()


def threads():
    """Another thread that waits does no harm, in a follower and in one that leads at last."""
    s = Session(MVE, ["--rollback", "-f", "same"], ["./seam_server", "standing"])
    s.stands()
    for n in range(10):
        s.bad("null")
    s.follows()
    subprocess.run([MVE, "promote", s.name, "f1"], check=True, timeout=60)
    s.stands()
    for n in range(10):
        s.bad("null")
    s.end()


def datagrams():
    """--mark says by which call a request comes where no connection is accepted."""
    for more, back in (([], 20), (["--refuse-known"], 1)):
        datagrams_lost(more, back)
    got = subprocess.run([MVE, "run", "--rollback", "--mark", "epoll_wait", "--", "./kv", "0"],
                         stderr=subprocess.PIPE, text=True)
    if got.returncode != 2 or "a --mark that brings no request" not in got.stderr:
        raise Wrong(f"--mark epoll_wait: {got}")


def datagrams_lost(more, back):
    """Of twenty that are the same so many are taken back, and the others refused."""
    s = Session(MVE, ["--rollback", "--mark", "recvmsg", "-f", "same", *more], ["./datagram"])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.settimeout(20)
        for n in range(20):
            peer.sendto(b"bug 1000", ("127.0.0.1", s.port))
            peer.sendto(b"add 1", ("127.0.0.1", s.port))
            got = peer.recv(100)
            if got != b"%d %d" % (n + 1, n + 1):
                raise Wrong(f"answer {n}: {got!r}; said {s.said()!r}")
    s.counted(back, 20 - back)
    s.follows()
    if "the request: 8 bytes" not in s.report() or "  bug 1000\n" not in s.report():
        raise Wrong(f"its parts are not shown: {s.report()!r}")
    s.end()


# Who dies, and what is said.
REFUSED = [("sent", "it had sent something"), ("library", "it had sent something"),
           ("spliced", "it had sent something"),
           ("closed", "it had closed a descriptor"), ("waited", "it had gone on to wait"),
           ("selected", "it had gone on to wait"),
           ("handler", "it came in a handler"), ("sealed", "mapped at a fixed place"),
           ("thread", "in another thread"), ("spawned", "it had made a process"),
           ("shut", "it failed again while it was taken back")]


def refused():
    for bug, words in REFUSED + [("null", "another thread has run meanwhile")]:
        how = "running" if bug == "null" else "first"
        s = Session(MVE, ["--rollback"], ["./seam_server", how])
        s.connect().sendall(b"add 1\n")
        s.connect().sendall(bug.encode() + b"\n")
        got = s.process.wait(60)
        if got != -signal.SIGSEGV or s.said().count("not taken back: ") != 1 or \
                words not in s.said():
            raise Wrong(f"{bug}: ended with {got}, said {s.said()!r}; not {words!r}, once")


def recorded():
    """What was taken back is taken back in a replay."""
    with open("reply", "w") as f:
        f.write("SORRY\n")
    options = ["--rollback", "--reply", "reply", "--refuse-known"]
    s = Session(MVE, [*options, "--record", "log"], ["./kv", "0"])
    peer = s.connect()
    for n in range(5):
        s.ask(peer, f"PUT a {n}", "OK")
        for bug in "CRASH", "ABORT", f"CRASH {n}":
            s.bad(bug, b"SORRY\n")
    s.counted(7, 8)
    s.end()
    got = subprocess.run([MVE, "replay", *options, "log"], capture_output=True, text=True,
                         timeout=100)
    if got.returncode or ", equal" not in got.stdout or got.stderr:
        raise Wrong(f"replayed: {got}")


def bare():
    """What is sent to a connection that is descriptor 1 is an answer, by whom it is."""
    s = Session(MVE, ["--rollback"], ["./seam_server", "bare"])
    peers = [s.connect() for _ in range(2)]
    for peer in peers:
        peer.sendall(b"add 1\n")
        peer.recv(100)
    peers[1].sendall(b"library\n")
    if s.process.wait(60) != -signal.SIGSEGV or "it had sent something" not in s.said():
        raise Wrong(f"bare: said {s.said()!r}")


def idle():
    """Between requests it is not said how the last one ended."""
    s = Session(MVE, ["--rollback"], ["./kv", "0"])
    s.ask(s.connect(), "PUT a b", "OK")
    s.until("it waits", lambda now: states(s.server()) == ["S"])
    os.kill(s.server(), signal.SIGSEGV)
    if s.process.wait(60) != -signal.SIGSEGV or "no request had begun since" not in s.said():
        raise Wrong(f"idle: said {s.said()!r}")


def aged(program, name):
    """The same, as another mve's mve-cc would have built it: its structure's version is one less."""
    with open(program, "rb") as f:
        code = f.read()
    at = code.index(b"mveback\0")
    version = int.from_bytes(code[at + 8:at + 12], "little")
    with open(name, "wb") as f:
        f.write(code[:at + 8] + (version - 1).to_bytes(4, "little") + code[at + 12:])
    os.chmod(name, 0o755)


def never():
    """Where it cannot be there is a word."""
    aged("kv", "kv-aged")
    for command, words in ((["./kv-native", "0"], "no program of it has checkpoints"),
                           (["./kv-aged", "0"], "are of another mve's mve-cc (layout"),
                           (["./kv", "0"], "no request has begun")):
        s = Session(MVE, ["--rollback"], command)
        s.end()
        if words not in s.said():
            raise Wrong(f"{command}: said {s.said()!r}, not {words!r}")
    for limit, words in (("ulimit -s unlimited", "the program's memory lies where"),
                         ("ulimit -v 8000000", "the tags do not fit into the address space")):
        s = Session(MVE, ["--rollback"], ["sh", "-c", limit + "; exec ./kv 0"])
        s.ask(s.connect(), "PUT a b", "OK")
        s.end()
        if "takes no request back any more: " + words not in s.said():
            raise Wrong(f"{limit}: said {s.said()!r}")


def main():
    if not os.access(CC, os.X_OK):
        print("mve-cc is not built")
        sys.exit(77)
    build(CC, ROOT + "/servers/kv/v1.c", "kv", "-DKV_CRASH", "-DKV_ABORT")
    build(CC, ROOT + "/servers/kv/v1.c", "kv-good")
    build(CC, HERE + "/seam_server.c", "seam_server", "-Wno-infinite-recursion")
    build(CC, HERE + "/datagram.c", "datagram")
    for name in sys.argv[5:] or ("alone", "followed", "other_builds", "spares", "lost", "amends",
                                 "opened", "humble", "threads", "datagrams", "refused", "recorded",
                                 "bare", "idle", "never"):
        globals()[name]()
        print(name + ": ok", flush=True)


try:
    main()
except Wrong as e:
    sys.exit(f"rollback: {e}")
