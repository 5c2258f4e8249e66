#!/usr/bin/env python3
"""bisect.py: a bug that is planted in the fourth of six releases is found by a recording.

The server is servers/kv, its releases differ in a number that nobody sees; from the fourth on a
value that begins with `!` is answered with one letter that is another.  The recording of the
first has one such request among others.
"""
import json
import os

from kv import build, fail, mve, record

LOG = "bisect.log"
RELEASES = 6
PLANTED = 4


def release(n):
    def change(text):
        right = '"VALUE %s\\n", '
        if text.count(right) != 1:
            fail("servers/kv/v1.c is another: the bug cannot be planted")
        if n >= PLANTED:
            text = text.replace(right, '(p->value[0] == \'!\' ? "VALUe %s\\n" : '
                                       '"VALUE %s\\n"), ')
        return text + f"\nconst int release = {n};\n"
    return change


for i in range(1, RELEASES + 1):
    build(f"kv{i}", release(i))
port = record(LOG, "kv1", (("PUT a b", "OK"), ("PUT c !d", "OK"), ("GET a", "VALUE b"),
                           ("GET c", "VALUE !d"), ("GET e", "NONE")))
builds = [f"./kv{i}" for i in range(1, RELEASES + 1)]

# By halving: few are tried; the one that is named differs, the one before it is equal.
p = mve("bisect", LOG, "--", *builds, status=1)
if f"./kv{PLANTED} is the first that differs; ./kv{PLANTED - 1} is equal" not in p.stdout or \
   "VALUe" not in p.stdout or p.stdout.count("\nbuild ") + p.stdout.startswith("build ") > 4:
    fail(p.stdout)

# From another folder, commands with arguments, one that cannot be run, as JSON.
os.makedirs("elsewhere", exist_ok=True)
words = [f"{os.getcwd()}/kv{i} {port}" for i in (1, 2)] + ["../nothere"] + \
        [f"../kv{i}" for i in (5, 6)]
j = json.loads(mve("bisect", "--json", f"../{LOG}", "--", *words, status=1, cwd="elsewhere").stdout)
if j["first"] != 3 or j["exact"] or j["builds"][2]["result"] != "cannot be tried" or \
   "VALUe" not in json.dumps(j["report"]):
    fail(j)

# Not as it should be, a build behind the first is equal again: --all sees that.
p = mve("bisect", "--all", LOG, "--", "./kv1", "./kv4", "./kv2", "./kv5", status=1)
if "./kv4 is the first that differs; ./kv1 is equal" not in p.stdout or \
   "./kv2, behind it, is equal again" not in p.stdout:
    fail(p.stdout)

# None differs; rules and the like are mve replay's.
p = mve("bisect", "--on-divergence", "stop", LOG, "--", "./kv1", "./kv2", "./kv3")
if "none of those that were tried differs" not in p.stdout:
    fail(p.stdout)
mve("bisect", LOG, "--", "./nothere", status=3)
for words in (["bisect"], ["bisect", LOG], ["bisect", "nowhere", "--", "true"],
              ["bisect", "-n", "x", LOG, "--", "true"], ["bisect", "--foo", LOG, "--", "true"],
              ["bisect", "--until", "3", LOG, "--", "true"], ["bisect", "--gdb", LOG, "--", "true"],
              ["bisect", LOG, "more", "--", "true"]):
    if "hint:" not in mve(*words, status=2).stderr:
        fail(words)
print("bisect: ok")
