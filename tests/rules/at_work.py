"""Rules on running followers: the two versions of servers/kv.

at_work.py WHAT, in an empty folder.  Environment as tests/run sets it: MVE,
MVE_SESSION, XDG_RUNTIME_DIR.  Ends with 0 when all held.
"""
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MVE = os.environ.get("MVE", os.path.join(ROOT, "build/mve"))
NAME = os.environ.get("MVE_SESSION", "at-work")
RULES = os.path.join(ROOT, "rules/kv")
LOAD_S = 3
BEGIN_S = 20


def check(held, text):
    if not held:
        raise SystemExit(f"at_work: {text}")


def build(version):
    out = os.path.abspath(f"kv-{version}")
    if not os.path.exists(out):
        subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", "-o", out,
                        f"{ROOT}/servers/kv/{version}.c"], check=True)
    return out


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Session:
    def __init__(self, leader, follower, *args, before=()):
        self.port = free_port()
        command = [MVE, "run", "--when-full", "block", "-n", NAME, *before,
                   "-f", f"{build(follower)} {self.port}", *args, "--", build(leader),
                   str(self.port)]
        self.log = open("session.log", "w+")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        end = time.monotonic() + BEGIN_S
        while not self.listens() or self.follower().get("role") != "follower":
            if time.monotonic() > end or self.process.poll() is not None:
                self.process.kill()
                check(False, "does not begin")
            time.sleep(0.05)

    def listens(self):
        with open("session.log") as log:
            return "ready on port" in log.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)

    def follower(self, name="f1"):
        p = subprocess.run([MVE, "status", NAME, "--json"], capture_output=True, text=True)
        if p.returncode:
            return {}
        return next((v for v in json.loads(p.stdout)["versions"] if v["name"] == name), {})

    def client(self):
        return socket.create_connection(("127.0.0.1", self.port), 10)

    def holds(self, name="f1"):
        """The follower is there, and has read all."""
        end = time.monotonic() + 10
        while time.monotonic() < end:
            f = self.follower(name)
            check(f.get("role") == "follower", f"dropped: {f}\n{open('session.log').read()}")
            if not f.get("lag_bytes", f.get("behind_bytes", 0)):
                return
            time.sleep(0.1)
        check(False, f"stays behind: {f}")

    def drops(self, text):
        end = time.monotonic() + 10
        while self.follower().get("role") == "follower":
            check(time.monotonic() < end, "is not dropped")
            time.sleep(0.05)
        said = open("session.log").read()
        check(text in said, f"{text!r} is not in: {said}")


def ask(s, request, n=1):
    s.sendall(request)
    reply = b""
    while reply.count(b"\n") < n:
        more = s.recv(65536)
        check(more, "the server closed the connection")
        reply += more
    return reply.decode().splitlines()


def single(session, put, seconds=LOAD_S):
    """One request at a time."""
    end, n, s = time.monotonic() + seconds, 0, session.client()
    while time.monotonic() < end:
        check(ask(s, b"%s k%d v %d\n" % (put, n % 50, n)) == ["OK"], "PUT")
        check(ask(s, b"GET k%d\n" % (n % 50)) == [f"VALUE v {n}"], "GET")
        n += 1
    return n


def pieces(session, seconds=LOAD_S):
    """Several requests in one piece, and some of them cut anywhere."""
    end, n, r = time.monotonic() + seconds, 0, random.Random(1)
    while time.monotonic() < end:
        with session.client() as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(30):
                kinds = [r.choice([("PUT a%d b c", "OK"), ("PUT-string a%d b", "ERROR unknown request"),
                                   ("TYPE a%d", "ERROR unknown request"),
                                   ("PUTX a%d", "ERROR unknown request")]) for _ in range(5)]
                text = "".join(k[0] % r.randrange(9) + "\n" for k in kinds).encode()
                cut = r.randrange(1, len(text))
                if r.random() < .5:
                    s.sendall(text[:cut])
                    time.sleep(.001)
                    text = text[cut:]
                check(ask(s, text, len(kinds)) == [k[1] for k in kinds], "replies")
                n += len(kinds)
    return n


def old_leads():
    with Session("v1", "v2", "--rules", f"{RULES}/kv.rules") as s:
        n = single(s, b"PUT")
        check(ask(s.client(), b"TYPE k1\n") == ["ERROR unknown request"], "TYPE")
        check(ask(s.client(), b"PUT-number k1 5\n") == ["ERROR unknown request"], "PUT-number")
        s.holds()
    print(f"v1 leads, v2 follows: {n} pairs of requests")


def new_leads():
    with Session("v2", "v1", "--rules", f"{RULES}/kv.rules", "--older") as s:
        n = single(s, b"PUT-string")
        s.holds()
    print(f"v2 leads, v1 follows: {n} pairs of requests")


def in_pieces():
    with Session("v1", "v2", "--rules", f"{RULES}/stream.rules") as s:
        n = pieces(s)
        s.holds()
    print(f"pipelined and cut: {n} requests")


