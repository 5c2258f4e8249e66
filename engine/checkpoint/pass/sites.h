// A site is a place that writes memory: where, from which byte, how many.
#ifndef MVE_CHECKPOINT_SITES_H
#define MVE_CHECKPOINT_SITES_H

#include "engine/checkpoint/pass/count.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include <vector>

struct Site {
	llvm::Instruction *at;	// what is checked must be checked before this
	llvm::Value *pointer;
	llvm::Value *base;	// pointer = base + offset
	int64_t offset;
	uint64_t size;		// 0: as many as length says, in bytes
	llvm::Value *length = nullptr;
	uint64_t align = 1;
	uint64_t more = 0;	// and so many behind those of the length
	bool zeros = false;	// it is to be zero, and may be long: the runtime saves what of it
				// is not zero yet, as servers make the memory of a request
	bool most = false;	// no more than that is written, and it may be long: the runtime
				// knows where it ends
};

using Sites = std::vector<Site>;

// Functions of this module in which no checkpoint can be opened.
using Quiet = llvm::DenseSet<const llvm::Function *>;

Quiet quiet_find(llvm::Module &m);

// Whether a checkpoint may be opened in it, by itself or by another thread that it waits for: what
// was checked before is no longer.
bool may_open(const llvm::Instruction &i, const Quiet &quiet);

// All of a function, in the order of its blocks.
Sites sites_find(llvm::Function &f, Count &count);

// Fills in base, offset.
void site_resolve(Site &site);

#endif
