#!/usr/bin/env python3
"""ship.py CASE...: a session is shipped over NATS JetStream, and followed from there.

equal		kv under load; two followers, one from the beginning, one that comes late
restarted	the NATS server is killed and started again under load, and so is mve-ship
cut		the connections of both are cut at any byte, again and again (TURNS), under load
behind		what waits is many times what a connection carries before it is cut: it is shipped
gone		the NATS server goes for good: the leader serves on, and says so; what waits is bounded
never		there is none when the session begins, and then there is; and one that never comes
refused		what is not mve's, of another version, torn, damaged, of another session, and
		frames that are damaged in messages that are whole: each by its name
secure		TLS with certificates on both sides, and a password, from the user's NATS context;
		without them, or from a host that the certificate does not name, nothing goes
changed		bytes changed in messages that are whole, anywhere (TURNS)
dropped		the stream has lost what was in the middle, and the session is over: said, in a minute
killed		mve-ship is killed again and again under load (TURNS); the follower ends equal
"""
import json
import os
import random
import signal
import subprocess
import sys

from nats import (BYTES, FLAGS, HEAD, OVER, PAYLOAD, RECORDING, SIZE, VERSIONS, Cutter, Leader,
                  Nats, Peer, Session, build, equal, fail, free_port, message, needed, until)

SUBJECT = f"mve.test-{os.getpid()}"


def follow(nats, name, *more):
    return Session(f"follow-{name}", "follow", "--from", nats.url(SUBJECT), "-n",
                   f"ship-f-{os.getpid()}-{name}", *more)


def spools():
    folder = os.environ["XDG_CACHE_HOME"] + "/mve/spool"
    return os.listdir(folder) if os.path.isdir(folder) else []


def equal_case():
    nats = Nats("nats-equal")
    first = follow(nats, "first")
    first.waits("no stream has the subject")
    leader = Leader(nats.url(SUBJECT))
    leader.load(500)
    late = follow(nats, "late")
    leader.load(500)
    leader.stop()
    calls = [equal(f.end()) for f in (first, late)]
    if calls[0] < 4000 or calls[0] != calls[1]:
        fail(f"{calls} calls")
    nats.kill()
    if spools():
        fail(f"left behind: {spools()}")


def child_named(pid, name):
    for p in os.listdir("/proc"):
        try:
            with open(f"/proc/{p}/stat") as f:
                words = f.read().rsplit(")", 1)
            if words[0].split("(", 1)[1] == name and int(words[1].split()[1]) == pid:
                return int(p)
        except (OSError, ValueError, IndexError):
            pass
    return None


def restarted():
    nats = Nats("nats-restarted")
    leader = Leader(nats.url(SUBJECT))
    follower = follow(nats, "cut")
    leader.load(200)
    for turn in range(3):
        nats.kill()
        leader.load(300)
        nats.start()
        leader.load(300)
        if turn == 1:
            os.kill(until(lambda: child_named(leader.process.pid, "mve-ship"), "no mve-ship"),
                    signal.SIGKILL)
        leader.load(100)
        until(lambda: '"waiting": 0' in leader.status(), "what waits is not shipped")
    leader.stop()
    calls = equal(follower.end())
    if calls < 8400:
        fail(f"{calls} calls")
    nats.kill()
    if spools():
        fail(f"left behind: {spools()}")


def cut():
    nats = Nats("nats-cut")
    here, there = Cutter(nats), Cutter(nats)
    leader = Leader(here.url(SUBJECT))
    follower = Session("follow-cut", "follow", "--from", there.url(SUBJECT), "-n",
                       f"ship-f-{os.getpid()}-cut")
    for n in range(int(os.environ.get("TURNS", "6"))):
        until(lambda: leader.load(20) or min(here.cuts, there.cuts) > n, "they are not cut",
              every=0.02)
    here.whole = there.whole = True
    until(lambda: '"waiting": 0' in leader.status(), "what waits is not shipped")
    leader.stop()
    calls = equal(follower.end())
    print(f"{calls} calls; cut {here.cuts} and {there.cuts} times", file=sys.stderr)
    nats.kill()
    if spools():
        fail(f"left behind: {spools()}")


def waiting(leader):
    return json.loads(leader.status())["ship"]["waiting"]


def behind():
    nats = Nats("nats-behind")
    cutter = Cutter(nats)
    leader = Leader(cutter.url(SUBJECT))
    cutter.most = 1         # nothing comes through a new connection
    until(lambda: leader.load(200) or waiting(leader) > 8 * PAYLOAD, "nothing waits", every=0)
    before = cutter.cuts
    cutter.most = 2 * PAYLOAD
    while left := waiting(leader):
        until(lambda: waiting(leader) < left, "what waits is not shipped")
    if cutter.cuts < before + 4:
        fail(f"cut {cutter.cuts - before} times")
    leader.stop()
    equal(follow(nats, "behind").end())
    nats.kill()


