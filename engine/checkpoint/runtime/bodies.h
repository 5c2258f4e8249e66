/* Which bodies of functions run (bodies.c). */
#ifndef MVE_CHECKPOINT_BODIES_H
#define MVE_CHECKPOINT_BODIES_H

/* Before anything of the program runs: whether it is the checked ones. */
int bodies_begin(void);

#endif
