"""How many instructions a recorded call has more than an intercepted one, counted by single
steps: no clock and no other work has a part in it, so it may not grow.

A limit is what stands there today and a little more: who makes it less lowers it.
"""
import json
import os
import subprocess
import sys
import time

BUILD = os.path.join(os.environ["ROOT"], "build")
MVE, NAME = os.environ["MVE"], os.environ["MVE_SESSION"]
TURNS = 40
LIMIT_S = 60    # for what hangs

# Of 512 bytes: 200 of read's and write's are the copy.
LIMITS = {"getppid": 170, "read": 505, "write": 445, "close": 225, "open+close": 945,
          "clock_gettime": 380}


def server():
    status = subprocess.run([MVE, "status", "--json", NAME], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, check=False)
    return json.loads(status.stdout)["server"] if not status.returncode else 0


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


def count(call, *followers):
    run = subprocess.Popen([MVE, "run", "-n", NAME, *followers, "--", BUILD + "/perf/record"],
                           stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    run.stdin.write(f"{call} 2000000000 1\n")
    run.stdin.flush()
    pid = wait_for(server)
    if not pid or not wait_for(lambda: recording(pid)):
        sys.exit(f"{call}: does not run")
    steps = subprocess.run([BUILD + "/perf/steps", str(pid), str(TURNS)], stdout=subprocess.PIPE,
                           text=True, check=False)
    subprocess.run([MVE, "stop", NAME], stdout=subprocess.DEVNULL, check=False)
    run.stdin.close()
    run.wait()
    if steps.returncode:
        sys.exit(f"{call}: not stepped")
    return int(steps.stdout)


bad = False
for call, limit in LIMITS.items():
    alone, told = count(call), count(call, "-f", "same")
    print(f"{call}: {told - alone} instructions (at most {limit})")
    bad |= told - alone > limit
print("steps: " + ("too many" if bad else "ok"))
sys.exit(bad)
