#!/usr/bin/env python3
"""rseq.py: what libc reads its processor's number from is the kernel's again, in each thread, when
an attached program that was followed is left; meanwhile it knows none."""
import ctypes
import os
import subprocess
import sys
import threading
import time

MVE, NAME = os.environ["MVE"], os.environ["MVE_SESSION"]
LIMIT_S = 60        # for what hangs


def number():
    libc = ctypes.CDLL(None)
    libc.pthread_self.restype = ctypes.c_void_p
    at = libc.pthread_self() + ctypes.c_long.in_dll(libc, "__rseq_offset").value
    return ctypes.c_int.from_address(at + 4).value


def program():
    """A word for each of its threads, as often as it is asked."""
    (asked, ask_it), said = os.pipe(), []

    def other():
        while os.read(asked, 1):
            said.append(number())

    threading.Thread(target=other, daemon=True).start()
    for _ in sys.stdin:
        os.write(ask_it, b"?")
        while not said:
            time.sleep(0.001)
        print(number(), said.pop(), flush=True)


def ask(p):
    p.stdin.write("?\n")
    p.stdin.flush()
    return [int(word) >= 0 for word in p.stdout.readline().split()]


def must(p, known, when):
    if ask(p) != [known, known]:
        raise SystemExit(f"{when}: the number is {'not ' if known else ''}known")


def mve(*words):
    done = subprocess.run([MVE, *words], capture_output=True, text=True, timeout=LIMIT_S)
    if "try again" in done.stderr:
        time.sleep(0.1)
        return mve(*words)
    if done.returncode:
        raise SystemExit(f"mve {words}: {done.stdout}{done.stderr}")
    return done.stdout


def main():
    if not hasattr(ctypes.CDLL(None), "__rseq_offset"):
        print("needs a libc that registers rseq")
        raise SystemExit(77)
    p = subprocess.Popen([sys.executable, __file__, "program"], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
    try:
        must(p, True, "natively")
        at = subprocess.Popen([MVE, "attach", "-n", NAME, str(p.pid)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        at.stdout.readline()
        must(p, True, "attached")
        twin = mve("follow", NAME).split(":")[0]
        must(p, False, "followed")
        mve("drop", NAME, twin)
        mve("detach", NAME)
        at.wait(LIMIT_S)
        must(p, True, "left")
    finally:
        p.kill()
        p.wait()
    print("rseq: ok")


if sys.argv[1:]:
    program()
else:
    main()
