#!/usr/bin/env python3
"""Updates of the threaded kv by a twin, stage by stage, while clients ask it.

  stages.py forth [TIMES]   to version 2: promoted, committed; its state is a native server's
  stages.py early           told to lead before it is there: it leads as soon as it is
  stages.py back            aborted in each stage: while the old one leads, and while the new one
  stages.py same            a build in which nothing but code changed, of a server that is a twin
  stages.py even            told to lead while it is behind: it leads once it has read all, and
                            clients are served meanwhile
  stages.py auto            by itself: promoted and committed when it has kept up
  stages.py again           so often that versions have the numbers of others that have gone: each
                            old one takes its locks in the new one's order
  stages.py third           as often, beside a twin that follows on: so does that

Numbered requests of several clients go on across all of it: none is lost or wrong, no connection
is closed, and new clients are served in each stage.
"""
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time

import load
import served

KV = f"{served.ROOT}/servers/kv/threads"
ENTRIES = 500


class Session:
    """A server under mve run, with clients at work."""

    # Else what becomes of the twin hangs on how fast the machine is beside its other work.
    def __init__(self, build, clients=3, options=("--when-full", "block")):
        self.name = f"stages-{load.unique()}"
        self.server = served.Server(build, f"{served.BIN}/mve", "run", "-n", self.name, *options,
                                    "--")
        self.clients = clients

    def __enter__(self):
        self.server.__enter__()
        self.first = self.server.client()
        for i in range(ENTRIES):
            self.first.expect(f"PUT key-{i} value {i}", "OK")
        self.loads = [load.Load(self.server, i) for i in range(self.clients)]
        for one in self.loads:
            one.start()
        return self

    def __exit__(self, *what):
        for one in self.loads:
            one.stopping.set()
        self.server.__exit__(*what)

    def mve(self, verb, *words, ok=True):
        return served.run(f"{served.BIN}/mve", verb, self.name, *words, ok=ok)

    def status(self):
        return json.loads(self.mve("status", "--json")[1])

    def stage(self):
        return self.status()["update"]["stage"]

    def until(self, stage):
        load.until(lambda: self.stage() == stage,
                   lambda: f"not '{stage}': {self.status()['update']}")

    def leader(self):
        return next(v["name"] for v in self.status()["versions"] if v["role"] == "leader")

    def serves(self):
        """All clients go on, and a new one is served."""
        for one in self.loads:
            one.goes_on(one.done)
        new = self.server.client()
        new.expect("GET key-1", "VALUE value 1")
        new.socket.close()

    def done(self):
        for call in self.status()["calls"]["by_name"]:
            assert call["name"] != "accept4" or call["patch"] + call["trap"] < 1000, "it spins"
        for one in self.loads:
            one.stop()


# The moment may be bad where the machine has others to serve: that is not what is tested here.
AGAIN = ("--retry", "8/100", "--limit", "20000")


def update(s, new, *words):
    said = s.mve("update", "--to", new, *AGAIN, *words)[1]
    assert s.stage() == "old leads", (said, s.status()["update"])
    return said


def refused(s, verb, why, *words):
    status, said = s.mve(verb, *words, ok=False)
    assert status == 1 and why in said, said


def entries_are(server, natively):
    a, b = server.client(), natively.client()
    for i in range(ENTRIES):
        b.expect(f"PUT key-{i} value {i}", "OK")
    for i in range(ENTRIES):
        for verb in ("GET", "TYPE"):
            a.expect(f"{verb} key-{i}", b.ask(f"{verb} key-{i}"))


def forth(old, new, *xform):
    with Session(old) as s, served.Server(new) as natively:
        said = update(s, new, *xform)
        assert "struct entry: " in said and "made anew" in said, said
        assert re.search(r"^char: \d+ bytes, as they are$", said, re.M), said
        s.serves()
        said = s.mve("promote")[1]
        assert re.search(r": new\d+ leads; v0 follows$", said, re.M), said
        assert s.stage() == "new leads", s.status()["update"]
        s.serves()
        said = s.mve("commit")[1]
        assert re.search(r": new\d+ leads; the update: done: v0 ended: by mve commit$", said,
                         re.M), said
        assert s.stage() == "alone", s.status()["update"]
        s.serves()
        listed = [one for one in json.loads(served.run(f"{served.BIN}/mve", "ps", "--json")[1])
                  if one["name"] == s.name]
        assert new in listed[0]["argv"] and old not in listed[0]["argv"], listed
        assert f"update: alone, {new} runs; " in s.mve("status")[1], s.mve("status")
        made = len(s.status()["versions"])
        for build in (old, new):        # the one before is mapped yet
            refused(s, "update", "it is in the server already: it runs, or did before", "--to",
                    build, "--code")
        assert len(s.status()["versions"]) == made
        entries_are(s.server, natively)
        s.first.expect("PUT-date day today", "OK")
        s.first.expect("TYPE day", "TYPE date")
        s.done()


