#!/usr/bin/env python3
"""damaged.py CASE...: recordings that are cut, changed or made up are replayed.

cut		of Redis, at any byte, compressed or not: equal up to the last whole frame, which
		is said, or refused
parted		of a shell and what it begins, between two frames: what one process waits for is
		missing of another; the replay ends all the same
beginning	its first file is empty or damaged, or its head: it cannot be replayed, which
		is no difference
made		made up, with sums that are right: it ends, whatever it comes to

CUTS: how many of each; FIRST: the first of them (0); SEED.  A round is its own: those that wait
for what does not come cost nothing meanwhile, so several run at a time (AT_ONCE).
"""
import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import frames
from recorded import EQUAL, MVE, NAME, NOT_WHOLE, Redis, fail, fresh, replay, run

CUTS = int(os.environ.get("CUTS", 6))
FIRST = int(os.environ.get("FIRST", 0))
SEED = int(os.environ.get("SEED", time.time()))
AT_ONCE = int(os.environ.get("AT_ONCE", 4))
SHELL = ["sh", "-c", "for i in 1 2 3; do date | cat; done; (sleep 0.01; date) & wait"]
# What it may come to: status, whether it is "up to there", and said to be not whole.  Of what
# fills the last cell of a frame nobody hears, and nothing is missing.
ENDS = ((NOT_WHOLE, True, True), (0, False, False))


def read(folder):
    with open(f"{folder}/000000.log", "rb") as f:
        return f.read()


def put(folder, data):
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with open(f"{folder}/000000.log", "wb") as f:
        f.write(data)
    return folder


class Round:
    """With a number, what is drawn by it, and a folder for what is made so."""

    def __init__(self, case, number):
        self.what = f"{case}, seed {SEED}, round {number}"
        self.number = number
        self.dice = random.Random(f"{SEED} {number}")
        self.folder = fresh(f"{case}-{number}.log")

    def replay(self, data, seconds):
        """Of one that fails what was replayed is left there."""
        try:
            p = run(MVE, "replay", "-n", f"{NAME}-{self.number}", put(self.folder, data),
                    timeout=seconds)
        except subprocess.TimeoutExpired:
            fail(f"{self.what}: it does not end")
        self.said = f"{p.returncode} {p.stdout}{p.stderr}"
        return p

    def good(self, is_good):
        if not is_good:
            fail(f"{self.what}: {self.said}")
        fresh(self.folder)


def rounds(one, *with_it):
    with ThreadPoolExecutor(AT_ONCE) as pool:
        # Looking at each result raises what it has failed with.
        for _ in pool.map(lambda i: one(Round(one.__name__, i), *with_it),
                          range(FIRST, FIRST + CUTS)):
            pass


def equal_so_far(r, data, calls):
    p = r.replay(data, 100)
    m = EQUAL.search(p.stdout)
    r.good(m and (p.returncode, bool(m[2]), "not whole" in p.stderr) in ENDS and
           int(m[1]) in range(calls if not m[2] else 0, calls + 1) or
           p.returncode == NOT_WHOLE and "cannot read the recording" in p.stderr)


def flipped(data, at, dice):
    return data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1:]


def cut_one(r, data, calls):
    at = r.dice.randrange(len(data))
    r.what += f", at {at}"
    equal_so_far(r, data[:at] if r.number % 2 else flipped(data, at, r.dice), calls)


def cut_of(*options):
    whole = fresh("cut.log")
    r = Redis(whole, *options)
    r.load(200)
    r.end()
    calls, _ = replay(whole)
    rounds(cut_one, read(whole), calls)


def cut():
    cut_of()
    cut_of("--compress", "3")


def shell_recorded():
    folder = fresh("shell.log")
    run(MVE, "run", "--record", folder, "--", *SHELL, status=0)
    return read(folder), replay(folder)[0]


def parted_one(r, data, calls, starts):
    at = r.dice.choice(starts)
    r.what += f", between frames, at {at}"
    equal_so_far(r, data[:at], calls)


def parted():
    data, calls = shell_recorded()
    rounds(parted_one, data, calls, list(frames.starts(data))[1:])


def cannot(folder, why):
    """Nothing is compared: nobody is to take it for a difference, or for equal."""
    for more in [], ["--partial"]:
        p = run(MVE, "replay", "-n", f"{NAME}-r", *more, folder, status=NOT_WHOLE)
        if why not in p.stderr or EQUAL.search(p.stdout):
            fail(f"{why} is not said: {p.stdout}{p.stderr}")


def beginning():
    data, _ = shell_recorded()
    folder, dice = fresh("beginning.log"), random.Random(SEED)
    head = next(frames.starts(data))
    for bad, why in ((b"", "it is cut short"), (data[:head - 1], "it is cut short"),
                     (flipped(data, 30, dice), "its beginning is damaged"),
                     (data[:head], "it has no head"), (data[:head + 70], "a frame is cut short"),
                     (flipped(data, head + 200, dice), "a frame is damaged")):
        put(folder, bad)
        cannot(folder, why)
        run(MVE, "log", folder, "verify", status=1)


def spoiled(segment, all_frames, dice):
    """One to three frames say something else, are missing, or come twice."""
    now = list(all_frames)
    for _ in range(dice.randrange(1, 4)):
        i = dice.randrange(1, len(now))
        fields, payload = list(now[i][0]), bytearray(now[i][1])
        how = dice.randrange(5)
        if how == 0:
            fields[dice.choice((frames.LANE, frames.LIFE))] += dice.choice((1, 7, 60))
        elif how == 1:
            fields[frames.AT] += dice.choice((1, 64, 511))
        elif how == 2 and payload:
            payload[dice.randrange(min(len(payload), 4096))] ^= 1 << dice.randrange(8)
        elif how == 3:
            del now[i]
            continue
        else:
            now.insert(i, now[i])
            continue
        fields[frames.CRC] = None
        now[i] = (fields, bytes(payload))
    return frames.together(segment, now)


def made_one(r, segment, all_frames):
    p = r.replay(spoiled(segment, all_frames, r.dice), 150)
    r.good(p.returncode in (0, 1, 3))


def made():
    rounds(made_one, *frames.apart(shell_recorded()[0]))


for case in sys.argv[1:]:
    globals()[case]()
print("damaged: ok")
