"""Runs differ FAULT as the follower of differ none, and reads the report."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import namedtuple

MVE, ROOT, TESTS = os.environ["MVE"], os.environ["ROOT"], os.environ["TESTS"]
NAME = os.environ["MVE_SESSION"]
SOURCE = "tests/programs/differ.c"
DIFFER = TESTS + "/differ"

# What the report must say: verdict, what differs, the follower's call, the
# leader's, the argument and offset or values.
Row = namedtuple("Row", "fault verdict difference call leader argument where",
                 defaults=(None, None, None, None, None))

ROWS = [
    Row("byte", "diverged", "bytes", "write", "write", "buf", 12),
    Row("vector", "diverged", "bytes", "writev", "writev", "iov", 13),
    Row("length", "diverged", "length", "writev", "writev", "iov", 17),
    Row("short", "diverged", "value", "write", "write", "n", (18, 16)),
    Row("fd", "diverged", "value", "write", "write", "fd", (4, 6)),
    Row("file", "diverged", "bytes", "pwrite64", "pwrite64", "buf", 18),
    Row("missing", "diverged", "call", "read", "write"),
    Row("extra", "diverged", "call", "write", "writev"),
    Row("order", "diverged", "call", "pwrite64", "write"),
    Row("abort", "diverged", "call", "rt_sigprocmask", "write"),
    Row("crash", "crashed"),
    Row("hang", "lagging"),
]


def line_of(fault):
    with open(f"{ROOT}/{SOURCE}") as source:
        for number, line in enumerate(source, 1):
            if re.search(rf"fault: {fault}\b", line):
                return number
    sys.exit(f"no line for {fault}")


def run(row, tier, rest):
    """The session's report; the leader must not have felt anything."""
    shutil.rmtree(os.environ["XDG_STATE_HOME"], ignore_errors=True)
    rounds = "20000" if row.fault == "hang" else "12"
    follower = " ".join([DIFFER, row.fault, rounds, *rest])
    done = subprocess.run([MVE, "run", "-n", NAME, f"--tier={tier}", "--ring=1M",
                           "--when-full=drop", "-f", follower, "--", DIFFER, "none", rounds, *rest],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == "differ: ok\n", done
    said = [x for x in done.stderr.splitlines() if f"mve: {NAME}/f1: {row.verdict}: " in x]
    assert len(said) == 1, done.stderr
    report = subprocess.run([MVE, "report", NAME, "--json"], capture_output=True, text=True,
                            check=True)
    text = subprocess.run([MVE, "report", NAME], capture_output=True, text=True, check=True).stdout
    assert max(map(len, text.splitlines())) <= 80, text
    return said[0], text, json.loads(report.stdout)


def check_call(row, report):
    assert report["follower"]["call"].startswith(row.call + "("), report["follower"]["call"]
    assert report["leader"]["call"].startswith(row.leader + "("), report["leader"]["call"]
    last = report["window"][-1]
    assert last["leader"] == report["leader"]["call"] and not last["same"], last
    assert len(report["window"]) == 16 and all(x["same"] for x in report["window"][:-1])


def check_argument(row, argument):
    assert argument["name"] == row.argument, argument
    sides = argument["leader"], argument["follower"]
    if isinstance(row.where, tuple):
        assert tuple(s["value"] for s in sides) == row.where, argument
        assert row.fault != "short" or argument["content"]["offset"] == 16, argument
        return
    assert argument["offset"] == row.where, argument
    assert sides[0]["byte"] != sides[1]["byte"], argument


def check(row, tier, *rest):
    said, text, report = run(row, tier, rest)
    place = f"differ.c:{line_of(row.fault)}"
    lines = [f"{os.path.basename(f.get('file', ''))}:{f.get('line')}"
             for f in report["follower"]["stack"]]
    assert report["verdict"] == row.verdict and report["difference"] == row.difference, report
    assert place in lines, (place, lines)
    # The one line names the innermost line of the program; a fault may be its caller's.
    assert place in said or row.fault == "order", (place, said)
    assert place in text, text
    assert any(f.get("function") == "serve" for f in report["follower"]["stack"]), lines
    if row.call:
        check_call(row, report)
    if row.argument:
        check_argument(row, report["argument"])


def check_killed():
    """A follower that says nothing of its end."""
    command = [DIFFER, "none", "10000000"]
    run_it = subprocess.Popen([MVE, "run", "-n", NAME, "-f", "same", "--", *command],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    pid = None
    while not pid:
        time.sleep(0.05)
        status = subprocess.run([MVE, "status", NAME, "--json"], capture_output=True, text=True)
        versions = json.loads(status.stdout or "{}").get("versions", [])
        pid = [v["pid"] for v in versions if v["role"] == "follower" and v["calls"] > 100]
    os.kill(pid[0], signal.SIGKILL)
    said = run_it.stderr.readline()
    assert f"mve: {NAME}/f1: crashed: killed by SIGKILL" in said, said
    assert run_it.poll() is None
    subprocess.run([MVE, "stop", NAME, "--kill"], check=True)
    run_it.communicate(timeout=20)
    text = subprocess.run([MVE, "report", NAME], capture_output=True, text=True, check=True).stdout
    assert "stack: not known" in text and "  =  " in text, text


def check_commands():
    """--list, numbers, and names without reports."""
    two = subprocess.run([MVE, "report", NAME, "--list"], capture_output=True, text=True)
    assert two.returncode == 0 and len(two.stdout.splitlines()) == 2, two
    for argv, code in ((["none-such"], 1), ([NAME, "7"], 1), ([NAME, "x"], 2), ([], 2)):
        done = subprocess.run([MVE, "report", *argv], capture_output=True, text=True)
        assert done.returncode == code and done.stdout == "", done
        assert re.match(r"mve: .*\nhint: .*\n\Z", done.stderr), done


def main():
    for tier in ("patch", "trap"):
        for row in ROWS:
            check(row, tier)
    for where in ("thread", "child"):
        for row in ROWS:
            if row.fault in ("byte", "missing", "crash"):
                check(row, "patch", where)
    check_commands()
    check_killed()


main()
