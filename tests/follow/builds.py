#!/usr/bin/env python3
"""builds.py: one program, built in several ways; each build follows each other one."""
import json
import os
import subprocess

ROOT, MVE = os.environ["ROOT"], os.environ["MVE"]
BUILDS = {"pie": ["-O1", "-pie", "-fPIE"], "fixed": ["-O0", "-no-pie"],
          "fast": ["-O3", "-flto", "-s"], "static": ["-O1", "-static"],
          "static-pie": ["-O1", "-static-pie"]}


def main():
    for name, flags in BUILDS.items():
        subprocess.run(["gcc", *flags, "-o", name, ROOT + "/tests/follow/builds.c", "-pthread"],
                       check=True)
    for leader in BUILDS:
        for follower in BUILDS:
            done = subprocess.run([MVE, "run", "--status", "status", "-f", f"./{follower} x",
                                   "--", f"./{leader}", "x"], capture_output=True, text=True,
                                  timeout=20)
            f1 = json.load(open("status"))["versions"][1]
            if done.returncode != 5 or done.stdout != "x 7 data 99 0 1\nand on\n":
                raise SystemExit(f"{leader}: {done.returncode} {done.stdout}{done.stderr}")
            if f1["why"] != "ended as the leader did":
                raise SystemExit(f"{follower} follows {leader}: {f1['why']}\n{done.stderr}")
    print("builds: ok")


if __name__ == "__main__":
    main()
