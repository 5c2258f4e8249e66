/*
 * Stopping and going on: SIGSTOP while calls run or sleep loses nothing; a
 * SIGCONT handler runs; SIGTSTP can be handled.
 */
#include <pthread.h>
#include "check.h"

static volatile sig_atomic_t continued;

static void on_cont(int sig)
{
	continued++;
}

static void child(int out, int in)
{
	unsigned n;

	on_signal(SIGCONT, on_cont, SA_RESTART);
	on_signal(SIGTSTP, on_cont, SA_RESTART);
	while (read(in, &n, sizeof(n)) == sizeof(n)) {
		CHECK_EQ(raw0(SYS_getpid), getpid());
		CHECK_EQ(write(out, &n, sizeof(n)), sizeof(n));
	}
	_exit(continued > 0 ? 5 : 1);
}

int main(void)
{
	int to[2], from[2], status;
	unsigned back;

	CHECK_EQ(pipe(to), 0);
	CHECK_EQ(pipe(from), 0);
	pid_t pid = fork();
	if (!pid) {
		close(to[1]);
		close(from[0]);
		child(from[1], to[0]);
	}
	close(to[0]);
	for (unsigned i = 0; i < 200; i++) {
		if (i % 10 == 0) {
			CHECK_EQ(kill(pid, SIGSTOP), 0);
			CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
			CHECK(WIFSTOPPED(status));
		}
		CHECK_EQ(write(to[1], &i, sizeof(i)), sizeof(i));
		if (i % 10 == 0)
			CHECK_EQ(kill(pid, SIGCONT), 0);
		if (i % 10 == 5)
			CHECK_EQ(kill(pid, SIGTSTP), 0);
		CHECK_EQ(read(from[0], &back, sizeof(back)), sizeof(back));
		CHECK_EQ(back, i);
	}
	close(to[1]);
	CHECK_EQ(status_of(pid), EXITED(5));
	return passed("stop_cont");
}
