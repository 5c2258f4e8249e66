#!/usr/bin/env python3
"""thousand.py N SPINNERS PROGRAM[:WORD]...: each program, of threads that work together, N times
with a follower, beside so many processes that want a processor: it lives to the end, and no thread
of it comes to the limit of a wait. Says of each what went otherwise, how often; what was met again
(races); and how often the leader's threads waited no longer for others without a processor, which
is theirs to do on a busy machine. What was said of the first fault of each kind stays in the
folder."""
import collections
import contextlib
import json
import os
import subprocess
import sys

TIMES, SPINNERS = int(sys.argv[1]), int(sys.argv[2])


def look(versions):
    """What is a fault, and what is said beside that."""
    follower = versions[1]
    met = [(w["whose"], f"wait: {v['name']} {w['kind']}")
           for v in versions for w in v["waits"] if w["met"]]
    found = [what for whose, what in met if whose != "leader"]
    if follower["verdicts"] or follower["why"] != "ended as the leader did":
        found.append(f"lost: {follower['why']} {follower['verdicts']}")
    return found, [what for whose, what in met if whose == "leader"] + [
        f"race at {race['place']}" for race in follower["rewind"]["races"]]


def once(program, words):
    with contextlib.suppress(FileNotFoundError):
        os.unlink("status.json")
    done = subprocess.run(
        [os.environ["MVE"], "run", "-n", os.environ["MVE_SESSION"], "-f", "same", "--when-full",
         "block", "--failover", "off", "--status", "status.json", "--",
         f"{os.environ['TESTS']}/{program}", *words],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    with open("status.json", encoding="utf-8") as f:
        status = f.read()
    found, beside = look(json.loads(status)["versions"])
    if done.returncode or f"{program}: ok\n" not in done.stdout:
        found.append(f"status {done.returncode}")
    return found, beside, status + "\n" + done.stdout


def often(name, all_found):
    """So often; how many faults."""
    program, *words = name.split(":")
    faults, others = collections.Counter(), collections.Counter()
    for _ in range(TIMES):
        found, beside, said = once(program, words)
        faults.update(found)
        others.update(beside)
        for what in found:
            if not all_found[what]:
                with open(f"said-{len(all_found)}", "w", encoding="utf-8") as f:
                    f.write(f"{name}: {what}\n{said}")
            all_found[what] += 1
    print(f"{name}: {TIMES} times, {dict(faults) or 'no fault'}, beside that {dict(others)}",
          flush=True)
    return sum(faults.values())


def main():
    spinners = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(SPINNERS)]
    all_found = collections.Counter()
    try:
        bad = sum(often(name, all_found) for name in sys.argv[3:])
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
    if bad:
        raise SystemExit(f"{bad} faults: {dict(all_found)}")
    print("thousand: ok")


if __name__ == "__main__":
    main()
