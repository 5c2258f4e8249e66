/*
 * Two threads make new code at once.  The first is stopped while it arms itself, before it
 * has armed anybody else; the second's mmap is not to come back before all are armed.
 *
 * seal_second: the server, which does as each letter on its standard input says.
 * seal_second SERVER-TID: its tracer, which holds that thread in its prctl, until told.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int go[2];

static void *make_code(void *arg)
{
	int own = (int)(long)arg;

	printf("tid %d\n", gettid());
	while (!go[own])
		usleep(1000);
	mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	printf("code %d\n", own);
	return NULL;
}

static int serve(void)
{
	pthread_t t[2];
	int c;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (long i = 0; i < 2; i++) {
		pthread_create(&t[i], NULL, make_code, (void *)i);
		usleep(100000);		/* who is first says so first */
	}
	while ((c = getchar()) != EOF)
		if (c == '0' || c == '1')
			go[c - '0'] = 1;
	return 0;
}

static int trace(pid_t tid)
{
	struct user_regs_struct r;
	int status;

	if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD) ||
	    ptrace(PTRACE_INTERRUPT, tid, 0, 0) || waitpid(tid, &status, __WALL) != tid)
		return 1;
	puts("holds");
	fflush(stdout);
	do {
		if (ptrace(PTRACE_SYSCALL, tid, 0, 0) || waitpid(tid, &status, __WALL) != tid ||
		    ptrace(PTRACE_GETREGS, tid, 0, &r))
			return 1;
	} while (r.orig_rax != SYS_prctl || r.rdi != PR_SET_SYSCALL_USER_DISPATCH);
	puts("stopped");
	fflush(stdout);
	getchar();
	return 0;		/* and it goes on */
}

int main(int argc, char **argv)
{
	return argc > 1 ? trace(atoi(argv[1])) : serve();
}