def load_over(session, promote, seconds=LOAD_S):
    """One request at a time on two connections; a promotion in the middle."""
    end, n, promoted = time.monotonic() + seconds, 0, False
    clients = [session.client(), session.client()]
    while time.monotonic() < end:
        s = clients[n % 2]
        if not promoted:
            check(ask(s, b"PUT k%d v %d\n" % (n % 50, n)) == ["OK"], "PUT")
        else:
            check(ask(s, b"PUT-string k%d v %d\n" % (n % 50, n)) == ["OK"], "PUT-string")
        check(ask(s, b"GET k%d\n" % (n % 50)) == [f"VALUE v {n}"], "GET")
        n += 1
        if not promoted and time.monotonic() > end - seconds / 2:
            promoted = True
            check(not subprocess.run([MVE, "promote", NAME, *promote]).returncode, "promote")
    return n


def turned(*args, before=()):
    """After a promotion the rules of the other direction are in force."""
    with Session("v1", "v2", *args, before=before) as s:
        n = load_over(s, ["f1", "--keep"])
        s.holds("v0")
    return n


def promoted():
    n = turned("--rules", f"{RULES}/kv.rules")
    print(f"v1 leads, then v2, and v1 follows: {n} pairs of requests")


def releases():
    with open(f"{RULES}/kv.rules") as f, open("releases.rules", "w") as to:
        text = f.read().replace("@old", "@leader 1 @follower 2.0").replace("@new", "@leader 2.0")
        to.write(text)
    with open(f"{RULES}/kv.h") as f, open("kv.h", "w") as to:
        to.write(f.read())
    turned("--release", "2.0", "--rules", "releases.rules", before=("--release", "1"))
    with Session("v1", "v2", "--release", "2.1", "--rules", "releases.rules",
                 before=("--release", "1")) as s:
        single(s, b"PUT", .5)
        s.drops("diverged")


def without():
    with Session("v1", "v2") as s:
        single(s, b"PUT", .5)
        s.drops("diverged")
    with Session("v2", "v1") as s:
        single(s, b"PUT-string", .5)
        s.drops("diverged")


def faulty(name, guard, text):
    with open(name, "w") as f:
        f.write("// a comment\nrule bad recvfrom(fd, s, _, _, _, _) {\n"
                f"\t{guard}\n}} as r => r\n")
    with Session("v1", "v1", "--rules", name) as s:
        n = single(s, b"PUT", 3)
        s.drops(text)
        check(single(s, b"PUT", .2), "the leader serves on")
    return n


def faults():
    faulty("fault.rules", "return view_len($(s)) > 5 && *(volatile int *)(view_len($(s)) * 16);",
           "rule bad (fault.rules:2): it touched memory")
    faulty("loop.rules", "for (volatile int i = 0; view_len($(s)) > 5; i++) ; return 0;",
           "rule bad (loop.rules:2): it ran for more than a second")
    faulty("divide.rules", "volatile int z = view_len($(s)) < 6; return 7 / z == 3;",
           "rule bad (divide.rules:2): it divided by zero")
    faulty("trap.rules", "if (view_len($(s)) > 5) __builtin_trap(); return 0;",
           "rule bad (trap.rules:2): it ran what is no instruction")


def replaced():
    with open("other.rules", "w") as f:
        f.write('use "kv.rules"\nrule never getppid() => nothing\n')
    for name in ("kv.rules", "kv.h"):
        with open(f"{RULES}/{name}") as f, open(name, "w") as to:
            to.write(f.read())
    with open("wrong.rules", "w") as f:
        f.write("recv(_ => nothing\n")
    with Session("v1", "v2", "--rules", f"{RULES}/kv.rules") as s:
        load = threading.Thread(target=single, args=(s, b"PUT", 5))
        load.start()
        for i in range(10):
            time.sleep(.3)
            p = subprocess.run([MVE, "rules", NAME, "f1", ("other.rules", "kv.rules")[i % 2]],
                               capture_output=True, text=True)
            check(p.returncode == 0, f"mve rules: {p.stderr}")
        p = subprocess.run([MVE, "rules", NAME, "f1", "wrong.rules"], capture_output=True)
        check(p.returncode == 1, "wrong rules are taken")
        load.join()
        s.holds()
        with open("empty.rules", "w") as f:
            f.write("rule never getppid() => nothing\n")
        check(not subprocess.run([MVE, "rules", NAME, "f1", "empty.rules"]).returncode, "empty")
        single(s, b"PUT", .5)
        s.drops("diverged")


def refused():
    with open("wrong.rules", "w") as f:
        f.write("recv(_ => nothing\n")
    p = subprocess.run([MVE, "run", "-n", NAME, "-f", "same", "--rules", "wrong.rules", "--",
                        "touch", "started"], capture_output=True, text=True)
    check(p.returncode == 1 and "wrong.rules:1" in p.stderr, f"{p.returncode}: {p.stderr}")
    check(not os.path.exists("started"), "it was started")


os.environ.setdefault("XDG_CACHE_HOME", os.getcwd())
for what in sys.argv[1:]:
    globals()[what]()
