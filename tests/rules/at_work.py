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
sys.path.append(ROOT + "/tests/servers")
from free_port import free_port     # noqa: E402

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


BAD = "ERROR unknown request"
OLD_REQUESTS = [("PUT a%d b c", "OK"), ("PUT-string a%d b", BAD), ("TYPE a%d", BAD), ("PUTX a%d", BAD)]
NEW_REQUESTS = [("PUT-string a%d b c", "OK"), ("PUT a%d b", BAD), ("PUTX a%d", BAD),
                ("PUT-stringent a%d", BAD)]


def pieces(session, requests, seconds=LOAD_S):
    """Several requests in one piece, and some of them cut anywhere."""
    end, n, r = time.monotonic() + seconds, 0, random.Random(1)
    while time.monotonic() < end:
        with session.client() as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(30):
                kinds = [r.choice(requests) for _ in range(5)]
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
        n = pieces(s, OLD_REQUESTS)
        s.holds()
    print(f"pipelined and cut: {n} requests")


def new_in_pieces():
    with Session("v2", "v1", "--rules", f"{RULES}/stream.rules", "--older") as s:
        n = pieces(s, NEW_REQUESTS)
        s.holds()
    print(f"pipelined and cut, v2 leads: {n} requests")


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


def faulty(name, guard, text, head="", action=""):
    right = f"recvfrom(fd, s, _, _, _, _) {action}" if action else "r"
    with open(name, "w") as f:
        f.write(f"{head}// a comment\nrule bad recvfrom(fd, s, _, _, _, _) {{\n"
                f"\t{guard}\n}} as r => {right}\n")
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
    faulty("frame.rules", "volatile char a[1 << 20]; a[0] = 1; return a[view_len($(s))] == 9;",
           "rule bad (frame.rules:2): it touched memory")
    # Another rule's guard ran before, and is not named.
    faulty("frames.rules", "volatile char a[1 << 20]; a[0] = 1; return a[view_len($(s))] == 9;",
           "rule bad (frames.rules:4): it touched memory",
           "rule first recvfrom(_) { 0 }, getpid() => nothing\nrule other recvfrom(_) { 0 } => nothing\n")
    faulty("acts.rules", "return 1;", "rule bad (acts.rules:5): it touched memory",
           "rule first recvfrom(_) { 0 }, getpid() => nothing\n",
           '-> { volatile char a[1 << 20]; a[0] = 1; $(ret) = a[1]; }')
    with open("deep.h", "w") as f:
        f.write("static int deep(int n)\n{\n\tvolatile char a[64];\n\ta[0] = (char)n;\n"
                "\treturn n ? deep(n - 1) + a[0] : 0;\n}\n")
    faulty("deep.rules", "return deep(view_len($(s)) * 1000000) == 9;",
           "rule bad (deep.rules:3): it touched memory", '#include "deep.h"\n')
    faulty("long.rules", "return 1;", "rule bad (long.rules:4): the edited buffer is longer",
           action='-> { $(s) = "%s"; }' % ("x" * 5000))
    faulty("built.rules", "return 1;", "rule bad (built.rules:4): the buffer that the rule builds",
           action='-> { $(s) = "%s"; }' % ("x" * 70000))


def copy_rules():
    with open("other.rules", "w") as f:
        f.write('use "kv.rules"\nrule never getppid() => nothing\n')
    for name in ("kv.rules", "kv.h"):
        with open(f"{RULES}/{name}") as f, open(name, "w") as to:
            to.write(f.read())


def replaced():
    copy_rules()
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


