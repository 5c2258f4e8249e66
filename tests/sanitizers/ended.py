"""ended.py FILE FOLLOWERS: of the session of this final status, have so many
followers come to the leader's end, or been on their way to it, without a verdict?"""
import json
import sys

ENDS = ("ended as the leader did", "ended with the session")


def main():
    with open(sys.argv[1]) as file:
        followers = json.load(file)["versions"][1:]
    if len(followers) != int(sys.argv[2]):
        return f"{len(followers)} followers"
    for v in followers:
        if v["verdicts"] or v["why"] not in ENDS:
            return f"{v['name']}: {v['why']} {v['verdicts']}"
    return None


sys.exit(main())
