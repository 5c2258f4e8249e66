/*
 * The reader of the witness: bpf/audit.bpf.c counts in the kernel every system
 * call of the processes named here and of all that they start.
 *
 * Needs CAP_BPF and CAP_PERFMON, kernel BTF, and the first process id
 * namespace.  All functions are for one thread of the monitor.
 */
#ifndef MVE_OUTSIDE_AUDIT_H
#define MVE_OUTSIDE_AUDIT_H

#include <stdint.h>
#include <sys/types.h>
#include "bpf/audit.h"

struct audit;

/* The addresses of one image's `syscall` instructions, [start, end) each. */
struct audit_ranges {
	struct audit_span span[AUDIT_SPANS];	/* by enum audit_where */
};

struct audit_counts {
	/*
	 * [where][number + 1].  The rows before AUDIT_AGAIN are calls.
	 * AUDIT_AGAIN counts, under the call's number, the calls that ended
	 * with a result that only the kernel sees (it may have made them again)
	 * and those that their thread's death cut off: the inside has counted
	 * neither, or not as often.
	 */
	uint64_t n[AUDIT_WHERES][AUDIT_SLOTS];
	uint64_t total[AUDIT_WHERES];
	uint64_t strays;	/* ever; the last AUDIT_STRAYS can be read */
	uint64_t lost;		/* processes that did not fit: not counted */
	uint64_t missed;	/* calls that the kernel skipped the tap for */
	int has_vsyscall;	/* 0: this machine has no such page */
};

/*
 * Load and attach.  NULL with errno EPERM (rights are missing), ENOTSUP (no
 * kernel BTF, or in a container's process ids) or what the kernel said;
 * audit_why() has it in words.
 */
struct audit *audit_open(void);

/* Why the last audit_open() failed: one line, "" if it did not. */
const char *audit_why(void);

/*
 * Count this process and its descendants from here on.  With ranges NULL all
 * calls are AUDIT_BEFORE until audit_set_image().  Call it while the process
 * is stopped before its execve.  0, -ESRCH, or another negative errno.
 */
int audit_add(struct audit *a, pid_t tgid, const struct audit_ranges *ranges);

/*
 * The image of a counted process is held from here on; NULL: not any more.
 * The process is stopped.  0, -ENOENT when it is not counted (it died).
 */
int audit_set_image(struct audit *a, pid_t tgid,
		    const struct audit_ranges *ranges);

/* Count this process no more (let go, not to be held).  0 or -ENOENT. */
int audit_drop(struct audit *a, pid_t tgid);

/* The sums so far, of all processes together.  0 or a negative errno. */
int audit_read(struct audit *a, struct audit_counts *out);

/* The last stray calls, oldest first; how many were written to out. */
int audit_stray(struct audit *a, struct audit_stray_row *out, int max);

void audit_close(struct audit *a);

#endif
