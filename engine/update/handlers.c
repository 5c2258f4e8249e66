/*
 * Handlers of signals: the kernel, or mve in its place, has their addresses in the old build.
 */
#include <signal.h>

#include "engine/update/migrate.h"

void handlers_fill(struct migration *m)
{
	for (int signal = 1; signal < NSIG; signal++) {
		struct sigaction a;
		void *is;

		if (sigaction(signal, NULL, &a) < 0)
			continue;
		is = migrated_code(m, (void *)a.sa_handler);
		if (is == (void *)a.sa_handler)
			continue;
		a.sa_handler = (void (*)(int))is;
		sigaction(signal, &a, NULL);
	}
}
