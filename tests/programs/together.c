/*
 * Signals that come at the same time: all handlers run before the program goes on, and
 * a follower's run at the same place.  What they did is written down behind it.
 */
#include <poll.h>
#include <sys/select.h>
#include "check.h"

static const int signals[] = { SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM };

#define SIGNALS	(sizeof(signals) / sizeof(signals[0]))

static char came[64];
static volatile unsigned n;

static void handler(int sig)
{
	for (unsigned i = 0; i < SIGNALS; i++)
		if (signals[i] == sig)
			came[n++] = (char)('a' + i);
}

/* The ones of a set, as bits, sent while they are blocked. */
static void send_all(unsigned set)
{
	for (unsigned i = 0; i < SIGNALS; i++)
		if (set >> i & 1)
			CHECK_EQ(kill(getpid(), signals[i]), 0);
}

static void tell(int fd, unsigned sent)
{
	char text[80];
	int len;

	/* No call before this: what counts is what has come by now. */
	CHECK_EQ(n, (unsigned)__builtin_popcount(sent));
	len = snprintf(text, sizeof(text), "%.*s\n", (int)n, came);
	CHECK_EQ(write(fd, text, (size_t)len), len);
	n = 0;
}

int main(void)
{
	sigset_t all, none;
	int fd = open("together.log", O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CHECK(fd >= 0);
	sigemptyset(&none);
	sigemptyset(&all);
	for (unsigned i = 0; i < SIGNALS; i++) {
		on_signal(signals[i], handler, i % 2 ? SA_RESTART : SA_NODEFER);
		sigaddset(&all, signals[i]);
	}
	CHECK_EQ(sigprocmask(SIG_BLOCK, &all, NULL), 0);
	for (unsigned set = 1; set < 1u << SIGNALS; set++) {
		send_all(set);
		CHECK_EQ(sigprocmask(SIG_UNBLOCK, &all, NULL), 0);
		tell(fd, set);
		CHECK_EQ(sigprocmask(SIG_BLOCK, &all, NULL), 0);
		send_all(set);
		CHECK_FAILS(ppoll(NULL, 0, NULL, &none), EINTR);
		tell(fd, set);
		send_all(set);
		CHECK_FAILS(pselect(0, NULL, NULL, NULL, NULL, &none), EINTR);
		tell(fd, set);
	}
	close(fd);
	return passed("together");
}
