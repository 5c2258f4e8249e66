/* A child in the place of one that is to the kernel none of ours. */
#ifndef MVE_INSIDE_STANDIN_H
#define MVE_INSIDE_STANDIN_H

#include "engine/inside/gate/thread.h"

/* Its id, or 0: there is none, and the end of the process is not told. */
int32_t standin_make(const struct thread *t, int32_t pid);
/* It has ended, whoever collects it. */
bool process_is_over(int32_t pid);
/* How it has ended, as wait(2) has it; 0, too, where we may not see it; -1: it is not there. */
int32_t process_status(int32_t pid);

#endif
