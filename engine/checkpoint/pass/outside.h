// Calls by pointers that may lead out of the program.
#ifndef MVE_CHECKPOINT_OUTSIDE_H
#define MVE_CHECKPOINT_OUTSIDE_H

#include "llvm/IR/Function.h"

void outside_thunks(llvm::Function &f);

#endif