def hundred():
    """Replaced all the time, by files and by objects, and one in ten is no object."""
    copy_rules()
    rulec = os.path.join(os.path.dirname(MVE), "rulec")
    subprocess.run([rulec, "build", "other.rules", "-o", "other.so"], check=True)
    with open("other.so", "rb") as f:
        whole = f.read()
    wrong = {"half.so": whole[:len(whole) // 2], "empty.so": b"", "text.so": b"no object\n" * 99,
             "flipped.so": whole[:3000] + bytes([whole[3000] ^ 4]) + whole[3001:],
             "version.so": whole[:-32] + bytes([77, 0, 0, 0]) + whole[-28:]}
    said = {"version.so": "made by another rulec", "flipped.so": "damaged"}
    for name, data in wrong.items():
        with open(name, "wb") as f:
            f.write(data)
    with Session("v1", "v2", "--rules", f"{RULES}/kv.rules") as s:
        load = threading.Thread(target=single, args=(s, b"PUT", 12))
        load.start()
        refused_n = 0
        for i in range(100):
            name = ("other.rules", "kv.rules", "other.so")[i % 3]
            if i % 10 == 9:
                name = list(wrong)[refused_n % len(wrong)]
                refused_n += 1
            p = subprocess.run([MVE, "rules", NAME, "f1", name], capture_output=True, text=True)
            check((p.returncode == 0) == (name not in wrong), f"{name}: {p.stderr}")
            if name in wrong:
                check(said.get(name, "no object of rulec" if name != "half.so" else "damaged")
                      in p.stderr, f"{name}: {p.stderr}")
        load.join()
        s.holds()
        # No place for what is compiled: said, and the rules of before are in force.
        with open("more.rules", "w") as f:
            f.write('use "kv.rules"\nrule never getpgrp() => nothing\n')
        with open("file", "w") as f:
            f.write("no folder")
        for home in ("/proc/nowhere", os.path.abspath("file")):
            p = subprocess.run([MVE, "rules", NAME, "f1", "more.rules"], capture_output=True,
                               text=True, env=dict(os.environ, XDG_CACHE_HOME=home))
            check(p.returncode == 3 and "no place for compiled rules" in p.stderr, p.stderr)
        single(s, b"PUT", .3)
        s.holds()
    print("replaced a hundred times")


def spoiled_cache():
    """What is left of a file in the cache is not taken for the whole."""
    with open("cached.rules", "w") as f:
        f.write("rule never getppid() => nothing\n")
    for spoil in (lambda data: data[:100], lambda data: b"", lambda data: b"\x7f" * 4096):
        run = [MVE, "run", "-n", NAME, "-f", "same", "--rules", "cached.rules", "--", "true"]
        for _ in range(2):
            p = subprocess.run(run, capture_output=True, text=True)
            check(p.returncode == 0 and "mve:" not in p.stderr, p.stderr)
            for name in os.listdir("mve"):
                if name.endswith(".so"):
                    with open(f"mve/{name}", "rb") as f:
                        data = f.read()
                    with open(f"mve/{name}", "wb") as f:
                        f.write(spoil(data))


def old_cache():
    """What nobody used for a month goes when the next is compiled; use makes new."""
    def run(rules):
        p = subprocess.run([MVE, "run", "-n", NAME, "-f", "same", "--rules", rules, "--", "true"],
                           capture_output=True, text=True)
        check(p.returncode == 0 and "mve:" not in p.stderr, p.stderr)

    def age(path, days):
        os.utime(path, (time.time() - days * 86400,) * 2)
    for name in "first", "second":
        with open(f"{name}.rules", "w") as f:
            f.write(f"rule {name} getppid() => nothing\n")
    before = set(os.listdir("mve"))
    run("first.rules")
    first, = (f"mve/{name}" for name in set(os.listdir("mve")) - before if name.endswith(".so"))
    for name, days in (("mve/old.so", 31), ("mve/young.so", 29), (first, 29)):
        with open(name, "ab"):
            age(name, days)
    run("first.rules")
    check(os.stat(first).st_mtime > time.time() - 3600, "what is used grows old")
    check(os.path.exists("mve/old.so"), "nothing was compiled")
    run("second.rules")
    check(not os.path.exists("mve/old.so"), "it stays")
    check(os.path.exists("mve/young.so") and os.path.exists(first), "too much is gone")


def refused():
    with open("wrong.rules", "w") as f:
        f.write("recv(_ => nothing\n")
    p = subprocess.run([MVE, "run", "-n", NAME, "-f", "same", "--rules", "wrong.rules", "--",
                        "touch", "started"], capture_output=True, text=True)
    check(p.returncode == 1 and "wrong.rules:1" in p.stderr, f"{p.returncode}: {p.stderr}")
    check(not os.path.exists("started"), "it was started")
    with open("process.rules", "w") as f:
        f.write("rule whole @process getppid() => nothing\n")
    p = subprocess.run([MVE, "run", "-n", NAME, "-f", "same", "--rules", "process.rules", "--",
                        "touch", "started"], capture_output=True, text=True)
    check(p.returncode == 1 and "@process" in p.stderr, f"{p.returncode}: {p.stderr}")
    check(not os.path.exists("started"), "it was started")


os.environ.setdefault("XDG_CACHE_HOME", os.getcwd())
for what in sys.argv[1:]:
    globals()[what]()
