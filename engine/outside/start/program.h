/*
 * Looking at a program before it is started: can mve hold it?
 */
#ifndef MVE_OUTSIDE_PROGRAM_H
#define MVE_OUTSIDE_PROGRAM_H

#include <stdint.h>
#include <sys/types.h>

enum program_verdict {
	PROGRAM_OK,
	PROGRAM_UNKNOWN,	/* cannot be looked at: the kernel will say */
	PROGRAM_DIRECTORY, PROGRAM_FORBIDDEN, PROGRAM_32BIT, PROGRAM_DAMAGED,
	PROGRAM_FOREIGN,	/* an ELF of another machine */
	PROGRAM_PRIVILEGED,	/* setuid, setgid or with capabilities */
	PROGRAM_FORMAT,		/* no program and no script */
	PROGRAM_UNREADABLE,	/* to us: the kernel then hides the process, too */
};

/*
 * Looks at the file, through the scripts that lead to it.  `privileged`: the
 * caller may trace programs that gain rights.
 */
enum program_verdict program_look(const char *path, int privileged);

/* A shell, or a script that one runs. */
int program_is_shells(const char *path);

/* The verdict in words, and what to do about it. */
const char *program_reason(enum program_verdict v);
const char *program_hint(enum program_verdict v);

#endif
