/*
 * What the witness (audit.bpf.c, in the kernel) and its reader
 * (engine/outside/monitor/audit.c) both see.  Fixed-width types only: the one is
 * compiled for bpf with vmlinux.h, the other for x86-64 with libc.
 *
 * Both come from one build (the program is embedded by its skeleton), so there
 * is no version number here.
 */
#ifndef MVE_BPF_AUDIT_H
#define MVE_BPF_AUDIT_H

#define AUDIT_SLOTS	512	/* number + 1; 0 is "unknown number" */
#define AUDIT_PROCS	8192	/* processes of a session at one time */
#define AUDIT_STRAYS	64	/* last stray calls remembered */

/*
 * Where a call came from.  The first AUDIT_SPANS are the spans of a row, in
 * the same order.
 */
enum audit_where {
	AUDIT_GATE,		/* the gate's instruction for patched sites */
	AUDIT_NET,		/* the gate's instruction for trapped sites */
	AUDIT_OWN,		/* the inside's own calls */
	AUDIT_BEFORE,		/* the image was not yet held */
	AUDIT_VSYSCALL,		/* the old page at 0xffffffffff600000 */
	AUDIT_ELSEWHERE,	/* anything else: it got past the net */
	AUDIT_COMPAT,		/* int 0x80 and 32-bit; i386 numbers */
	AUDIT_AGAIN,		/* not calls: see struct audit_counts */
	AUDIT_WHERES
};

#define AUDIT_SPANS	(AUDIT_OWN + 1)

/* Holds a call when start <= address of its instruction < end. */
struct audit_span {
	unsigned long long start;
	unsigned long long end;
};

struct audit_row {
	struct audit_span span[AUDIT_SPANS];
	unsigned int held;	/* 0: every call counts as AUDIT_BEFORE */
	unsigned int pad;
};

struct audit_table {
	unsigned long long n[AUDIT_SLOTS];
};

/* seq is written last: 0, or not its place's number, while it is unfinished. */
struct audit_stray_row {
	unsigned long long seq;	/* from 1 */
	unsigned long long ip;	/* of the instruction */
	long long nr;
	unsigned int tgid;
	unsigned int where;	/* AUDIT_ELSEWHERE, _VSYSCALL or _COMPAT */
};

_Static_assert(sizeof(struct audit_row) == 16 * AUDIT_SPANS + 8, "no holes");
_Static_assert(sizeof(struct audit_stray_row) == 32, "no holes");
_Static_assert((AUDIT_STRAYS & (AUDIT_STRAYS - 1)) == 0, "a mask of it");

#endif
