/*
 * A process forks while another of its threads is in a long call, whose end it counts in a
 * plain variable.  The child tells the count in its exit status, by which twins are compared.
 */
#include <pthread.h>
#include <sys/mman.h>
#include "check.h"

#define FORKS	12
#define SIZE	(48 << 20)

static volatile unsigned counted;
/* By a lock: how often it works is to be the same in all versions. */
static pthread_mutex_t ending = PTHREAD_MUTEX_INITIALIZER;
static int ends;

static int end_set(int set)
{
	int now;

	CHECK_EQ(pthread_mutex_lock(&ending), 0);
	now = ends |= set;
	CHECK_EQ(pthread_mutex_unlock(&ending), 0);
	return now;
}

static void *work(void *arg)
{
	int fd = *(int *)arg;

	while (!end_set(0)) {
		CHECK_EQ(fallocate(fd, 0, 0, SIZE), 0);
		counted++;
		CHECK_EQ(ftruncate(fd, 0), 0);
		counted++;
	}
	return NULL;
}

int main(void)
{
	int fd = memfd_create("beside", MFD_CLOEXEC), status;
	pthread_t thread;

	CHECK(fd >= 0);
	CHECK_EQ(pthread_create(&thread, NULL, work, &fd), 0);
	for (int i = 0; i < FORKS; i++) {
		pid_t pid;

		usleep(500 + i % 10 * 200);
		pid = fork();
		if (!pid)
			_exit((int)counted & 0x7f);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFEXITED(status));
	}
	end_set(1);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	return passed("fork_beside");
}
