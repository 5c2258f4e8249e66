"""Reads `mve status --json`: status.py FIELD prints a field of the standard
input; status.py check MODE SHARE FOLDER tells whether FOLDER/status.json (less
FOLDER/from.json, if it is there) shows that the calls were held as they should.
"""
import json
import os
import sys


def load(path):
    """Calls by tier; without rt_sigreturn, which stays with the net: unwinders
    know a signal frame by the bytes of its `syscall`."""
    with open(path) as file:
        calls = json.load(file)["calls"]
    for row in calls["by_name"]:
        if row["name"] == "rt_sigreturn":
            calls["trap"] -= row["trap"]
    return calls


def main():
    if sys.argv[1] != "check":
        print(json.load(sys.stdin)[sys.argv[1]])
        return None
    mode, limit, folder = sys.argv[2], float(sys.argv[3]), sys.argv[4]
    now = load(folder + "/status.json")
    then = {"patch": 0, "trap": 0}
    if os.path.exists(folder + "/from.json"):
        then = load(folder + "/from.json")
    patch, trap = now["patch"] - then["patch"], now["trap"] - then["trap"]
    if now["unknown"]:
        return f"{now['unknown']} calls that mve does not know"
    if mode == "trap":
        return f"{patch} calls patched in tier trap" if patch else None
    if not patch:
        return "no call was patched"
    if trap > max(limit * (patch + trap), 2):
        return f"{trap} of {patch + trap} calls trapped, more than {limit}"
    return None


sys.exit(main())
