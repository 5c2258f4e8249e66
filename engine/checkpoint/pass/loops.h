// Checks in loops.
#ifndef MVE_CHECKPOINT_LOOPS_H
#define MVE_CHECKPOINT_LOOPS_H

#include "engine/checkpoint/pass/emit.h"

// Before sites are looked for: loops get the form that the rest needs, so that no value that a site
// has is another afterwards.
void loops_prepare(llvm::Function &f);

// A store that a loop makes in each turn, over a range that is known when it begins, is checked
// once before it.
void loops_range(llvm::Function &f, Sites &sites, const Quiet &quiet, Count &count);

// Before a loop in which no checkpoint can be opened, and that still has checks, one is asked for.
void loops_gates(llvm::Function &f, const Sites &sites, const Quiet &quiet, Gates &gates);

#endif
