// Neighbours share a check, and what is checked in one place shares a gate.
#ifndef MVE_CHECKPOINT_JOIN_H
#define MVE_CHECKPOINT_JOIN_H

#include "engine/checkpoint/pass/sites.h"

// What is checked before one instruction.
struct Cluster {
	llvm::Instruction *at;
	Sites sites;
};

using Clusters = std::vector<Cluster>;

Clusters join(llvm::Function &f, const Sites &sites, const Quiet &quiet, Count &count);

#endif
