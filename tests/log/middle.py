#!/usr/bin/env python3
"""middle.py CASE...: a session that runs is recorded from then on (mve record NAME DIR).

kv		a server of one thread, begun alone and with a follower; what it answers from
		memory was there before; stopped, recorded again, and replayed twice
redis		the same of redis-server under load
memcached	and of memcached, which has threads
images		another now and then: replayed through them, from each (--from, or where what
		is before is gone), and where the oldest parts go by themselves (--keep last)
packed		with its files in it: replayed where they are others; without, refused by name
gdb		under a debugger, forwards and back
killed		who writes the image, the twin, the recorder, the monitor, the disk: the server
		serves on, and what there is says what it is
refused		what has no image is said before anything is touched
damaged		an image that is cut, changed, missing, another's: refused by name
"""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import kv as kv_server
from kv import MVE, connect, fail, free_port, mve

EQUAL = re.compile(r"^replayed (\d+) calls, equal$", re.M)
NAME = f"middle-{os.getpid()}"
SERVERS = {
    "kv": lambda port: ["./server", str(port)],
    "redis": lambda port: ["redis-server", "--port", str(port), "--save", "",
                           "--enable-debug-command", "yes"],
    "memcached": lambda port: ["memcached", "-u", "root", "-t", "4", "-U", "0", "-p", str(port)],
}
# A request that stores, with its answer; one that asks, with its own.
TALK = {
    "kv": ("PUT {k} {v}\n", "OK\n", "GET {k}\n", "VALUE {v}\n"),
    "redis": ("SET {k} {v}\r\n", "+OK\r\n", "GET {k}\r\n", "${n}\r\n{v}\r\n"),
    "memcached": ("set {k} 0 0 {n}\r\n{v}\r\n", "STORED\r\n", "get {k}\r\n",
                  "VALUE {k} 0 {n}\r\n{v}\r\nEND\r\n"),
}


class Client:
    """A connection, and what the server is to answer on it."""
    def __init__(self, what, port):
        self.words = TALK[what]
        self.link = connect(port)
        self.file = self.link.makefile("rb")

    def ask(self, which, k, v):
        text, answer = (w.format(k=k, v=v, n=len(v)).encode()
                        for w in self.words[2 * which:2 * which + 2])
        self.link.sendall(text)
        got = self.file.read(len(answer))
        if got != answer:
            fail(f"{text} is answered with {got}, not {answer}")

    def put(self, k, v):
        self.ask(0, k, v)

    def get(self, k, v):
        self.ask(1, k, v)


class Load(threading.Thread):
    """Connections that come, talk and stay for a while."""
    def __init__(self, what, port, seed):
        super().__init__(daemon=True)
        self.what, self.port, self.seed = what, port, seed
        self.over = False
        self.turns = 0

    def run(self):
        dice = random.Random(self.seed)
        client = Client(self.what, self.port)
        while not self.over:
            k, v = f"k{self.seed}-{dice.randrange(40)}", "v" * dice.randrange(1, 90)
            client.put(k, v)
            client.get(k, v)
            self.turns += 1
            if not dice.randrange(50):
                client = Client(self.what, self.port)


class Session:
    def __init__(self, what, *more):
        self.what = what
        self.port = free_port()
        self.words = SERVERS[what](self.port)
        self.err = open(f"{NAME}.err", "w+")
        self.mve = subprocess.Popen([MVE, "run", "-n", NAME, *more, "--", *self.words],
                                    stdout=subprocess.DEVNULL, stderr=self.err)
        self.first = Client(what, self.port)
        self.first.put("early", "bird")
        self.loads = []

    def load(self, n):
        self.loads = [Load(self.what, self.port, i) for i in range(n)]
        for one in self.loads:
            one.start()

    def turns(self, n):
        """Each connection has so many more."""
        want = [one.turns + n for one in self.loads]
        while any(one.turns < w for one, w in zip(self.loads, want)):
            if not all(one.is_alive() for one in self.loads):
                fail("a client has given up")
            time.sleep(0.01)

    def rest(self):
        for one in self.loads:
            one.over = True
            one.join(60)
        self.loads = []

    def record(self, folder, *more, status=0):
        shutil.rmtree(folder, ignore_errors=True)
        return mve("record", NAME, folder, *more, status=status)

    def end(self):
        self.rest()
        mve("stop", NAME)
        self.mve.wait(60)
        self.err.seek(0)
        return self.err.read()