def gone():
    nats = Nats("nats-gone")
    leader = Leader(nats.url(SUBJECT), "--spool", "1M")
    leader.load(100)
    until(lambda: '"waiting": 0' in leader.status(), "nothing is shipped")
    nats.kill()
    until(lambda: '"state": "tries"' in leader.status(), "nobody says that it is gone")
    leader.load(100)
    until(lambda: '"waiting": 0' not in leader.status(), "nothing waits")
    until(lambda: leader.load(100) or "as much as --spool allows" in leader.said(),
          "what waits is not bounded", every=0)
    leader.load(100)
    leader.stop()
    if "are not shipped" not in leader.said() or spools():
        fail(f"{leader.said()} {spools()}")


def never():
    port = free_port()
    leader = Leader(f"nats://127.0.0.1:{port}/{SUBJECT}")
    leader.load(100)
    leader.waits("cannot ship")
    nats = Nats("nats-late", port=port)
    leader.waits(": ships to")
    leader.load(100)
    leader.stop()
    if equal(follow(nats, "never").end()) < 800:
        fail("not all of it")
    nats.kill()
    leader = Leader(f"nats://127.0.0.1:{port}/{SUBJECT}")
    leader.load(100)
    leader.stop()
    if "are not shipped" not in leader.said() or spools():
        fail(f"{leader.said()} {spools()}")


def captured(nats):
    """A session's messages, as they were sent."""
    peer = Peer(nats)
    peer.subscribe(SUBJECT)
    leader = Leader(nats.url(SUBJECT))
    for _ in range(3):      # so there are several
        leader.load(20)
        until(lambda: '"waiting": 0' in leader.status(), "it is not shipped")
    leader.stop()
    messages = [peer.hear()]
    while not HEAD.unpack(messages[-1][:HEAD.size])[FLAGS] & OVER:
        messages.append(peer.hear())
    return messages


def apart(whole):
    return list(HEAD.unpack(whole[:HEAD.size])), whole[HEAD.size:]


def follow_says(nats, subject, text, status=3):
    f = Session("follow-refused", "follow", "--from", nats.url(subject), "-n",
                f"ship-f-{os.getpid()}-refused")
    f.end(status)
    if text not in f.said():
        fail(f"not refused by {text!r}: {f.said()}")


def wrong_ones(messages):
    """Name, messages, what is said of them."""
    head, data = apart(messages[0])
    yield "alien", [b"GET / HTTP/1.1"], "not mve's"
    yield "short", [messages[0][:40]], "not mve's"
    yield "torn", [messages[0][:-9]], "torn"
    yield "flipped", [messages[0][:-9] + b"x" + messages[0][-8:]], "damaged"
    for i in range(VERSIONS.start, VERSIONS.stop):
        other = head[:]
        other[i] += 1
        yield f"version{i}", [message(other, data)], "another version of mve"
    second, more = apart(messages[1])
    second[RECORDING] ^= 1
    yield "other", [messages[0], message(second, more), messages[1]], "of another recording"
    again = head[:]
    again[RECORDING] ^= 1
    yield "begins", [messages[0], message(again, data), messages[1]], "another recording has begun"
    second, more = apart(messages[1])
    second[BYTES] -= 8
    yield "places", [messages[0], message(second, more), messages[1]], "does not go on"
    yield "middle", messages[1:2] + messages[1:2], "no longer in the stream"
    bad = data[:200] + bytes([data[200] ^ 1]) + data[201:]
    yield "frame", [message(head, bad), *messages[1:]], "a frame is damaged"
    yield "segment", [message(head, b"?" + data[1:]), *messages[1:]], "not a recording"


def refused():
    nats = Nats("nats-refused")
    messages = captured(nats)
    follow_says(nats, SUBJECT, "", 0)
    peer = Peer(nats)
    for name, row, text in wrong_ones(messages):
        subject = f"{SUBJECT}-{name}"
        peer.stream(f"s-{name}", subject)
        for one in row:
            peer.publish(subject, one)
        peer.settle()
        follow_says(nats, subject, text)
    nats.kill()


