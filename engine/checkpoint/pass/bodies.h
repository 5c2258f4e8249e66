// Functions in two bodies: plain, and checked.
#ifndef MVE_CHECKPOINT_BODIES_H
#define MVE_CHECKPOINT_BODIES_H

#include "engine/checkpoint/pass/count.h"
#include <vector>

struct Bodies {
	llvm::Function *entry;	// what others call and point to
	llvm::Function *plain, *checked;
};

// Takes those that can have two bodies out of `functions`, and puts the ones to be checked there.
std::vector<Bodies> bodies_make(llvm::Module &m, std::vector<llvm::Function *> &functions);

// Leads calls past entries, once the checks are made.
void bodies_lead(llvm::Module &m, const std::vector<Bodies> &all, Count &count);

#endif
