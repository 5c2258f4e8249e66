#!/usr/bin/env python3
"""middle.py CASE...: a session that runs is recorded from then on (mve record NAME DIR).

kv		a server of one thread, begun alone and with a follower; what it answers from
		memory was there before; stopped, recorded again, and replayed twice
beside		and of one that was begun with a follower alone
shelf		and of one whose libraries were used before: their patched code lies on the shelf
redis		the same of redis-server under load
memcached	and of memcached, which has threads
images		another now and then: replayed through them, from each (--from, or where what
		is before is gone)
kept		where the oldest parts go by themselves (--keep last): what is left is replayed,
		however much comes between two images
forks		of a server with a process for each connection, and memory that all share
apart		each of whose processes is begun long behind the one before: they go on together,
		and nobody traces them any more
nginx		of a master that is root, and workers that are not; reloaded
rights		of one that has given up root
saving		of Redis and the child that writes its memory down
packed		with its files in it: replayed where they are others; without, refused by name
gdb		under a debugger, forwards and back
killed		who writes the image, the twin, the recorder, the monitor, the disk: the server
		serves on, and what there is says what it is
killed_some	the same of several processes: who writes, and the second copy
refused		what has no image is said before anything is touched
damaged		an image that is cut, changed, missing, another's: refused by name
damaged_some	and one of several files
damaged_later	and one of several images: nothing is passed over for it
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
HERE = os.path.dirname(os.path.abspath(__file__))
CONF = """user www-data;
worker_processes 2;
daemon off;
pid {here}/nginx.pid;
error_log {here}/nginx.err;
events {{ worker_connections 64; }}
http {{
    access_log off;
    keepalive_requests 1000000;
    server {{ listen 127.0.0.1:{port}; location / {{ return 200 "hello\\n"; }} }}
}}
"""


def nginx_words(port):
    with open("nginx.conf", "w") as f:
        f.write(CONF.format(here=os.getcwd(), port=port))
    return ["nginx", "-e", f"{os.getcwd()}/nginx.err", "-c", f"{os.getcwd()}/nginx.conf"]


def redis_words(port):
    return ["redis-server", "--port", str(port), "--save", "", "--enable-debug-command", "yes"]


SERVERS = {
    "kv": lambda port: ["./server", str(port)],
    "shelf": lambda port: ["sh", "-c", f"/bin/true; exec ./server {port}"],
    "redis": redis_words,
    "saving": lambda port: [*redis_words(port), "--rdb-key-save-delay", "20000",
                            "--dbfilename", f"saved-{port}.rdb"],
    "forker": lambda port: ["./forker", str(port)],
    "nginx": nginx_words,
    "nobody": lambda port: ["memcached", "-u", "nobody", "-t", "2", "-U", "0", "-p", str(port)],
    "memcached": lambda port: ["memcached", "-u", "root", "-t", "4", "-U", "0", "-p", str(port)],
}
# A request that stores, with its answer; one that asks, with its own.
TALK = {
    "kv": ("PUT {k} {v}\n", "OK\n", "GET {k}\n", "VALUE {v}\n"),
    "redis": ("SET {k} {v}\r\n", "+OK\r\n", "GET {k}\r\n", "${n}\r\n{v}\r\n"),
    "memcached": ("set {k} 0 0 {n}\r\n{v}\r\n", "STORED\r\n", "get {k}\r\n",
                  "VALUE {k} 0 {n}\r\n{v}\r\nEND\r\n"),
}

TALK["saving"] = TALK["redis"]
TALK["shelf"] = TALK["kv"]
TALK["nobody"] = TALK["memcached"]


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


class Counter:
    """Of a server with a process for each connection, which says how often it was asked."""
    def __init__(self, what, port):
        self.link = connect(port)
        self.file = self.link.makefile("rb")
        self.asked = 0

    def put(self, k, v):
        self.asked += 1
        self.link.sendall(b"request\n")
        got = self.file.readline().split()
        if not got or int(got[0]) != self.asked:
            fail(f"{got}, not {self.asked}")

    get = put


class Getter:
    """Of a web server, whose worker may be told to end behind any answer."""
    def __init__(self, what, port):
        self.port = port
        self.begin()

    def begin(self):
        self.link = connect(self.port)
        self.file = self.link.makefile("rb")

    def ask(self):
        self.link.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        head = []
        for line in iter(self.file.readline, b"\r\n"):
            if not line:
                return False
            head.append(line.lower().strip())
        if self.file.read(6) != b"hello\n":
            fail(f"answered with {head}")
        return b"connection: close" not in head

    def put(self, k, v):
        try:
            again = self.ask()
        except ConnectionError:
            again = False
        if not again:
            self.begin()

    get = put


CLIENT = {"forker": Counter, "nginx": Getter}


def client_of(what, port):
    return CLIENT.get(what, Client)(what, port)


class Load(threading.Thread):
    """Connections that come, talk and stay for a while."""
    def __init__(self, what, port, seed):
        super().__init__(daemon=True)
        self.what, self.port, self.seed = what, port, seed
        self.over = False
        self.turns = 0

    def run(self):
        dice = random.Random(self.seed)
        client = client_of(self.what, self.port)
        while not self.over:
            k, v = f"k{self.seed}-{dice.randrange(40)}", "v" * dice.randrange(1, 90)
            client.put(k, v)
            client.get(k, v)
            self.turns += 1
            if not dice.randrange(50):
                client = client_of(self.what, self.port)


class Session:
    def __init__(self, what, *more):
        self.what = what
        self.port = free_port()
        self.words = SERVERS[what](self.port)
        self.err = open(f"{NAME}.err", "w+")
        self.mve = subprocess.Popen([MVE, "run", "-n", NAME, *more, "--", *self.words],
                                    stdout=subprocess.DEVNULL, stderr=self.err)
        self.first = client_of(what, self.port)
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


def well(said):
    """A hint names what might be dropped: how fast the machine is decides whether one comes."""
    if re.search(r"^mve: .*(dropped|failed|bug)", said, re.M):
        fail(said)


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
    s.record("two.log", "--compress", "1")
    s.turns(turns)
    s.rest()
    s.first.get("early", "bird")
    s.first.get("second", "chance")
    said = s.end()
    well(said)
    for folder in "one.log", "two.log":
        looked(folder)
        calls = replay(folder)
        if calls < 2 * threads * turns or replay(folder) != calls:
            fail(f"{folder}: {calls} calls")


def kv():
    kv_server.build("server")
    twice("kv", turns=40)
    twice("kv", "-f", "same", "--spare", "1", turns=40)


def beside():
    kv_server.build("server")
    twice("kv", "-f", "same", turns=40)


def shelf():
    kv_server.build("server")
    twice("shelf", turns=40)


def redis():
    twice("redis")


def memcached():
    twice("memcached")


def forker_build():
    subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", "-o", "forker",
                    os.path.join(HERE, "../late/forker.c")], check=True)


def files(folder, image=0):
    """Of an image: one a process."""
    return sorted(f for f in os.listdir(folder) if re.fullmatch(rf"{image:06}(\.\d+)?\.image", f))


def forks():
    forker_build()
    twice("forker", turns=20)
    if len(files("one.log")) < 4:
        fail(f"{files('one.log')}: fewer than processes")
    # A process' end may stand behind the event at which its parent has heard of it.
    images_of("forker", stands=False)


# Each program that mve begins comes a while later than the one before.
LATER = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>
int execve(const char *path, char *const *argv, char *const *env)
{
	int (*real)(const char *, char *const *, char *const *) = dlsym(RTLD_NEXT, "execve");
	int fd = open("later", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (write(fd, "", 1) == 1)
		usleep(300000 * (lseek(fd, 0, SEEK_CUR) - 1));
	return real(path, argv, env);
}
"""


