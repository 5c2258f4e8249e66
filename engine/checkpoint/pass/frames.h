// Large arrays of a frame are moved to the thread's second stack (runtime/stacks.h).
#ifndef MVE_CHECKPOINT_FRAMES_PASS_H
#define MVE_CHECKPOINT_FRAMES_PASS_H

#include "engine/checkpoint/pass/count.h"
#include "llvm/IR/Function.h"

void frames_move(llvm::Function &f, Count &count);

#endif
