/* A process beside the monitor gives up what is the monitor's. */
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/log/aside.h"

#define FIRST	3	/* behind the standard ones */

void aside_begin(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

void descriptors_keep(int *const keep[], unsigned n)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	MUST(n && null >= 0);
	for (int fd = 0; fd < FIRST; fd++)
		dup2(null, fd);
	for (unsigned i = 0; i < n; i++) {
		*keep[i] = fcntl(*keep[i], F_DUPFD_CLOEXEC, FIRST + (int)n);
		MUST(*keep[i] >= 0);
	}
	for (unsigned i = 0; i < n; i++)
		*keep[i] = dup3(*keep[i], FIRST + (int)i, O_CLOEXEC);
	close_range(FIRST + n, ~0u, 0);
}
