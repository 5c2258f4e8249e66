/* call_aside() of gate.h: work with descriptors that are not among the program's. */
#include <asm/unistd.h>
#include <linux/signal.h>

#include "engine/inside/gate/gate.h"

bool call_aside(void (*work)(void *what), void *what)
{
	uint64_t all = ~0ull, was = 0;
	long made;

	/* The new thread begins with our mask: what is sent to the process is not for it. */
	OWN4(__NR_rt_sigprocmask, SIG_SETMASK, &all, &was, 8);
	made = own_aside(work, what);
	OWN4(__NR_rt_sigprocmask, SIG_SETMASK, &was, 0, 8);
	return made > 0;
}
