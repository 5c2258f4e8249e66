/* Instructions that ask the machine, which twins must have in common. */
#ifndef MVE_INSIDE_INSN_H
#define MVE_INSIDE_INSN_H

#include "engine/inside/gate/thread.h"
#include "engine/inside/signal/ucontext.h"

bool insn_caught(struct thread *t, struct ucontext_raw *uc);
bool insn_faults(struct thread *t, int *sig, uint8_t *info, const struct ucontext_raw *uc);

#endif
