#!/usr/bin/env python3
"""starved.py: a leader is on its way to its crash, by calls that a sound follower does not
make, and gets little of a processor: the follower is not blamed before the leader had its time."""
import os
import subprocess

from session import MVE
from load import Wrong

SPINNERS = 10
VERDICT_MS = 50

SOURCE = """
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* What abort() does: a call that was not expected, some work, and the end. */
static void dies(void)
{
	struct timespec t = { 0 };
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_UNBLOCK, &all, NULL);
	while (t.tv_nsec < 25000000 && !t.tv_sec) {
		for (volatile int i = 0; i < 1000000; i++)
			;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	}
	kill(getpid(), SIGSEGV);
}

int main(void)
{
	char line[16];

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("%d\\n", getpid());
	if (read(0, line, sizeof(line)) <= 0)
		return 1;
	if (CRASHES)
		dies();
	printf("served\\n");
	return 0;
}
"""


def build(crashes):
    out = f"{os.getcwd()}/starved-{crashes}"
    subprocess.run(["gcc", "-O1", f"-DCRASHES={crashes}", "-o", out, "-xc", "-"], check=True,
                   input=SOURCE, text=True)
    return out


def spinner(cpu):
    return subprocess.Popen(["sh", "-c", "while :; do :; done"],
                            preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))


def main():
    name = os.environ.get("MVE_SESSION", f"starved-{os.getpid()}")
    server = subprocess.Popen([MVE, "run", "-n", name, "--verdict-ms", str(VERDICT_MS), "-f",
                               build(0), "--", build(1)], stdin=subprocess.PIPE, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    leader = int(server.stdout.readline())
    cpu = min(os.sched_getaffinity(0))
    os.sched_setaffinity(leader, {cpu})
    spinners = [spinner(cpu) for _ in range(SPINNERS)]
    try:
        out, err = server.communicate("go\n", timeout=60)
    finally:
        for s in spinners:
            s.kill()
            s.wait()
    if out != "served\n" or server.returncode:
        raise Wrong(f"{server.returncode}: {out!r}: {err}")
    print("starved: ok")


if __name__ == "__main__":
    main()
