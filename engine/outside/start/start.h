/*
 * What mve changed for itself and a new program must get back.
 */
#ifndef MVE_OUTSIDE_START_H
#define MVE_OUTSIDE_START_H

#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>

#define KEEP_ACTIONS	4

struct start_keep {
	sigset_t mask;
	struct rlimit file_size;
	size_t actions;
	int sig[KEEP_ACTIONS];
	struct sigaction action[KEEP_ACTIONS];
};

/* mve begins: a limit of the file size, which is the server's, does not end mve itself. */
void start_keep_first(void);
/* The rest of what it gets back. */
void start_keep_set(const struct start_keep *k);

#endif
