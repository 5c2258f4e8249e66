/*
 * A signal that mve stands on (SIGSEGV) is sent while another waits for the program's next
 * call: both handlers run, and no signal stays blocked behind them.
 */
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/programs/check.h"

#define ROUNDS	20
#define SPINS	20000000ul	/* some milliseconds, without a call */

static volatile sig_atomic_t came[3];

static void handle(int sig)
{
	came[sig == SIGUSR1 ? 0 : sig == SIGSEGV ? 1 : 2]++;
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ 0, ms * 1000000 }, NULL);
}

/* Between the two the first has come to the program, which makes no call. */
static void sender(pid_t to)
{
	pause_ms(1);
	kill(to, SIGUSR1);
	pause_ms(1);
	kill(to, SIGSEGV);
	_exit(0);
}

static void one_round(int round)
{
	pid_t parent = getpid(), child = fork();

	if (!child)
		sender(parent);
	for (volatile unsigned long i = 0; i < SPINS; i++)
		;
	while (came[0] <= round || came[1] <= round)
		syscall(SYS_getppid);
	while (waitpid(child, NULL, 0) < 0)
		;
}

int main(void)
{
	static const int sigs[] = { SIGUSR1, SIGSEGV, SIGUSR2 };
	sigset_t now;

	for (int i = 0; i < 3; i++)
		CHECK_EQ(sigaction(sigs[i], &(struct sigaction){ .sa_handler = handle }, NULL), 0);
	for (int round = 0; round < ROUNDS; round++)
		one_round(round);
	CHECK_EQ(came[0], ROUNDS);
	CHECK_EQ(came[1], ROUNDS);
	CHECK_EQ(sigprocmask(SIG_BLOCK, NULL, &now), 0);
	for (int sig = 1; sig < 32; sig++)
		CHECK_EQ(sigismember(&now, sig), 0);
	raise(SIGUSR2);
	CHECK_EQ(came[2], 1);
	return passed("deferred");
}
