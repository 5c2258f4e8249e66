#!/usr/bin/env python3
"""torture.py MVE_CC ROOT PART/PARTS [FLAGS...]: gcc's c-torture programs, built by mve-cc.

Each program of gcc.c-torture/execute that passes when plain clang builds it must pass when mve-cc
does, and must pass twice in one process whose first run was taken back (twice.c). The sources are
Debian's gcc-12 (servers/fetch).  Of these each PARTS-th is tried, from the PART-th on.
"""
import concurrent.futures
import glob
import os
import subprocess
import sys

CC, ROOT = sys.argv[1:3]
PART, PARTS = map(int, sys.argv[3].split("/"))
LEVELS = sys.argv[4:] or ["-O0", "-O2", "-O3"]
QUIET = ["-w", "-std=gnu89", "-fno-strict-aliasing"]
FOLDER = "gcc/testsuite/gcc.c-torture/execute"


def sources():
    got = subprocess.run([ROOT + "/servers/fetch", "--source", "gcc-12", "bookworm"],
                         capture_output=True, text=True, check=False, timeout=900)
    if got.returncode:
        print(got.stderr.strip())
        sys.exit(77)
    tar = glob.glob(got.stdout.strip() + "/gcc-12*.tar.xz")[0]
    if not os.path.exists("gcc"):
        subprocess.run(["tar", "xf", tar, "--strip-components=1", "--wildcards", f"*/{FOLDER}/*"],
                       check=True)
    return sorted(glob.glob(FOLDER + "/*.c") + glob.glob(FOLDER + "/ieee/*.c"))[PART - 1::PARTS]


def passes(words):
    """What went wrong, or nothing."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=120,
                              check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return "took too long"
    return done.returncode and f"{done.returncode}: {done.stderr[-300:].strip()}"


def tried(source, level):
    """(does clang's pass?, what is wrong with mve-cc's)"""
    name = f"./{os.path.basename(source)[:-2]}{level}"
    try:
        if passes(["clang-19", level, *QUIET, source, "-o", name, "-lm"]) or passes([name]):
            return False, []
        wrong = []
        why = passes([CC, level, *QUIET, source, "-o", name, "-lm"]) or passes([name])
        if why:
            wrong.append(f"once: {why}")
        why = passes([CC, level, *QUIET, "-c", source, "-o", name + ".o"]) or \
            passes(["objcopy", "--redefine-sym", "main=first_main",
                    "--redefine-sym", "exit=first_exit", name + ".o"]) or \
            passes([CC, level, "-w", name + ".o", "twice.o", "-o", name, "-lm"]) or passes([name])
        if why:
            wrong.append(f"twice: {why}")
        return True, wrong
    finally:
        for old in (name, name + ".o"):
            if os.path.exists(old):
                os.unlink(old)


def main():
    files = sources()
    subprocess.run([CC, "-O2", "-c", ROOT + "/tests/checkpoint/twice.c", "-o", "twice.o"],
                   check=True)
    passed = failed = 0
    for level in LEVELS:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for source, (clang, wrong) in zip(files, pool.map(lambda s: tried(s, level), files)):
                passed += clang and not wrong
                failed += bool(wrong)
                for why in wrong:
                    print(f"{source} {level}: {why}", flush=True)
    print(f"{passed} passed, {failed} failed, of {len(files)} programs at {' '.join(LEVELS)}")
    if failed or not passed:
        sys.exit(1)
    print("torture: ok")


main()