# The twin is on its way until a file is there.
GATED = """transform struct entry {
        typ = { extern int access(const char *, int), usleep(unsigned);
                while (access("%s", 0)) usleep(1000); return string; }
}
transform thread serve { : struct client; }
"""


def early(work, old, new):
    """The new version is let lead as soon as it is there: who asks before that waits, and says so."""
    gate = f"{work}/gate"
    with open(f"{work}/gated.xf", "w") as f:
        f.write(GATED % gate)
    with Session(old) as s:
        refused = s.mve("promote", ok=False)[1]
        assert "which follower" in refused, refused
        s.mve("update", "--to", new, *AGAIN, "--xform", f.name, "--no-wait")
        asks = subprocess.Popen([f"{served.BIN}/mve", "promote", s.name], stderr=subprocess.PIPE,
                                text=True)
        while "waits: there is no new version yet" not in (said := asks.stderr.readline()):
            assert said, "it does not wait"
        with open(gate, "w"):
            pass
        asks.communicate()
        assert asks.returncode == 0, asks.returncode
        s.until("new leads")
        s.serves()
        s.mve("commit")
        s.until("alone")
        s.done()


def back(old, new, *xform):
    with Session(old) as s:
        update(s, new, *xform)
        s.serves()
        said = s.mve("abort")[1]
        assert ": v0 leads; the update: ended: by mve abort\n" in said, said
        assert s.stage() == "alone" and s.leader() == "v0", s.status()["update"]
        refused(s, "promote", "there is no new version; the last update: ended: by mve abort")
        s.serves()
        update(s, new, *xform)
        s.mve("promote")
        s.until("new leads")
        refused(s, "promote", "the new version, leads already")
        s.serves()
        said = s.mve("abort")[1]
        assert re.search(r": v0 leads; the update: undone: new\d+ ended: ", said), said
        assert s.stage() == "alone" and s.leader() == "v0", s.status()["update"]
        s.serves()
        s.first.expect("TYPE key-1", "ERROR unknown request")
        s.done()
    for n in range(AT_ONCE):
        at_once(n * AT_ONCE_S, old, new, *xform)


# A takeover has steps of some milliseconds; the end is told in several.
AT_ONCE, AT_ONCE_S = 6, 0.002


def at_once(after_s, old, new, *xform):
    """Ended while the old version comes to lead by name: one of the two is refused."""
    with Session(old, clients=1) as s:
        update(s, new, *xform)
        s.mve("promote")
        s.until("new leads")
        words = [f"{served.BIN}/mve", "promote", s.name, "v0", "--keep"]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
            time.sleep(after_s)
            while p.poll() is None:
                s.mve("commit", ok=False)
        s.until("alone")
        s.serves()
        s.done()


def same(old, new, *xform):
    with Session(old) as s:
        # A twin that has come to lead is prepared as its leader was.
        s.mve("follow", "--name", "twin")
        s.mve("promote", "twin", "--wait")
        s.serves()
        update(s, new, *xform)
        s.mve("promote")
        s.serves()
        s.mve("commit")
        s.serves()
        s.done()


def changed(source, to, was, now):
    """Another source, in which something reads otherwise."""
    with open(source) as f:
        text = f.read()
    assert was in text, was
    with open(to, "w") as f:
        f.write(text.replace(was, now))
    return to


# What the new build does not come over until a file is there.
HELD = ("	struct entry *e = find(key);\n\n	if (value)\n		return sprintf(out, \"ERROR usage: GET",
        "	struct entry *e = find(key);\n\n	while (!strcmp(key, \"hold\") && access(\"%s\", F_OK))\n"
        "		;\n	if (value)\n		return sprintf(out, \"ERROR usage: GET")


