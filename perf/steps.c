/*
 * How many instructions a program's loop takes, counted one by one: no other work on the
 * machine and no clock has a part in that.
 *
 *	steps PID TURNS [STOPPED]	the least of so many turns: what comes only now and then,
 *					as a new second does, makes a turn longer
 *
 * STOPPED, a follower of it, reads what it has, falls asleep, and stands still meanwhile: it is
 * woken once, where else each event would have to wake it, since a thread that is stepped is slow.
 *
 * The thread is stepped from where it is.  The first address of the program's own file that
 * it comes to marks a turn of its loop.  With STEPS_TRACE set each address goes to standard
 * error, for who wants to know where they go.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRAP_FLAG	0x100ull
#define STEPS_MAX	2000000	/* a turn of more is none */
#define LOOKS		20	/* so often it is seen asleep, */
#define LOOK_US		5000	/* this far apart */

static struct range {
	uint64_t from, to;
} code[16];
static int codes;

static void fail(const char *what)
{
	fprintf(stderr, "steps: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Where the code of the file lies that the process executes: the first that is mapped. */
static void code_find(pid_t pid)
{
	char path[64], line[512], file[256] = "", name[256], rights[8];
	unsigned long from, to;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "r");
	if (!maps)
		fail(path);
	while (fgets(line, sizeof(line), maps) && codes < 16) {
		if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &from, &to, rights, name) < 4)
			continue;
		if (!*file)
			strcpy(file, name);
		if (rights[2] == 'x' && !strcmp(file, name))
			code[codes++] = (struct range){ from, to };
	}
	fclose(maps);
}

static bool is_own(uint64_t at)
{
	for (int i = 0; i < codes; i++)
		if (at >= code[i].from && at < code[i].to)
			return true;
	return false;
}

static int sig;		/* that came meanwhile: it is the program's */

static uint64_t step(pid_t pid)
{
	struct user_regs_struct regs;
	int status;

	if (ptrace(PTRACE_SINGLESTEP, pid, 0, sig) || waitpid(pid, &status, __WALL) != pid ||
	    !WIFSTOPPED(status))
		fail("single step");
	sig = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
	if (ptrace(PTRACE_GETREGS, pid, 0, &regs))
		fail("registers");
	return regs.rip;
}

/* The gate gives the program the flags back that it had at its call: with our trap flag. */
static void release(pid_t pid)
{
	struct user_regs_struct regs;

	if (!ptrace(PTRACE_GETREGS, pid, 0, &regs)) {
		regs.eflags &= ~TRAP_FLAG;
		ptrace(PTRACE_SETREGS, pid, 0, &regs);
	}
	ptrace(PTRACE_DETACH, pid, 0, sig);
}

static char state_of(pid_t pid)
{
	char path[64], line[512] = "", *end;
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	stat = fopen(path, "r");
	if (!stat || !fgets(line, sizeof(line), stat))
		fail(path);
	fclose(stat);
	end = strrchr(line, ')');
	return end ? end[2] : 0;
}

/* Its leader stands still: once it sleeps it has read everything. */
static void put_asleep(pid_t pid)
{
	for (int asleep = 0; asleep < LOOKS; usleep(LOOK_US))
		asleep = state_of(pid) == 'S' ? asleep + 1 : 0;
	if (kill(pid, SIGSTOP))
		fail("stop");
}

int main(int argc, char **argv)
{
	const bool trace = getenv("STEPS_TRACE");
	uint64_t mark = 0, at, last = 0;
	long wanted, done = 0, since = 0, least = STEPS_MAX;
	pid_t pid, stopped;
	int status;

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: steps PID TURNS [STOPPED]\n");
		return 2;
	}
	pid = atoi(argv[1]);
	stopped = argc == 4 ? atoi(argv[3]) : 0;
	wanted = atol(argv[2]);
	code_find(pid);
	if (ptrace(PTRACE_SEIZE, pid, 0, 0) || ptrace(PTRACE_INTERRUPT, pid, 0, 0) ||
	    waitpid(pid, &status, __WALL) != pid)
		fail("seize");
	if (stopped)
		put_asleep(stopped);
	while (done < wanted && since < STEPS_MAX) {
		at = step(pid);
		since += at != last;	/* a string instruction is stepped round by round */
		last = at;
		if (trace && mark)
			fprintf(stderr, "%lx\n", at);
		if (!mark && is_own(at)) {
			mark = at;
			since = 0;
		} else if (at == mark) {
			least = since < least ? since : least;
			done++;
			since = 0;
		}
	}
	release(pid);
	if (stopped)
		kill(stopped, SIGCONT);
	if (done < wanted) {
		fprintf(stderr, "steps: no loop\n");
		return 1;
	}
	printf("%ld\n", least);
	return 0;
}
