// The checks, as code.
#ifndef MVE_CHECKPOINT_EMIT_H
#define MVE_CHECKPOINT_EMIT_H

#include "engine/checkpoint/pass/join.h"
#include "llvm/IR/ValueHandle.h"

// The branches by which a checkpoint is asked for, taken where one is open; null: gone.
using Gates = std::vector<llvm::WeakVH>;

// `gated`: the function may run where no checkpoint can be open, and there are no tags.
void emit(const Cluster &cluster, bool gated, Gates &gates, Count &count);

// The runtime is told of atomic stores: it may be memory of several processes.
void emit_atomics(const Sites &sites);
// Whether it saves what a check has found: no checkpoint is opened in it.
bool is_save(const llvm::CallBase &call);

// A gate that leads to the same place both ways: what comes behind it is in two editions.
void emit_gate(llvm::Instruction *at, Gates &gates);

// Whether a function can be in editions (editions.cc): a gate before a loop is of use only then.
bool editions_can(const llvm::Function &f);

// Blocks in editions for who knows whether one is open: gates whose answer is known are gone.
void editions(llvm::Function &f, const Gates &gates, const Quiet &quiet, Count &count);

// Calls by pointers that may lead out of the program (outside.cc).
void outside_thunks(llvm::Function &f);

// Large arrays of the frame to the second stack (frames.cc).
void frames_move(llvm::Function &f, Count &count);

#endif