def replay(folder, *words, status=0):
    p = mve("replay", "-n", f"{NAME}-r", folder, *words, status=status)
    m = EQUAL.search(p.stdout)
    if bool(m) != (status == 0):
        fail(f"{folder}: replay says {p.stdout!r} {p.stderr!r}")
    return int(m[1]) if m else p.stderr


def looked(folder):
    """Nobody else may read it, and it is whole."""
    if os.stat(folder).st_mode & 0o777 != 0o700 or \
       any(os.stat(f"{folder}/{f}").st_mode & 0o777 != 0o600 for f in os.listdir(folder)):
        fail(f"others may read {folder}")
    mve("log", folder, "verify")
    return json.loads(mve("log", folder, "--json").stdout)


def stopped():
    """The recording that was to end has ended."""
    deadline = time.time() + 60
    while json.loads(mve("status", NAME, "--json").stdout)["recording"]["active"]:
        if time.time() > deadline:
            fail("it does not stop")
        time.sleep(0.02)


def twice(what, *more, threads=3, turns=150):
    """Recorded under load, stopped, recorded again, to the session's end."""
    s = Session(what, *more)
    s.load(threads)
    s.turns(turns)
    s.record("one.log")
    s.turns(turns)
    s.first.get("early", "bird")
    mve("record", NAME, "--stop")
    s.turns(turns)
    s.first.put("second", "chance")
    stopped()
    s.record("two.log", "--compress", "1")
    s.turns(turns)
    s.rest()
    s.first.get("early", "bird")
    s.first.get("second", "chance")
    said = s.end()
    if "dropped" in said or "failed" in said or "bug" in said:
        fail(said)
    for folder in "one.log", "two.log":
        looked(folder)
        calls = replay(folder)
        if calls < 2 * threads * turns or replay(folder) != calls:
            fail(f"{folder}: {calls} calls")


def kv():
    kv_server.build("server")
    twice("kv", turns=40)
    twice("kv", "-f", "same", "--spare", "1", turns=40)


def redis():
    twice("redis")


def memcached():
    twice("memcached")


def segments(folder):
    """The numbers of those that begin with an image that is there."""
    logs = sorted(f for f in os.listdir(folder) if f.endswith(".log"))
    heads = [int(f[:6]) for f in os.listdir(folder) if f.endswith(".image")]
    return len(logs), sorted(heads)


def until(what, why):
    deadline = time.time() + 100
    while not what():
        if time.time() > deadline:
            fail(why)
        time.sleep(0.05)


def talks_on(s, folder, images):
    s.load(3)
    until(lambda: segments(folder)[1][-1:] >= [images], f"{images} images do not come")
    s.turns(50)
    s.rest()
    s.first.get("early", "bird")


def images_of(what, begun=False):
    """begun: it is recorded from its start on, and the first image is a later one."""
    folder = f"images-{what}.log"
    shutil.rmtree(folder, ignore_errors=True)
    more = ["--images", "1s"]
    s = Session(what, *(["--record", folder, *more] if begun else []))
    if not begun:
        s.record(folder, *more)
    talks_on(s, folder, 3)
    said = s.end()
    if "no further image" in said or "dropped" in said:
        fail(said)
    parts, found = segments(folder)
    if parts < 4 or found[:4 - begun] != list(range(begun, 4)):
        fail(f"{parts} segments, images {found}")
    looked(folder)
    whole = replay(folder)
    late = replay(folder, "--from", "+100000")
    if late >= whole or not late or replay(folder, "--from", "+0") != whole:
        fail(f"{late} calls of {whole}")
    # The last event has the number that it has in all of them.
    last = int(mve("log", folder, "show").stdout.splitlines()[-2].split()[0])
    for more in [], ["--from", "+100000"]:
        stand(folder, last, *more)
    with open(f"{folder}/000002.image", "r+b") as f:
        f.seek(70000)
        f.write(b"wrong")
    if "000002.image" not in mve("log", folder, "verify", status=1).stderr:
        fail("verify does not see a later image")
    for gone in "000000.log", "000000.image", "000001.log", "000001.image":
        if os.path.exists(f"{folder}/{gone}"):
            os.unlink(f"{folder}/{gone}")
    if not late <= replay(folder) < whole:
        fail("without its beginning")


