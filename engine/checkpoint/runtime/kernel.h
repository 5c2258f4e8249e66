/*
 * System calls of the runtime's own.  They are made in one place (jump.S), so that mve, where it
 * holds the program, knows them from the program's: each version of it has its own.
 */
#ifndef MVE_CHECKPOINT_KERNEL_H
#define MVE_CHECKPOINT_KERNEL_H

#include <sys/syscall.h>

long mve_checkpoint_kernel(long nr, long a, long b, long c, long d, long e, long f);

#define KERNEL_1(nr, a)		mve_checkpoint_kernel(nr, (long)(a), 0, 0, 0, 0, 0)
#define KERNEL_2(nr, a, b)	mve_checkpoint_kernel(nr, (long)(a), (long)(b), 0, 0, 0, 0)
#define KERNEL_3(nr, a, b, c) \
	mve_checkpoint_kernel(nr, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define KERNEL_4(nr, a, b, c, d) \
	mve_checkpoint_kernel(nr, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define KERNEL_6(nr, a, b, c, d, e, f) \
	mve_checkpoint_kernel(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

#endif
