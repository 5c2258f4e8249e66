/*
 * Printing a system call the way strace 6.1 prints it.
 *
 * A call is printed in two steps: print_enter() before it runs, print_exit()
 * after.  When print_needs_enter() is false both may be called after the call
 * has run: the text comes out the same.  The text is at p->text, p->len bytes
 * with a NUL behind, without a newline; between the two steps it is the
 * beginning of the line.
 *
 * A struct call_print belongs to one thread of the program that is printed.
 * Set it to zero before first use, print_free() it at the end.  The memory is
 * read through print_mem; it is a stranger's, may change or vanish at any time,
 * and is only ever printed.
 */
#ifndef MVE_OUTSIDE_PRINT_H
#define MVE_OUTSIDE_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/abi/table.h"

/* read() returns how many bytes it could read, or a negative errno. */
struct print_mem {
	long (*read)(void *ctx, uint64_t addr, void *buf, size_t len);
	void *ctx;
};

#define PRINT_TEXT_MAX	(1 << 20)	/* a line is cut here */

struct print_text {
	char *text;
	size_t len;
	size_t cap;
};

struct call_print {
	char *text;
	size_t len;
	size_t cap;
	unsigned column;	/* set by the caller: columns before the text */
	uint64_t sp;		/* set by the caller for rt_sigreturn(), or 0 */
	bool partial;		/* set by the caller: memory ends early; show what there is */
	uint8_t unknown;	/* set by the caller: arguments that print as "?", as bits */

	/* The rest is the printer's own. */
	struct print_text note;	/* what comes in brackets after the result */
	const struct print_mem *mem;
	const struct call_desc *row;
	long nr;
	uint64_t args[CALL_ARGS];
	int64_t ret;
	uint8_t next;		/* the argument to print next */
	bool exiting;
	bool noted;
	long restart;		/* the call that restart_syscall() goes on with */
	uint64_t saved[CALL_ARGS];	/* values that the call overwrites */
	uint64_t before[8];	/* a small object as it was before the call */
};

void print_enter(struct call_print *p, const struct print_mem *m, long nr,
		 const uint64_t args[CALL_ARGS]);
void print_exit(struct call_print *p, const struct print_mem *m, int64_t ret);

/* The whole of a call that has not run: what it would receive is an address. */
void print_attempt(struct call_print *p, const struct print_mem *m, long nr,
		   const uint64_t args[CALL_ARGS]);

/* True when print_enter() must be called before the call runs. */
bool print_needs_enter(long nr);

/* "--- SIGCHLD {si_signo=SIGCHLD, ...} ---"; info is 128 bytes, or NULL. */
void print_signal(struct call_print *p, int sig, const void *info);

/* Bytes in quotes, as they stand in a call. */
void print_bytes(struct call_print *p, const void *bytes, size_t len);

void print_free(struct call_print *p);

/* An argument's value in as many bits as it has. */
int64_t arg_number(const struct arg_desc *a, uint64_t value);

#endif