def untraced(server):
    """All processes of its session, of which there are four."""
    seen = 0
    for one in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{one}/status") as f:
                tracer = re.search(r"^TracerPid:\s*(\d+)", f.read(), re.M)[1]
            if os.getsid(int(one)) != os.getsid(server):
                continue
            seen += 1
            if tracer != "0":
                fail(f"{one} is traced by {tracer}")
        except OSError:
            pass
    if seen < 4:
        fail(f"{seen} processes")


def apart():
    forker_build()
    s = Session("forker")
    more = [client_of("forker", s.port) for _ in range(2)]
    for one in more:
        one.put("any", "thing")
    s.record("apart.log")
    for i in range(20):
        for one in more:
            one.put("any", "thing")
    well(s.end())
    if len(files("apart.log")) != 4:
        fail(f"{files('apart.log')}")
    with open("later.c", "w") as f:
        f.write(LATER)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "later.so", "later.c"], check=True)
    later = {**os.environ, "LD_PRELOAD": f"{os.getcwd()}/later.so"}
    p = mve("replay", "-n", f"{NAME}-r", "apart.log", env=later)
    if not EQUAL.search(p.stdout) or os.path.getsize("later") < 4:
        fail(f"{os.path.getsize('later')} programs: {p.stdout}{p.stderr}")
    os.unlink("later")
    stand("apart.log", 20, look=untraced)


