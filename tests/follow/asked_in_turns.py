#!/usr/bin/env python3
"""asked_in_turns.py: one at a time, a follower's thread waits for a monitor that has no processor:
the others go on waiting for their turns, and none of them is lost (in_turns.c, part code)."""
import json
import os
import signal
import subprocess
import time

STOPPED_S = 5   # longer than a turn that does not come is waited for


def main():
    program = os.environ["TESTS"] + "/in_turns"
    with subprocess.Popen(
            [os.environ["MVE"], "run", "-n", os.environ["MVE_SESSION"], "--one-at-a-time",
             "--status", "status.json", "-f", f"{program} code other", "--", program, "code",
             "tells"], stdout=subprocess.PIPE, text=True) as mve:
        assert mve.stdout.readline() == "mapped\n"
        os.kill(mve.pid, signal.SIGSTOP)
        time.sleep(STOPPED_S)
        os.kill(mve.pid, signal.SIGCONT)
        said = mve.stdout.read()
    assert mve.returncode == 0 and said == "in_turns: ok\n", (mve.returncode, said)
    with open("status.json", encoding="utf-8") as f:
        follower = json.load(f)["versions"][1]
    met = {w["kind"]: w["met"] for w in follower["waits"]}
    assert not follower["rewind"]["races"] and not met["turn"] and not met["baton"], follower
    print("asked_in_turns: ok")


if __name__ == "__main__":
    main()
