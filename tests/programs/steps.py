"""How many instructions a recorded call has more than an intercepted one, counted by single
steps: no clock and no other work has a part in it, so it may not grow.

A call that is written down takes no more than one that is followed.

The follower stands still meanwhile.  A limit is what stands there today and a little more: who
makes it less lowers it.
"""
import json
import os
import shutil
import subprocess
import sys
import time

BUILD = os.path.join(os.environ["ROOT"], "build")
MVE, NAME = os.environ["MVE"], os.environ["MVE_SESSION"]
TURNS = 40
RING = ("--when-full=block", "--ring=64M")
RECORDING = "steps.log"
LIMIT_S = 60    # for what hangs

# Of 512 bytes; a copy of so many is one instruction here.  The follower is asleep, and has been
# woken: two instructions look at that.  At last in a process that has a second thread.
LIMITS = {"getppid": 83, "read": 132, "write": 130, "close": 109, "open+close": 382,
          "clock_gettime": 96}
LIMITS_THREADS = {"getppid": 98, "read": 158, "close": 366, "lock": 90}


def status():
    got = subprocess.run([MVE, "status", "--json", NAME], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, check=False)
    return json.loads(got.stdout) if not got.returncode else {}


def server():
    return status().get("server", 0)


def follower():
    """Its pid, once it follows."""
    rows = status().get("versions", [])
    return [str(row["pid"]) for row in rows if row.get("pid") and row["pid"] != server()]


def recording(pid):
    """It is in its loop: it has made many calls."""
    with open(f"/proc/{pid}/stat") as stat:
        ticks = int(stat.read().rpartition(")")[2].split()[11])
    return ticks > 10


def wait_for(what):
    limit = time.monotonic() + LIMIT_S
    while True:
        got = what()
        if got or time.monotonic() > limit:
            return got
        time.sleep(0.05)


def recorded():
    return status().get("recording", {}).get("active")


def count(call, threads, *followers):
    run = subprocess.Popen([MVE, "run", "-n", NAME, *followers, "--", BUILD + "/perf/record",
                            *threads],
                           stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    run.stdin.write(f"{call} 2000000000 1\n")
    run.stdin.flush()
    pid = wait_for(server)
    if not pid or not wait_for(lambda: recording(pid)):
        sys.exit(f"{call}: does not run")
    stopped = wait_for(follower) if "-f" in followers else []
    steps = subprocess.run([BUILD + "/perf/steps", str(pid), str(TURNS), *stopped],
                           stdout=subprocess.PIPE, text=True, check=False)
    if "--record" in followers and not recorded():
        sys.exit(f"{call}: not recorded")
    subprocess.run([MVE, "stop", NAME], stdout=subprocess.DEVNULL, check=False)
    run.stdin.close()
    run.wait()
    if steps.returncode:
        sys.exit(f"{call}: not stepped")
    return int(steps.stdout)


bad = False
for limits, threads, among in ((LIMITS, [], ""), (LIMITS_THREADS, ["threads"], ", two threads")):
    for call, limit in limits.items():
        alone = count(call, threads)
        more = count(call, threads, *RING, "-f", "same") - alone
        written = count(call, threads, *RING, "--record", RECORDING) - alone
        shutil.rmtree(RECORDING)
        print(f"{call}{among}: {more} instructions (at most {limit}); recorded {written}")
        bad |= max(more, written) > limit
print("steps: " + ("too many" if bad else "ok"))
sys.exit(bad)
