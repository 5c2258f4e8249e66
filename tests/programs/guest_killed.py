#!/usr/bin/env python3
"""guest_killed.c with a follower: nobody has waited for the clock of a process that was killed."""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.environ.get("ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
MVE = os.environ.get("MVE", ROOT + "/build/mve")
SESSION = os.environ.get("MVE_SESSION", f"t-{os.getpid()}")

with tempfile.TemporaryDirectory() as folder:
    subprocess.run([MVE, "run", "-n", SESSION, "-f", "same", "--ring", "64M", "--status",
                    folder + "/status", "--", ROOT + "/build/tests/guest_killed"], check=True)
    with open(folder + "/status") as f:
        leader = json.load(f)["versions"][0]
met = [w["met"] for w in leader["waits"] if w["kind"] == "written"]
if met != [0]:
    sys.exit(f"the leader has waited in vain for who wrote a second down: {met}")