def changed():
    """Bytes within messages that are whole: refused, or equal; never different, nor a crash."""
    nats = Nats("nats-changed")
    messages = captured(nats)
    peer = Peer(nats)
    for turn in range(int(os.environ.get("TURNS", "20"))):
        subject = f"{SUBJECT}-{turn}"
        peer.stream(f"c-{turn}", subject)
        spoilt = random.Random(turn).randrange(len(messages) - 1)
        for i, one in enumerate(messages):
            head, data = apart(one)
            if i == spoilt:
                at = random.Random(turn).randrange(len(data))
                data = data[:at] + bytes([data[at] ^ 1 << turn % 8]) + data[at + 1:]
            peer.publish(subject, message(head, data))
        peer.settle()
        f = Session("follow-changed", "follow", "--from", nats.url(subject), "-n",
                    f"ship-f-{os.getpid()}-changed")
        # What fills up cells is of no account.
        f.end((0, 3))
    nats.kill()


def dropped():
    nats = Nats("nats-dropped")
    messages = captured(nats)
    subject = f"{SUBJECT}-dropped"
    peer = Peer(nats)
    peer.stream("s-dropped", subject)
    for one in (messages[0], messages[-1]):
        peer.publish(subject, one)
    peer.settle()
    follow_says(nats, subject, "no longer in the stream")
    nats.kill()


def killed():
    nats = Nats("nats-killed")
    leader = Leader(nats.url(SUBJECT))
    follower = follow(nats, "killed")
    last = None

    def another():
        pid = child_named(leader.process.pid, "mve-ship")
        return pid if pid != last else None     # the last one may not be waited for yet

    for _ in range(int(os.environ.get("TURNS", "20"))):
        last = until(another, "no mve-ship")
        leader.load(random.randrange(100))
        os.kill(last, signal.SIGKILL)
    until(lambda: '"waiting": 0' in leader.status(), "what waits is not shipped")
    leader.stop()
    equal(follower.end())
    nats.kill()
    if spools():
        fail(f"left behind: {spools()}")


def certificates():
    """An authority of ours, a server that is localhost, and a client."""
    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True)

    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem",
            "-subj", "/CN=mve test", "-days", "2")
    for name, more in (("server", "subjectAltName=DNS:localhost"),
                       ("client", "subjectAltName=DNS:client")):
        with open(f"{name}.ext", "w") as f:
            f.write(more + "\n")
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out",
                f"{name}.req", "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", f"{name}.req", "-CA", "ca.pem", "-CAkey", "ca.key",
                "-CAcreateserial", "-out", f"{name}.pem", "-days", "2", "-extfile", f"{name}.ext")


def context(name, **words):
    os.makedirs("config/nats/context", exist_ok=True)
    here = {k: f"{os.getcwd()}/{v}" for k, v in
            {"ca": "ca.pem", "cert": "client.pem", "key": "client.key"}.items()}
    with open(f"config/nats/context/{name}.json", "w") as f:
        json.dump({**here, "user": "shop", "password": "secret", **words}, f)


def secure():
    certificates()
    nats = Nats("nats-secure", f"""
        tls {{ cert_file: "{os.getcwd()}/server.pem", key_file: "{os.getcwd()}/server.key",
               ca_file: "{os.getcwd()}/ca.pem", verify: true }}
        authorization {{ user: shop, password: secret }}""")
    os.environ["XDG_CONFIG_HOME"] = os.getcwd() + "/config"
    here = f"nats://localhost:{nats.port}"
    context("good", url=here)
    context("password", url=here, password="other")
    context("nobody", url=here, cert="", key="")
    context("host", url=f"nats://127.0.0.1:{nats.port}")
    context("nkey", url=here, nkey="/nowhere")
    with open("config/nats/context.txt", "w") as f:
        f.write("good")
    follower = Session("follow-secure", "follow", "--from", f"nats:///{SUBJECT}", "-n",
                       f"ship-f-{os.getpid()}-secure")
    leader = Leader(f"nats:///{SUBJECT}")
    leader.load(200)
    leader.stop()
    equal(follower.end())
    for name, text in (("password", "neither name nor password"), ("nobody", "cannot connect"),
                       ("host", "SSL"), ("nkey", "which mve cannot do"), ("none", "cannot be read")):
        os.environ["NATS_CONTEXT"] = name
        leader = Leader(f"nats:///{SUBJECT}")
        leader.waits("cannot ship")
        if text not in leader.said():
            fail(f"{name}: {leader.said()}")
        leader.load(10)
        leader.stop()
    nats.kill()


def main():
    needed()
    os.environ["XDG_CACHE_HOME"] = os.path.abspath("cache")
    build("kv")
    cases = {"equal": equal_case, "restarted": restarted, "cut": cut, "behind": behind, "gone": gone,
             "never": never, "refused": refused, "changed": changed, "dropped": dropped, "killed": killed,
             "secure": secure}
    for name in sys.argv[1:]:
        cases[name]()
        print(f"{name}: ok")


main()
