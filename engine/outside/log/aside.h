/* A process beside the monitor: a copy of it that has the streams mapped, and little else. */
#ifndef MVE_OUTSIDE_LOG_ASIDE_H
#define MVE_OUTSIDE_LOG_ASIDE_H

/* It is ended as any process is: what the monitor keeps from itself is not kept from it. */
void aside_begin(void);
/*
 * All descriptors are closed but these, which get other numbers; standard ones lead nowhere.
 * So it keeps no terminal, no session and no server's pipe.
 */
void descriptors_keep(int *const keep[], unsigned n);

#endif
