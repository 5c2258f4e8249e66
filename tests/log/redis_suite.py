#!/usr/bin/env python3
"""redis_suite.py: what Redis' own suite does with servers of its own (integration/*), recorded.

Each server that a test starts is held by mve and recorded; what the test finds is shown, and what
counts is that each recording is replayed to its end twice, equal.  They crash, are killed, save,
replicate, load damaged files.

UNITS: some of them (integration/rdb, say), instead of those below.
"""
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MVE = os.environ.get("MVE", f"{ROOT}/build/mve")
NAME = f"suite-{os.getpid()}"
RULES = f"{ROOT}/rules/redis/twin.rules"
UNITS = os.environ.get("UNITS", """
    integration/aof integration/block-repl integration/convert-zipmap-hash-on-load
    integration/convert-ziplist-hash-on-load integration/convert-ziplist-zset-on-load
    integration/logging integration/rdb integration/redis-cli integration/shutdown""").split()
EQUAL = re.compile(r"^replayed ([1-9]\d*) calls, equal$", re.M)
COLOUR = re.compile(r"\x1b\[[\d;]*m")

# In the place of the server's program.
HOLDER = """#!/bin/sh
exec "$MVE" run --record "$RECORDINGS/$$.log" --ring 4M --when-full block -n "$SESSION-$$" \\
	-- "$0.real" "$@"
"""
# The suite sends signals to what it has started: that is to be the server, not who holds it.
STARTED = "    if {$::wait_server} {\n        set msg"
SERVER = """
    for {set i 0} {$i < 500 && ![catch {exec kill -0 $pid}]} {incr i} {
        catch {
            foreach child [exec cat /proc/$pid/task/$pid/children] {
                if {[string match "*redis*" [file readlink /proc/$child/exe]]} {
                    set pid $child
                    set i 500
                }
            }
        }
        after 10
    }

"""


def fail(why):
    print(f"FAILED: {why}")
    sys.exit(1)


def skip(why):
    print(why)
    sys.exit(77)


def suite_make():
    """Its tests, with the machine's programs."""
    p = subprocess.run([f"{ROOT}/servers/fetch", "--source", "redis", "7.0.15"],
                       capture_output=True, text=True)
    if p.returncode:
        skip(p.stderr.strip())
    if os.environ.get("FETCH_ONLY"):
        sys.exit(0)
    source = p.stdout.strip()
    shutil.copytree(f"{source}/tests", "suite/tests")
    shutil.copy(f"{source}/runtest", "suite")
    os.mkdir("suite/src")
    for tool in ("redis-cli", "redis-benchmark", "redis-check-aof", "redis-check-rdb"):
        os.symlink(shutil.which(tool), f"suite/src/{tool}")
    os.symlink(shutil.which("redis-server"), "suite/src/redis-server.real")
    with open("suite/src/redis-server", "w") as f:
        f.write(HOLDER)
    os.chmod("suite/src/redis-server", 0o755)
    path = "suite/tests/support/server.tcl"
    with open(path) as f:
        text = f.read()
    if STARTED not in text:
        fail("the suite starts its servers in another way")
    with open(path, "w") as f:
        f.write(text.replace(STARTED, SERVER + STARTED, 1))


def suite_run():
    os.mkdir("recordings")
    single = [word for unit in UNITS for word in ("--single", unit)]
    p = subprocess.run(["./runtest", "--clients", "1", "--timeout", "300",
                        "--tags", "-slow -needs:debug", *single], cwd="suite",
                       capture_output=True, text=True, errors="replace",
                       env={**os.environ, "MVE": MVE, "SESSION": NAME,
                            "RECORDINGS": os.path.abspath("recordings")})
    said = COLOUR.sub("", p.stdout)
    passed = len(re.findall(r"^\[ok\]", said, re.M))
    other = re.findall(r"^\[(?:err|exception)\].*", said, re.M)
    if not passed:
        fail(f"no test was run: {said[-2000:]}")
    print("\n".join([f"{passed} tests passed, {len(other)} failed", *other]), file=sys.stderr)


def replay(folder):
    p = subprocess.run([MVE, "replay", "-n", f"{NAME}-r", "--rules", RULES, folder],
                       capture_output=True, text=True, errors="replace", timeout=600)
    if p.returncode or not EQUAL.search(p.stdout):
        why = subprocess.run([MVE, "report", f"{NAME}-r"], capture_output=True, text=True)
        fail(f"{folder}: {p.returncode} {p.stdout}{p.stderr}\n{why.stdout}")
    return p.stdout


def replayed(folder):
    """Its calls."""
    said = replay(folder)
    if replay(folder) != said:
        fail(f"{folder}: {said}")
    return int(EQUAL.search(said)[1])


suite_make()
suite_run()
calls = [replayed(f"recordings/{name}") for name in sorted(os.listdir("recordings"))]
if not calls:
    fail("no server was recorded")
print(f"{len(calls)} recordings, {sum(calls)} calls, equal twice", file=sys.stderr)
print("redis_suite: ok")
