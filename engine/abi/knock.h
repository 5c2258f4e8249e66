/*
 * A knock: the SIGSYS by which the monitor, or another thread of its process, asks a thread
 * to come to our code.  One that comes late (the thread was stopped, or held signals off,
 * and nothing is wanted of it any more) is known by its code and means nothing; it must
 * never reach the program, which would die of it.
 */
#ifndef MVE_ABI_KNOCK_H
#define MVE_ABI_KNOCK_H

/* Its si_code: below 0, since others than the kernel send it; none that anybody uses. */
#define KNOCK_CODE	(-0x6d7665)

#endif
