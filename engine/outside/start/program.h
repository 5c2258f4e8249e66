/*
 * Looking at a program before it is started: can mve hold it?
 */
#ifndef MVE_OUTSIDE_PROGRAM_H
#define MVE_OUTSIDE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum program_verdict {
	PROGRAM_OK,
	PROGRAM_UNKNOWN,	/* cannot be looked at: the kernel will say */
	PROGRAM_FAR,		/* to look at it may wait: by a child (session/near.h) */
	PROGRAM_DIRECTORY, PROGRAM_FORBIDDEN, PROGRAM_32BIT, PROGRAM_DAMAGED,
	PROGRAM_FOREIGN,	/* an ELF of another machine */
	PROGRAM_PRIVILEGED,	/* setuid, setgid or with capabilities */
	PROGRAM_FORMAT,		/* no program and no script */
	PROGRAM_UNREADABLE,	/* to us: the kernel then hides the process, too */
	PROGRAM_LAST = PROGRAM_UNREADABLE,
};

/*
 * Looks at the file, through the scripts that lead to it.  `privileged`: the
 * caller may trace programs that gain rights.
 */
enum program_verdict program_look(const char *path, int privileged);

/* The interpreter that an open ELF file names; false: it has none. */
bool program_interpreter(int fd, char *name, size_t size);

struct near_file;
/* Whoever executes it may have other rights by it. */
bool program_gains(const struct near_file *f);

/* A shell, or a script that one runs. */
int program_is_shells(const char *path);

/* The verdict in words, and what to do about it. */
const char *program_reason(enum program_verdict v);
const char *program_hint(enum program_verdict v);

#endif
