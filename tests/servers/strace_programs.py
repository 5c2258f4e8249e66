"""strace_programs.py FOLDER [NAME...]: runs each test program of strace (built
in FOLDER) natively and under mve in both tiers; tells which end otherwise or
print otherwise (numbers, addresses and times left aside).

Environment: MVE, MVE_TIER, MVE_SESSION."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

LIMIT_S = 20
MVE = os.environ["MVE"]
SESSION = os.environ.get("MVE_SESSION", "strace")
SCRATCH = tempfile.mkdtemp(prefix="strace-")
TIERS = [os.environ["MVE_TIER"]] if "MVE_TIER" in os.environ else ["patch", "trap"]

# Programs that may differ, and why: (pattern, tiers, reason).
KNOWN = [(re.compile(pattern), tiers, why) for pattern, tiers, why in (
    (r"arch_prctl", "patch trap", "ARCH_SET_GS is refused: GS is mve's"),
    (r"io_uring_setup", "patch trap", "io_uring is not offered"),
    (r"prctl-syscall-user-dispatch", "patch trap", "the net stands on it"),
    (r"ptrace(-y)?(-X.*)?$", "patch trap", "shows the tracee's gs_base"),
    (r"ptrace|printpath-umovestr|printstrn-umoven", "trap",
     "a tracer sees the SIGSYS of each of its tracee's calls"),
    (r"getrandom|net-yy?-unix|so_peercred", "patch trap", "prints what is never the same"),
)]
SKIPPED = re.compile(r"syslog|vhangup")  # take from the kernel's log, from the terminal


def known(name, tier):
    return any(pattern.match(name) and tier in tiers for pattern, tiers, _ in KNOWN)


def programs(folder):
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK) and not SKIPPED.match(name):
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def plain(output):
    """What stays when numbers do not count."""
    text = output.decode("latin-1")
    text = re.sub(r"0x[0-9a-f]+|\b[0-9a-f]{6,}\b", "H", text)
    return re.sub(r"\d+", "N", text)


def run(path, mode):
    base = os.path.basename(path)
    folder = os.path.join(SCRATCH, base)  # the same in each mode: names are printed
    os.mkdir(folder)
    # The shell between leads the session, as mve does else: some programs ask.
    argv = ["sh", "-c", '"$0"; exit $?', path]
    if mode != "native":
        argv = ["sh", "-c", '"$0" "$@"; exit $?', MVE, "run", f"--tier={mode}", "-n", f"{SESSION}-{mode}-{base}"[:60], "--", path]
    with open(folder + "/out", "wb+") as out, open(folder + "/err", "wb+") as err:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                 cwd=folder, start_new_session=True)
        try:
            status = child.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            status = "time-out"
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        out.seek(0)
        err.seek(0)
        result = status, plain(out.read()), err.read().decode("latin-1")
    shutil.rmtree(folder, ignore_errors=True)
    return result


def compare(path):
    native = run(path, "native")
    trouble = []
    for tier in TIERS:
        for attempt in range(2):  # twice: some depend on luck natively too
            got = run(path, tier)
            if got[:2] == native[:2]:
                break
            native = run(path, "native")
        if got[0] != native[0]:
            trouble.append((tier, f"ends with {got[0]}, natively {native[0]}", got[2]))
        elif got[1] != native[1]:
            trouble.append((tier, f"prints otherwise (status {got[0]})",
                            first_difference(native[1], got[1])))
    return os.path.basename(path), native[0], trouble


def first_difference(one, other):
    for a, b in zip(one.splitlines() + [""], other.splitlines() + [""]):
        if a != b:
            return f"native: {a[:200]}\nmve:    {b[:200]}"
    return "one is longer"


def main():
    paths = [p for p in programs(sys.argv[1])
             if len(sys.argv) == 2 or os.path.basename(p) in sys.argv[2:]]
    zero = bad = expected = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, native, trouble in pool.map(compare, paths):
            zero += native == 0
            news = [t for t in trouble if not known(name, t[0])]
            expected += len(trouble) > len(news)
            bad += bool(news)
            for tier, what, more in news:
                print(f"{name}: {tier}: {what}")
                for line in more.strip().splitlines()[-4:]:
                    print("    " + line)
            sys.stdout.flush()
    shutil.rmtree(SCRATCH, ignore_errors=True)
    print(f"{len(paths)} programs, {zero} end with 0 natively; under mve {expected} "
          f"differ as they are known to, {bad} otherwise")
    return 1 if bad else 0


sys.exit(main())
