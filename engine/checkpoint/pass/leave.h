// Stores that need no check.
#ifndef MVE_CHECKPOINT_LEAVE_H
#define MVE_CHECKPOINT_LEAVE_H

#include "engine/checkpoint/pass/sites.h"

// Takes away those that are to the function's own frame: the frames that stand when a checkpoint
// is opened are saved then, and others did not exist.
void leave_stack(Sites &sites, Count &count);

// Takes away those whose bytes were checked on every way from where a checkpoint could last have
// been opened.
void leave_checked(llvm::Function &f, Sites &sites, const Quiet &quiet, Count &count);

#endif
