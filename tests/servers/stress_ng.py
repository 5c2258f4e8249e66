"""stress_ng.py [STRESSOR...]: runs each stressor of stress-ng for a second,
one worker, results verified, natively and under mve in both tiers; tells which
end with another status.

Environment: MVE, MVE_TIER, MVE_SESSION."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

LIMIT_S = 25
MVE = os.environ["MVE"]
SESSION = os.environ.get("MVE_SESSION", "stress")
TIERS = [os.environ["MVE_TIER"]] if "MVE_TIER" in os.environ else ["patch", "trap"]
# What needs hardware, takes the machine's memory or changes the machine.
SKIPPED = set("""
    bad-ioctl binderfs bigheap clock cpu-online dev enosys fork-vm io-uring
    ioport klog l1cache lockmix mlockmany module netlink-proc oom-pipe
    physpage quota ramfs rawdev rawpkt rawsock rawudp rtc settime smi softlockup
    swap sysbadaddr sysfs sysinval tlb-shootdown tun umount usersyscall
    watchdog x86cpuid cpu-sched zombie
""".split())


def run(name, mode):
    folder = tempfile.mkdtemp(prefix="stress-")
    os.chmod(folder, 0o777)
    argv = ["stress-ng", f"--{name}", "1", "-t", "1", "--verify", "--oomable",
            "--temp-path", folder]
    if mode != "native":
        argv = [MVE, "run", f"--tier={mode}", "-n", f"{SESSION}-{mode}-{name}", "--", *argv]
    with open(folder + "/log", "wb+") as log:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                 cwd=folder, start_new_session=True)
        try:
            status = child.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            status = "time-out"
            child.terminate()
            try:
                child.wait(3)
            except subprocess.TimeoutExpired:
                pass
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        log.seek(0)
        text = log.read().decode("latin-1")
    shutil.rmtree(folder, ignore_errors=True)
    return status, text


def compare(name):
    native = run(name, "native")
    trouble = []
    for tier in TIERS:
        got = run(name, tier)
        if got[0] != native[0] and got[0] != "time-out":
            native, got = run(name, "native"), run(name, tier)
        if got[0] != native[0]:
            trouble.append((tier, got, native))
    return name, native[0], trouble


def main():
    listed = subprocess.run(["stress-ng", "--stressors"], capture_output=True, text=True,
                            check=True).stdout.split()
    names = sys.argv[1:] or [n for n in listed if n not in SKIPPED]
    zero = bad = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, native, trouble in pool.map(compare, names):
            zero += native == 0
            bad += bool(trouble)
            for tier, got, was in trouble:
                print(f"{name}: {tier}: ends with {got[0]}, natively {was[0]}")
                for line in got[1].strip().splitlines()[-5:]:
                    print("    " + line[:160])
            sys.stdout.flush()
    print(f"{len(names)} stressors, {zero} end with 0 natively, {bad} differ under mve")
    return 1 if bad else 0


sys.exit(main())
