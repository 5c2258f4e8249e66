// What became of the stores of a module: for the flag count=.
#ifndef MVE_CHECKPOINT_COUNT_H
#define MVE_CHECKPOINT_COUNT_H

#include "llvm/IR/Module.h"
#include <set>
#include <string>

struct Count {
	unsigned stores = 0;	// all that write memory
	unsigned stack = 0;	// left out: to the function's own frame
	unsigned frames = 0;	// arrays that were moved to the second stack
	unsigned dominated = 0;	// left out: checked before on every way
	unsigned loop = 0;	// left out: checked once before the loop
	unsigned joined = 0;	// left out: within a neighbour's check
	unsigned checks = 0;	// ranges that are checked
	unsigned gates = 0;	// places where an open checkpoint is asked for
	unsigned editions = 0;	// gates that need not ask: in blocks for who knows
	unsigned entries = 0;	// functions in two bodies that others may call
	unsigned unseen = 0;	// what may write memory in a way that is not known
	std::set<std::string> unknown;	// functions of others that are given pointers

	void print(const llvm::Module &m) const;
};

#endif