def even(work, old, *xform):
    go = f"{work}/go"
    new = served.build(changed(f"{KV}/v2.c", f"{work}/held.c", HELD[0], HELD[1] % go),
                       f"{work}/held.so")
    with Session(old) as s:
        update(s, new, *xform)
        s.first.expect("GET hold", "NONE")
        load.until(lambda: any(v.get("lag_ms", 0) > 1000 for v in s.status()["versions"]),
                   s.status)
        status, said = s.mve("promote", "--wait=1", ok=False)
        assert status == 1 and "s behind, and clients would wait" in said, said
        asks = subprocess.Popen([f"{served.BIN}/mve", "promote", s.name])
        for one in s.loads:
            one.goes_on(one.done)
        assert s.stage() == "old leads" and asks.poll() is None, s.status()["update"]
        with open(go, "w"):
            pass
        assert asks.wait(served.HANGS_S) == 0
        s.until("new leads")
        s.serves()
        s.done()


def by_itself(old, new, *xform):
    with Session(old) as s:
        s.mve("update", "--to", new, *xform, *AGAIN, "--auto=1")
        load.until(lambda: s.stage() == "alone" and s.leader() != "v0", s.status)
        s.serves()
        s.first.expect("TYPE key-1", "TYPE string")
        s.done()


TIMES = 10       # more than versions can be at once


def again(work, *builds):
    with Session(builds[0]) as s:
        for n in range(TIMES):
            update(s, shutil.copy(builds[(n + 1) % 2], f"{work}/build-{n}.so"), "--code")
            s.mve("promote")
            s.until("new leads")
            s.serves()
            old = next(v for v in s.status()["versions"] if v["role"] == "follower")
            assert not old["locks_unordered"], (n, old)
            s.mve("commit")
            s.until("alone")
        s.done()


# A lock that few requests take.
RARE = ("	pthread_mutex_lock(&table_lock);\n",
        "	static pthread_mutex_t rare_lock = PTHREAD_MUTEX_INITIALIZER;\n\n"
        "	if (!strcmp(key, \"rare\")) {\n		pthread_mutex_lock(&rare_lock);\n"
        "		pthread_mutex_unlock(&rare_lock);\n	}\n	pthread_mutex_lock(&table_lock);\n")
ASKED = 20


def third(work):
    """It meets the lock when the first new version leads, and when one that has its number does."""
    source = changed(f"{KV}/v1.c", f"{work}/rare.c", *RARE)
    builds = [served.build(source, f"{work}/rare-{n}.so", f"-DBUILD={n}", f"-I{KV}")
              for n in range(2)]
    with Session(builds[0]) as s:
        s.mve("follow", "--name", "third")
        numbers = []
        while len(numbers) < 2 or numbers[-1] != numbers[0]:
            assert len(numbers) < 2 * TIMES, numbers
            n = len(numbers)
            update(s, shutil.copy(builds[(n + 1) % 2], f"{work}/build-{n}.so"), "--code")
            s.mve("promote")
            s.until("new leads")
            numbers.append([v["role"] for v in s.status()["versions"]].index("leader"))
            for _ in range(ASKED if numbers[-1] == numbers[0] else 0):
                s.first.expect("GET rare", "NONE")
            s.mve("commit")
            s.until("alone")
            load.until(lambda: behind(s)["role"] == "follower" and not behind(s)["lag_cells"],
                       s.status)
            assert not behind(s)["locks_unordered"], (numbers, behind(s))
        s.done()


def behind(s):
    return next(v for v in s.status()["versions"] if v["name"] == "third")


def main():
    what, times = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory() as work:
        old = served.build(f"{KV}/v1.c", f"{work}/v1.so")
        new = served.build(f"{KV}/v2.c", f"{work}/v2.so")
        mended = served.build(f"{KV}/v1.c", f"{work}/v1-mended.so", "-DMENDED", "-O1")
        xform = ("--xform", f"{KV}/v1-v2.xf")
        for _ in range(times):
            if what == "same":
                same(old, mended, "--xform", f"{KV}/v2-v1.xf")
            elif what == "early":
                early(work, old, new)
            elif what == "even":
                even(work, old, *xform)
            elif what == "again":
                again(work, old, mended)
            elif what == "third":
                third(work)
            else:
                {"forth": forth, "back": back,
                 "auto": by_itself}[what](old, new, *xform)
    print(f"update_{what}: ok")


if __name__ == "__main__":
    main()