def nginx():
    s = Session("nginx")
    s.load(3)
    s.turns(20)
    s.record("nginx.log")
    s.turns(50)
    with open("nginx.pid") as f:
        os.kill(int(f.read()), signal.SIGHUP)
    s.turns(200)
    s.rest()
    said = s.end()
    well(said)
    looked("nginx.log")
    calls = replay("nginx.log")
    if len(files("nginx.log")) != 3 or calls < 3 * 250 or replay("nginx.log") != calls:
        fail(f"{files('nginx.log')}, {calls} calls")
    users("nginx.log")
    images_of("nginx", stands=False)


def users(folder):
    """What is replayed has the rights that it had: at an event before the reload."""
    seen = []

    def look(pid):
        for one in os.listdir("/proc"):
            try:
                with open(f"/proc/{one}/cmdline") as f, open(f"/proc/{one}/status") as g:
                    if f.read().startswith("nginx: ") and str(os.getsid(pid)) == \
                       str(os.getsid(int(one))):
                        seen.append(int(re.search(r"Uid:\s*(\d+)", g.read())[1]))
            except (OSError, ValueError):
                pass
    stand(folder, 100, look=look)
    if 0 not in seen or not any(seen):
        fail(f"users {seen}")


def rights():
    twice("nobody")


def saving():
    s = Session("saving")
    for i in range(300):
        s.first.put(f"k{i}", "v")
    s.first.link.sendall(b"BGSAVE\r\n")
    if not s.first.file.readline().startswith(b"+Background saving"):
        fail("it does not save")
    s.record("saving.log")
    s.first.get("early", "bird")
    until(lambda: os.path.exists(f"saved-{s.port}.rdb"), "it is not saved")
    for i in range(20):
        s.first.get("early", "bird")
    s.end()
    if len(files("saving.log")) != 2 or replay("saving.log") < 40:
        fail(f"{files('saving.log')}")


def segments(folder):
    """The numbers of those that begin with an image that is there."""
    logs = sorted(f for f in os.listdir(folder) if f.endswith(".log"))
    heads = [int(f[:6]) for f in os.listdir(folder) if re.fullmatch(r"\d+\.image", f)]
    return len(logs), sorted(heads)


def until(what, why):
    deadline = time.time() + 100
    while not what():
        if time.time() > deadline:
            fail(why)
        time.sleep(0.05)


def image_now():
    said = json.loads(mve("status", NAME, "--json").stdout)["recording"].get("image", {})
    return said.get("number", -1), said.get("state")


def talks_on(s, images):
    """One that is still written as the session ends is none: the recording ends before."""
    s.load(3)
    until(lambda: image_now() >= (images, "written"), f"{images} images do not come")
    s.turns(50)
    s.rest()
    s.first.get("early", "bird")
    mve("record", NAME, "--stop")
    until(lambda: image_now()[1] == "written", "the last image is not written")


