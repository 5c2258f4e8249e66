/*
 * Call sites that several threads reach for the first time at the same
 * moment, while signals arrive and other threads fork, load libraries and
 * make code: whoever rewrites a site rewrites it under the feet of others.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/time.h>
#include "check.h"

#define THREADS 4
#define ROUNDS 300
#define SITES 64

typedef long code_fn(void);

static pthread_barrier_t barrier;
static uint8_t *page;
static volatile sig_atomic_t ticks;
static volatile bool done;

static void tick(int sig)
{
	if (raw0(SYS_getpid) != getpid())
		_exit(5);
	ticks++;
}

static void emit_sites(void)
{
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	for (int i = 0; i < SITES; i++)
		memcpy(page + i * 13, "\xb8\x27\x00\x00\x00\x0f\x05\xc3", 8);
	CHECK_EQ(mprotect(page, 4096, PROT_READ | PROT_EXEC), 0);
}

static void *caller(void *first)
{
	pid_t pid = getpid();

	for (int round = 0; round < ROUNDS; round++) {
		if (first)
			emit_sites();
		pthread_barrier_wait(&barrier);
		for (int i = 0; i < SITES; i++)
			for (int again = 0; again < 4; again++)
				CHECK_EQ(((code_fn *)(page + i * 13))(), pid);
		pthread_barrier_wait(&barrier);
		if (first)
			munmap(page, 4096);
	}
	return NULL;
}

static void *loader(void *path)
{
	while (!done) {
		void *lib = dlopen(path, RTLD_NOW);
		CHECK(lib);
		CHECK_EQ(((code_fn *)dlsym(lib, "plugin_getpid"))(), getpid());
		dlclose(lib);
	}
	return NULL;
}

static void *forker(void *arg)
{
	while (!done) {
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (!pid)
			_exit(raw0(SYS_getpid) == getpid() ? 3 : 1);
		CHECK_EQ(status_of(pid), EXITED(3));
	}
	return NULL;
}

static void run(const char *path)
{
	pthread_t callers[THREADS], load, fork_thread;

	CHECK_EQ(pthread_create(&load, NULL, loader, (void *)path), 0);
	CHECK_EQ(pthread_create(&fork_thread, NULL, forker, NULL), 0);
	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&callers[i], NULL, caller,
					i ? NULL : &barrier), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(callers[i], NULL);
	done = true;
	pthread_join(load, NULL);
	pthread_join(fork_thread, NULL);
}

int main(void)
{
	struct itimerval every = { { 0, 300 }, { 0, 300 } }, off = { 0 };

	pthread_barrier_init(&barrier, NULL, THREADS);
	on_signal(SIGALRM, tick, SA_RESTART);
	setitimer(ITIMER_REAL, &every, NULL);
	run(beside("plugin"));
	setitimer(ITIMER_REAL, &off, NULL);
	CHECK(ticks > 0);
	return passed("race");
}
