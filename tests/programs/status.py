"""What mve status says of a follower that stands still, and of a site that is hot and
not patched; and the words of a command in JSON."""
import json
import os
import signal
import subprocess
import sys
import time

MVE, NAME = os.environ["MVE"], os.environ["MVE_SESSION"]
PROGRAM = os.path.join(os.environ["TESTS"], "made_calls")


def status(*words):
    return subprocess.run([MVE, "status", NAME, *words], stdout=subprocess.PIPE, check=False,
                          universal_newlines=True, stderr=subprocess.DEVNULL).stdout


def version(name):
    rows = json.loads(status("--json") or "{}").get("versions", [])
    return next((row for row in rows if row["name"] == name), {})


def within(seconds, what):
    end = time.monotonic() + seconds
    while not (value := what()) and time.monotonic() < end:
        time.sleep(0.05)
    return value


def must(condition, *words):
    if not condition:
        print(*words, status(), file=sys.stderr)
        sys.exit(1)


def stands_still():
    """Stopped, it is said to stand, and since when; going on, it is not."""
    must(within(60, lambda: version("f1").get("role") == "follower"), "no follower")
    must(version("f1")["still_ms"] == 0, "it stands before it was stopped")
    pid = version("f1")["pid"]
    os.kill(pid, signal.SIGSTOP)
    stopped = time.time()
    try:
        must(within(60, lambda: version("f1").get("still_ms", 0) >= 2000), "it does not stand")
        row = version("f1")
        must(row["lag_ms"] >= 1500, "not behind in time", row)
        must(abs(row["still_since"] - stopped) < 30, "since when?", row)
        text = status()
        must("stands still for" in text and " s behind" in text, "not said")
        top = subprocess.run([MVE, "top", NAME, "--once"], stdout=subprocess.PIPE, check=False,
                             universal_newlines=True).stdout
        must("stands still for" in top, "top does not say it:", top)
    finally:
        os.kill(pid, signal.SIGCONT)
    must(within(60, lambda: version("f1")["still_ms"] == 0), "it goes on, and is said to stand")


def waits():
    """Each kind of wait has its row, whose count is one of waits."""
    rows = version("f1")["waits"]
    must({row["whose"] for row in rows} == {"leader", "follower", "taker"}, "whose?", rows)
    must(len({row["kind"] for row in rows}) == len(rows) >= 15, "kinds:", rows)
    must(all(row["met"] >= 0 and row["longest_us"] >= 0 and row["for"] and row["then"]
             for row in rows), "counts:", rows)


def hot_sites():
    def hot():
        return json.loads(status("--json"))["sites"]["hot_unpatched"]

    rows = within(60, hot)
    must(rows, "no hot site")
    must("made at run time" in rows[0]["why"], "why is it not patched?", rows)
    must("made at run time" in status(), "not said")


def words():
    """Whole, one by one, and no UTF-8 is no harm."""
    want = [PROGRAM, *(word.decode("utf-8", "replace") for word in WORDS)]
    ps = json.loads(subprocess.run([MVE, "ps", "--json"], stdout=subprocess.PIPE,
                                   check=True).stdout)
    row = next(row for row in ps if row["name"] == NAME)
    must(row["argv"] == want, "ps --json:", row)
    must(json.loads(status("--json"))["argv"] == want, "status --json")
    must(version("f1")["argv"] == want, "a version's")
    with open(os.path.join(os.environ["XDG_RUNTIME_DIR"], "mve", NAME, "session.json"),
              encoding="utf-8") as saved:
        must(json.load(saved)["argv"] == want, "session.json")


REFUSED = """import ctypes
libc = ctypes.CDLL(None)
for number, times in ((206, 2), (425, 1)):
    for i in range(times):
        if libc.syscall(number, 1, 0) != -1:
            raise SystemExit("not refused")
"""


def refused():
    """io_setup twice and io_uring_setup once: each refusal is counted under its name."""
    with open("refused.log", "wb") as log:
        subprocess.run([MVE, "run", "-f", "same", "--status", "refused.json", "--", sys.executable,
                        "-c", REFUSED], stderr=log, check=True)
    with open("refused.json", encoding="utf-8") as file:
        row = json.load(file)["refused"]
    must(row == {"int80": 0, "gs_base": 0, "io_uring": 1, "dispatch": 0, "io_setup": 2}, row)


WORDS = [b"more words", "\u00e4".encode() * 200, b"\xff\xfe", b"", b"x" * 100000]
with open("mve.log", "wb") as log:
    mve = subprocess.Popen([MVE, "run", "-n", NAME, "-f", "same", "--", PROGRAM, *WORDS],
                           stdout=log, stderr=log)
try:
    hot_sites() if within(60, lambda: version("f1")) else must(False, "no session")
    words()
    waits()
    stands_still()
finally:
    subprocess.run([MVE, "stop", NAME], check=False)
    mve.wait(60)
refused()
print("status: ok")
