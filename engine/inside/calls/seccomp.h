/* A program's own filter gets a front that lets us through. */
#ifndef MVE_INSIDE_SECCOMP_H
#define MVE_INSIDE_SECCOMP_H

#include "engine/inside/gate/thread.h"

long serve_seccomp_filter(struct thread *t, uint64_t prog_at);
long serve_seccomp_strict(struct thread *t);

#endif