def images_of(what, begun=False, stands=True):
    """begun: it is recorded from its start on, and the first image is a later one."""
    folder = f"images-{what}.log"
    shutil.rmtree(folder, ignore_errors=True)
    more = ["--images", "1s"]
    s = Session(what, *(["--record", folder, *more] if begun else []))
    if not begun:
        s.record(folder, *more)
    talks_on(s, 3)
    said = s.end()
    well(said)
    if "no further image" in said:
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
    for more in ([], ["--from", "+100000"]) if stands else ():
        stand(folder, last, *more)
    with open(f"{folder}/000002.image", "r+b") as f:
        f.seek(70000)
        f.write(b"wrong")
    if "000002.image" not in mve("log", folder, "verify", status=1).stderr:
        fail("verify does not see a later image")
    os.rename(f"{folder}/000002.image", "away.image")
    if "its image 000002.image is not there" not in mve("log", folder, "verify").stderr:
        fail("verify does not miss a later image")
    os.rename("away.image", f"{folder}/000002.image")
    for gone in os.listdir(folder):
        if gone[:6] in ("000000", "000001"):
            os.unlink(f"{folder}/{gone}")
    if "its image 000002.image " not in replay(folder, status=3):
        fail("without its beginning")
    left = replay(folder, "--from", "+100000")
    if left != late:
        fail(f"without its beginning: {left} calls, not {late}")


