// The checks, as code.
#ifndef MVE_CHECKPOINT_EMIT_H
#define MVE_CHECKPOINT_EMIT_H

#include "engine/checkpoint/pass/join.h"
#include "llvm/IR/IRBuilder.h"

// The newest open checkpoint's epoch.
llvm::Value *emit_epoch(llvm::IRBuilder<> &b);

void emit(const Cluster &cluster, Count &count);

#endif
