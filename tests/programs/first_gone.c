/*
 * A process whose first thread has ended: the others go on with all that a process can do,
 * signals, new code, children, programs.  With "serve" it waits for its end from outside.
 */
#include <dlfcn.h>
#include <pthread.h>
#include "check.h"

static volatile sig_atomic_t handled;
static pthread_t first;
static char next[PATH_MAX];	/* /proc/self/exe goes with the first thread */

static void count(int sig)
{
	handled++;
}

static void signals(void)
{
	sigset_t set, old;

	on_signal(SIGUSR1, count, 0);
	on_signal(SIGSEGV, count, 0);
	kill(getpid(), SIGUSR1);
	raise(SIGUSR1);
	raise(SIGSEGV);
	CHECK_EQ(handled, 3);
	sigfillset(&set);
	pthread_sigmask(SIG_SETMASK, &set, &old);
	raise(SIGUSR1);
	CHECK_EQ(handled, 3);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	CHECK_EQ(handled, 4);
}

static void code(void)
{
	char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *library = dlopen("libm.so.6", RTLD_NOW);

	CHECK(library && dlsym(library, "cos"));
	memcpy(at, "\xb8\x27\x00\x00\x00\x0f\x05\xc3", 8);	/* getpid */
	CHECK_EQ(mprotect(at, 4096, PROT_READ | PROT_EXEC), 0);
	CHECK_EQ(((int (*)(void))at)(), getpid());
}

static void in_child(void)
{
	execl(beside("die"), "die", "exit", "7", NULL);
}

static void *rest(void *how)
{
	CHECK_EQ(pthread_join(first, NULL), 0);
	signals();
	code();
	CHECK_EQ(child_status(in_child), EXITED(7));
	if (!how)
		exit(passed("first_gone"));
	if (!strcmp(how, "exec"))
		execl(next, "exits", NULL);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	first = pthread_self();
	strcpy(next, beside("exits"));
	CHECK_EQ(pthread_create(&thread, NULL, rest, argv[1]), 0);
	pthread_exit(NULL);
}