def stand(folder, event, *more, look=None):
    """It stands there, where it is looked at, and goes on to its end."""
    p = subprocess.Popen([MVE, "replay", "-n", f"{NAME}-s", "--until", str(event), *more, folder],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = ""
    while True:
        line = p.stderr.readline()
        said += line
        if not line:
            fail(f"{more}: it does not stand at {event}: {said}{p.stdout.read()}")
        if f"stands at event {event}:" in line:
            break
    if look:
        look(int(re.search(r"pid (\d+)", line)[1]))
    mve("go", f"{NAME}-s", "end")
    out, err = p.communicate(timeout=100)
    if not EQUAL.search(out):
        fail(f"{more}: {out} {err}")


def images():
    kv_server.build("server")
    images_of("kv")
    images_of("kv", begun=True)
    images_of("memcached")


def kept():
    """What is left can be replayed, however much comes between two images."""
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
    said = s.end()
    if "recording ends" in said:
        fail(said)
    if replay("kept.log") < 100:
        fail("what is kept is not replayed")
    if not re.search(r"^dropped .*: it is replayed from \d{6}\.log on$",
                     mve("log", "kept.log").stdout, re.M):
        fail("mve log does not say that it is replayed")
    mve("log", "kept.log", "verify")
    seldom()


def seldom():
    """None comes, for who writes the second is held: it ends where twice as much is there."""
    s = Session("redis")
    s.record("seldom.log", "--images", "1h", "--max-size", "32M", "--keep", "last")
    until(lambda: segments("seldom.log")[1], "its image is not written")
    monitor, ended, held = s.mve.pid, False, None
    while not ended:
        for i in range(100):
            s.first.put(f"large{i}", "x" * 60000)
            held = held or held_image(monitor)
        status = json.loads(mve("status", NAME, "--json").stdout)["recording"]
        ended = not status["active"]
        if status["bytes"] > 2 * 32 << 20:
            fail(f"{status}")
    if not held or "no image in time" not in status["ended"]:
        fail(f"{status}, {held}")
    os.kill(held, signal.SIGCONT)
    s.first.get("large7", "x" * 60000)
    s.end()
    if replay("seldom.log") < 100:
        fail("what is left is not replayed")


def held_image(monitor):
    for name, pid in processes(monitor):
        if name == "mve-image":
            os.kill(pid, signal.SIGSTOP)
            return pid
    return None


def packed():
    kv_server.build("server")
    s = Session("kv")
    s.record("pack.log")
    s.first.put("a", "b")
    s.first.get("early", "bird")
    s.end()
    for what in ["connections"], ["export", "--pcap", "pack.pcap"]:
        if "from before it was recorded are not among these" not in \
           mve("log", "pack.log", *what).stderr:
            fail(f"{what}: nothing is said of the connection")
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

    def over(self, *status):
        self.join(100)
        if self.is_alive() or self.result.returncode not in status:
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
    if "missing" not in replay(folder, status=3):
        fail("without an image")
    s.record("again.log")
    s.first.get("early", "bird")
    mve("record", NAME, "--stop")


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
    w.over(1, 3)    # it may have answered by then that it has begun, or not
    s.first.get("early", "bird")
    s.first.put("still", "serves")
    s.first.link.sendall(b"SHUTDOWN NOSAVE\r\n")
    s.mve.wait(60)


def of_port(port):
    """Processes of Redis that have this port, and whose children they are."""
    found = {}
    for one in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{one}/cmdline") as f, open(f"/proc/{one}/stat") as g:
                if re.match(rf"redis.*:{port}\b", f.read()):
                    found[int(one)] = int(g.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            pass
    return found


def killed_some():
    """Two processes: of the second copy the kernel has whom it gives orphans as its parent."""
    s = Session("saving")
    s.first.link.sendall(b"DEBUG POPULATE 200000 key 1000\r\n")
    s.first.file.readline()
    s.first.link.sendall(b"BGSAVE\r\n")
    s.first.file.readline()
    server = json.loads(mve("status", NAME, "--json").stdout)["server"]
    w = Writing(s, "image.log")
    os.kill(w.image, signal.SIGKILL)
    if "who writes its image was killed" not in w.over(1):
        fail("mve record does not say why")
    copies_gone(s, server)
    if os.listdir("image.log") != ["000000.log"]:
        fail(f"{os.listdir('image.log')} is left")
    w = Writing(s, "twin.log")
    copies = [pid for pid, parent in of_port(s.port).items()
              if server not in (pid, parent) and parent != w.monitor]
    if len(copies) != 1:
        fail(f"copies: {copies}")
    os.kill(copies[0], signal.SIGKILL)
    os.kill(w.image, signal.SIGCONT)
    w.over(1)
    copies_gone(s, server)
    s.record("again.log")
    s.first.get("early", "bird")
    mve("record", NAME, "--stop")
    if len(files("again.log")) != 2:
        fail(f"{files('again.log')}")
    replay("again.log")
    s.end()


def copies_gone(s, server):
    served(s)
    until(lambda: not [p for p, parent in of_port(s.port).items() if server not in (p, parent)],
          "a copy is left")


def refused():
    kv_server.build("server")
    s = Session("kv", *["-f", "same"] * 6)
    if "the recorder's place is taken" not in s.record("no.log", status=1).stderr:
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
        if "its image 000000.image " not in replay("bad.log", status=3):
            fail(f"{how}: not refused by name")
        if how in ("cut", "longer") and not \
           mve("log", "bad.log", "verify", status=1).stderr.count("000000.image"):
            fail("verify says nothing")
    os.unlink("bad.log/000000.image")
    if "is missing" not in replay("bad.log", status=3):
        fail("missing")
    replay("good.log")


def damaged_some():
    """Each file is looked at, and that they are of one image."""
    forker_build()
    s = Session("forker")
    stays = client_of("forker", s.port)     # as the first does; of the others none may be there
    stays.put("early", "bird")
    s.load(2)
    s.turns(3)
    s.record("good.log", "--images", "1s")
    until(lambda: segments("good.log")[1][-1:] >= [1], "no image comes")
    s.rest()
    s.end()
    names = files("good.log")
    if len(names) < 3:
        fail(f"{names}")
    dice = random.Random(9)
    for name in names:
        with open(f"good.log/{name}", "rb") as f:
            image = f.read()
        bad = [image[:dice.randrange(len(image))], image + b"x", None]
        for at in dice.sample(range(len(image)), 8):
            bad.append(image[:at] + bytes([image[at] ^ 1 << at % 8]) + image[at + 1:])
        other = name.replace("000000", "000001")
        if "." in name[:-6] and os.path.exists(f"good.log/{other}"):
            with open(f"good.log/{other}", "rb") as f:
                bad.append(f.read())
        for n, text in enumerate(bad):
            changed(name, text, n)
    replay("good.log")


def damaged_later():
    """What is behind is replayed where that is asked for, and not by itself."""
    kv_server.build("server")
    s = Session("kv")
    s.record("good.log", "--images", "1s")
    talks_on(s, 2)
    s.end()
    whole, late = replay("good.log"), replay("good.log", "--from", "+100000")
    for last in False, True:
        name = f"{segments('good.log')[1][-1] if last else 0:06}.image"
        with open(f"good.log/{name}", "rb") as f:
            image = f.read()
        for text in image[:-1], image[:70000] + b"wrong" + image[70005:], None:
            changed_one("good.log", name, text)
            p = mve("log", "bad.log", "verify", status=1 if text or not last else 0)
            if name not in p.stderr:
                fail(f"{name}: verify says nothing")
            (asked_earlier if last else refused_first)(name, whole, late)
    beginning_lost(late)


def refused_first(name, whole, late):
    for more in [], ["--partial"], ["--from", "+0"]:
        if f"its image {name} " not in replay("bad.log", *more, status=3):
            fail(f"{more}: not refused by name")
    if replay("bad.log", "--from", "+100000") != late:
        fail("what is asked for is not begun with")


def asked_earlier(name, whole, late):
    p = mve("replay", "-n", f"{NAME}-r", "bad.log", "--from", "+100000")
    m = EQUAL.search(p.stdout)
    if not m or not late < int(m[1]) < whole or f"its image {name} " not in p.stderr:
        fail(f"{name}: {p.stdout}{p.stderr}")
    if replay("bad.log") != whole:
        fail(f"{name}: from its beginning on")


def beginning_lost(late):
    """Nothing was dropped, so it is missing: what is behind is true, and not all."""
    shutil.rmtree("bad.log", ignore_errors=True)
    shutil.copytree("good.log", "bad.log")
    os.unlink("bad.log/000000.log")
    why = "not whole: what is before segment 000001.log is missing"
    if why not in mve("log", "bad.log", "verify", status=1).stderr:
        fail("verify does not miss it")
    for more, status in ([], 3), (["--partial"], 0):
        p = mve("replay", "-n", f"{NAME}-r", *more, "bad.log", status=status)
        if why not in p.stderr or "equal from there on" not in p.stdout:
            fail(f"{more}: {p.stdout}{p.stderr}")
    if replay("bad.log", "--from", "+100000") != late:
        fail("what is asked for is all there")
    if "missing      the segment before them: it is replayed from 000001.log on" not in \
       mve("log", "bad.log").stdout:
        fail(mve("log", "bad.log").stdout)


def changed_one(folder, name, text):
    shutil.rmtree("bad.log", ignore_errors=True)
    shutil.copytree(folder, "bad.log")
    os.unlink(f"bad.log/{name}")
    if text is not None:
        with open(f"bad.log/{name}", "wb") as f:
            f.write(text)


def changed(name, text, n):
    shutil.rmtree("bad.log", ignore_errors=True)
    shutil.copytree("good.log", "bad.log")
    for later in os.listdir("bad.log"):
        if later[:6] != "000000":
            os.unlink(f"bad.log/{later}")
    os.unlink(f"bad.log/{name}")
    if text is not None:
        with open(f"bad.log/{name}", "wb") as f:
            f.write(text)
    if f"its image {name} " not in replay("bad.log", status=3):
        fail(f"{name}, {n}: not refused by name")


for case in sys.argv[1:]:
    {"kv": kv, "beside": beside, "shelf": shelf, "forks": forks, "apart": apart, "nginx": nginx, "rights": rights, "saving": saving,
     "killed_some": killed_some, "damaged_some": damaged_some,
     "damaged_later": damaged_later, "kept": kept, "redis": redis, "memcached": memcached, "refused": refused,
     "damaged": damaged, "packed": packed, "images": images, "gdb": gdb, "killed": killed}[case]()
    print(f"{case}: as it should be")
print("middle: ok")
