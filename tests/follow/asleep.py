#!/usr/bin/env python3
"""asleep.py: a follower whose lane is quiet sleeps without looking, and whatever its leader tells
then wakes it.  asleep.py blind: in a sandbox that forbids what it sleeps by; it looks now and then.

The leader does one thing at a time (a call, a lock, a signal, ...) when its follower has gone to
sleep, and then nothing: a wake-up that is missed is missed for good.
"""
import ctypes
import glob
import json
import os
import signal
import struct
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MVE = os.environ.get("MVE", os.path.join(ROOT, "build/mve"))
WAIT_S = 20         # for what is to come at once
QUIET_S = 3.0

wakes_most = 2      # of a thread in that time
stopped = []        # the leader, while it is stopped

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
MEMBARRIER, FUTEX_WAITV = 324, 449

SOURCE = r"""
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define BIG (300 << 10)		/* of many pieces, each in a chunk of its own */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void on_signal(int sig)
{
	(void)sig;
}

static void *idle(void *arg)
{
	pthread_mutex_lock(&mutex);
	for (;;)
		pthread_cond_wait(&never, &mutex);
	return arg;
}

/* Long enough for a follower to sleep; how long it is does not matter. */
static void work(void)
{
	for (volatile long i = 0; i < 60000000; i++)
		;
}

static void act(char what, char *big, int null)
{
	pthread_t t;
	pid_t pid;

	switch (what) {
	case 'c':
		getppid();
		break;
	case 'l':
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
		break;
	case 's':
		raise(SIGUSR1);
		break;
	case 'b':
		if (write(null, big, BIG) < 0)
			abort();
		break;
	case 'f':
		pid = fork();
		if (!pid) {
			work();
			getppid();
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		break;
	case 't':
		pthread_create(&t, NULL, idle, NULL);
		break;
	}
}

int main(void)
{
	char *big = calloc(1, BIG), what;
	int null = open("/dev/null", O_WRONLY);

	signal(SIGUSR1, on_signal);
	while (read(0, &what, 1) == 1) {
		work();
		act(what, big, null);
	}
	return 0;
}
"""


def wrong(words):
    print(f"asleep: {words}")
    sys.exit(1)


def wait_for(what, words):
    end = time.monotonic() + WAIT_S
    while True:
        found = what()
        if found:
            return found
        if time.monotonic() > end:
            wrong(f"not in {WAIT_S} s: {words}")
        time.sleep(0.02)


def versions(name):
    done = subprocess.run([MVE, "status", name, "--json"], capture_output=True, check=False)
    return json.loads(done.stdout)["versions"] if not done.returncode else []


def threads(pid):
    """{thread: (how often it gave the processor away, what it used of one)}"""
    found = {}
    for path in glob.glob(f"/proc/{pid}/task/*"):
        with open(path + "/status") as f:
            words = dict(line.split(":", 1) for line in f)
        with open(path + "/schedstat") as f:
            found[path] = (int(words["voluntary_ctxt_switches"]), int(f.read().split()[0]))
    return found


def sleeps(pid):
    """The server has done what it was told to: none of its threads does anything."""
    before = threads(pid)
    time.sleep(0.1)
    return before == threads(pid)


def is_quiet(pid):
    before = threads(pid)
    time.sleep(QUIET_S)
    for path, (now, ran) in threads(pid).items():
        was, had = before.get(path, (now, ran))
        if now - was > wakes_most or ran - had > QUIET_S * 1e9 / 2:
            return False
    return True


def quiet_comes(pid, when):
    """A follower that has not had the processor yet has still to do what it was told."""
    wait_for(lambda: is_quiet(pid), f"{when}: the follower's threads sleep")


def all_read(name):
    rows = versions(name)
    return len(rows) == 2 and rows[1]["role"] == "follower" and not rows[1]["lag_cells"]


def each(name, server, leader, acts):
    for what in acts:
        server.stdin.write(what.encode())
        server.stdin.flush()
        wait_for(lambda: sleeps(leader), "the server sleeps")
        wait_for(lambda: all_read(name), f"{what}: its follower has read all")


def forbid(call):
    """From here on the kernel knows no such call, for this process and all that it begins."""
    libc = ctypes.CDLL(None, use_errno=True)
    load, same, done = 0x20, 0x15, 0x06     # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K
    code = [(load, 0, 0, 0), (same, 0, 1, call), (done, 0, 0, 0x50000 | 38),
            (done, 0, 0, 0x7fff0000)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *c) for c in code))
    header = struct.pack("HxxxxxxQ", len(code), ctypes.addressof(program))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or \
            libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header, 0, 0):
        wrong(f"seccomp: {os.strerror(ctypes.get_errno())}")


def quiet(server, leader, follower):
    """The leader waits, then it works: its follower does not wake."""
    quiet_comes(follower, "where the leader waits")
    server.stdin.write(b"c")
    server.stdin.flush()
    time.sleep(0.03)
    os.kill(leader, signal.SIGSTOP)
    stopped.append(leader)
    quiet_comes(follower, "where the leader works")
    os.kill(stopped.pop(), signal.SIGCONT)


def session(blind):
    subprocess.run(["gcc", "-O1", "-pthread", "-o", "asleep", "-xc", "-"], check=True,
                   input=SOURCE, text=True)
    name = os.environ.get("MVE_SESSION", f"asleep-{os.getpid()}")
    server = subprocess.Popen([MVE, "run", "-n", name, "-f", "same", "--", "./asleep"],
                              stdin=subprocess.PIPE,
                              preexec_fn=(lambda: forbid(blind)) if blind else None)
    try:
        wait_for(lambda: all_read(name), "it begins")
        leader, follower = (row["pid"] for row in versions(name))
        each(name, server, leader, "ccsbfccc")
        quiet(server, leader, follower)
        each(name, server, leader, "tclsbcl")
        quiet_comes(follower, "with threads")
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        server.stdin.close()
        status = server.wait(WAIT_S)
    if status:
        wrong(f"status {status}")


def main():
    global wakes_most
    if sys.argv[1:] == ["blind"]:
        wakes_most = QUIET_S * 100 + 2
        for call in (FUTEX_WAITV, MEMBARRIER):
            session(call)
    else:
        session(None)
    print("asleep: ok")


main()