def stand(folder, event, *more):
    """It stands there, and goes on to its end."""
    p = subprocess.Popen([MVE, "replay", "-n", f"{NAME}-s", "--until", str(event), *more, folder],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while True:
        line = p.stderr.readline()
        if not line:
            fail(f"{more}: it does not stand at {event}")
        if f"stands at event {event}:" in line:
            break
    mve("go", f"{NAME}-s", "end")
    out, err = p.communicate(timeout=100)
    if not EQUAL.search(out):
        fail(f"{more}: {out} {err}")


def images():
    kv_server.build("server")
    images_of("kv")
    images_of("kv", begun=True)
    images_of("memcached")
    s = Session("redis")
    s.record("kept.log", "--images", "1s", "--max-size", "32M", "--keep", "last")
    s.load(2)
    n = 0
    while n < 3 or os.path.exists("kept.log/000000.log") or not segments("kept.log")[1]:
        for i in range(100):
            s.first.put(f"large{i}", "x" * 60000)
            time.sleep(0.005)   # no more than the disk is to bear
        n += 1
        if n > 1000:
            fail("nothing is dropped")
    s.rest()
    s.first.get("large7", "x" * 60000)
    s.end()
    if replay("kept.log") < 100:
        fail("what is kept is not replayed")


def packed():
    kv_server.build("server")
    s = Session("kv")
    s.record("pack.log")
    s.first.put("a", "b")
    s.first.get("early", "bird")
    s.end()
    mve("log", "pack.log", "pack")
    shutil.copytree("pack.log", "bare.log", dirs_exist_ok=True)
    shutil.rmtree("bare.log/files")
    os.unlink("bare.log/files.json")
    replay("bare.log")
    kv_server.build("server", lambda text: text.replace("VALUE", "VALUe"))
    if "/server is not there, or another" not in replay("bare.log", status=3):
        fail("another program goes on from it")
    replay("pack.log")


def gdb():
    kv_server.build("server")
    s = Session("kv")
    s.record("gdb.log")
    for i in range(30):
        s.first.put(f"k{i}", "v")
    s.end()
    shown = mve("log", "gdb.log", "show", "--call", "sendto").stdout.splitlines()
    stands, before = (int(line.split()[0]) for line in (shown[20], shown[19]))
    said = mve("replay", "-n", f"{NAME}-g", "--until", str(stands), "--gdb", "gdb.log",
               input="bt\nmve back call sendto\nmve next call sendto\nmve end\n").stdout
    seen = [int(n) for n in re.findall(r"event (\d+), thread", said)]
    if seen[:3] != [stands, before, stands] or " in client_serve (" not in said:
        fail(f"{stands}, {before}, {seen}: {said}")


def processes(parent):
    """(name, pid) of its children."""
    found = []
    try:
        with open(f"/proc/{parent}/task/{parent}/children") as f:
            for pid in f.read().split():
                with open(f"/proc/{pid}/comm") as g:
                    found.append((g.read().strip(), int(pid)))
    except OSError:     # one has ended
        pass
    return found


class Writing(threading.Thread):
    """mve record, while its image is written: that is held there, to be sure of it."""
    def __init__(self, s, folder):
        super().__init__()
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        self.monitor = json.loads(mve("status", NAME, "--json").stdout)["monitor"]
        self.result = None
        self.start()
        deadline = time.time() + 60
        self.image = self.recorder = None
        while not self.image or not self.recorder:
            children = dict(processes(self.monitor))
            if not self.image and "mve-image" in children:
                self.image = children["mve-image"]
                os.kill(self.image, signal.SIGSTOP)
            self.recorder = children.get("mve-record")
            if time.time() > deadline or not self.is_alive():
                fail(f"no image is written: {self.result}, {children}")
        if os.path.exists(f"{folder}/000000.image"):
            fail("it was written before it was held")

    def run(self):
        self.result = subprocess.run([MVE, "record", NAME, self.folder], capture_output=True,
                                     text=True)

    def over(self, status):
        self.join(100)
        if self.is_alive() or self.result.returncode != status:
            fail(f"mve record: {self.result}")
        return self.result.stderr


def served(s):
    """It serves, and who recorded it goes."""
    s.first.get("early", "bird")
    deadline = time.time() + 60
    while any(n in ("mve-image", "mve-record") for n, _ in processes(s.mve.pid)):
        if time.time() > deadline:
            fail("a process is left")
        time.sleep(0.02)


def cleaned(s, folder):
    """The same; nothing but whole files is left; it can be recorded again."""
    served(s)
    if "missing" not in replay(folder, status=1):
        fail("without an image")
    s.record("again.log")
    s.first.get("early", "bird")
    mve("record", NAME, "--stop")
    stopped()


def killed():
    s = Session("redis")
    s.first.link.sendall(b"DEBUG POPULATE 200000 key 1000\r\n")
    s.first.file.readline()
    w = Writing(s, "image.log")
    os.kill(w.image, signal.SIGKILL)
    if "who writes its image was killed" not in w.over(1):
        fail("mve record does not say why")
    cleaned(s, "image.log")
    replay("again.log")
    w = Writing(s, "twin.log")
    twin = [pid for name, pid in processes(w.monitor) if name == "redis-server" and
            pid != json.loads(mve("status", NAME, "--json").stdout)["server"]]
    if len(twin) != 1:
        fail(f"twins: {twin}")
    os.kill(twin[0], signal.SIGKILL)
    os.kill(w.image, signal.SIGCONT)
    w.over(1)
    cleaned(s, "twin.log")
    w = Writing(s, "recorder.log")
    os.kill(w.recorder, signal.SIGKILL)
    os.kill(w.image, signal.SIGCONT)
    w.over(1)
    served(s)
    w = Writing(s, "monitor.log")
    os.kill(w.monitor, signal.SIGKILL)
    os.kill(w.image, signal.SIGCONT)
    w.over(1)
    s.first.get("early", "bird")
    s.first.put("still", "serves")
    s.first.link.sendall(b"SHUTDOWN NOSAVE\r\n")
    s.mve.wait(60)


def refused():
    kv_server.build("server")
    s = Session("kv", "-f", "same")
    if "no place for a recorder" not in s.record("no.log", status=1).stderr:
        fail("without a row")
    if os.path.exists("no.log"):
        fail("something is left")
    s.end()
    s = Session("kv")
    os.makedirs("there.log", mode=0o700, exist_ok=True)
    open("there.log/000000.log", "w").close()
    if "a recording is there" not in mve("record", NAME, "there.log", status=1).stderr:
        fail("a folder with a recording")
    shutil.rmtree("there.log")
    s.record("yes.log")
    if "recorded already" not in s.record("more.log", status=1).stderr:
        fail("twice at once")
    mve("record", NAME, status=2)
    for bad in ("", ".", "..", "x/."):
        mve("record", NAME, bad, status=2)
    mve("record", "nobody-has-this-name", "x.log", status=1)
    s.first.get("early", "bird")
    s.end()
    if "its own program" not in replay("yes.log", "--", "true", status=2):
        fail("another program")
    replay("yes.log")


def damaged():
    """Each of these is said of the image by its name; and then it is whole again."""
    kv_server.build("server")
    s = Session("kv")
    s.record("good.log")
    s.first.get("early", "bird")
    s.end()
    with open("good.log/000000.image", "rb") as f:
        image = f.read()
    dice = random.Random(7)
    whole = dice.sample(range(len(image)), 60) + list(range(0, 64, 4))
    tried = [(image[:at], "cut") for at in dice.sample(range(len(image)), 12)] + \
            [(image[:at] + bytes([image[at] ^ 1 << at % 8]) + image[at + 1:], at) for at in whole]
    for text, how in tried + [(image + b"x", "longer"), (b"", "empty")]:
        shutil.rmtree("bad.log", ignore_errors=True)
        shutil.copytree("good.log", "bad.log")
        with open("bad.log/000000.image", "wb") as f:
            f.write(text)
        if "its image 000000.image " not in replay("bad.log", status=1):
            fail(f"{how}: not refused by name")
        if how in ("cut", "longer") and not \
           mve("log", "bad.log", "verify", status=1).stderr.count("000000.image"):
            fail("verify says nothing")
    os.unlink("bad.log/000000.image")
    if "is missing" not in replay("bad.log", status=1):
        fail("missing")
    replay("good.log")


for case in sys.argv[1:]:
    {"kv": kv, "redis": redis, "memcached": memcached, "refused": refused,
     "damaged": damaged, "packed": packed, "images": images, "gdb": gdb, "killed": killed}[case]()
    print(f"{case}: as it should be")
print("middle: ok")
