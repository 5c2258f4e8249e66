// What is known of functions that the pass does not see: which memory they write, and that no
// checkpoint is opened in them.  known.def has a row for each.
#ifndef MVE_CHECKPOINT_KNOWN_H
#define MVE_CHECKPOINT_KNOWN_H

#include "llvm/IR/InstrTypes.h"
#include <map>
#include <vector>

struct Range {
	llvm::Value *pointer, *length;
	bool most = false;	// no more than that is written
};

using Ranges = std::vector<Range>;

// What a call writes of the program's memory; may add instructions before it.
Ranges known_ranges(llvm::CallBase &call);

// The objects that a function without a row is given and may write to, as far as the call says what
// they are: libstdc++ changes the program's strings and trees.
Ranges known_objects(llvm::CallBase &call);

// A function of another module that has no row, and is given a pointer that it may write to.
bool known_not(const llvm::CallBase &call);

// The runtime's, of which a range's length is asked.
bool known_asked(const llvm::Function &f);

// It has a row, so no checkpoint is opened in it.
bool known_quiet(const llvm::Function &f);

// The program's calls of malloc, mmap and the like are made the runtime's.
void known_rename(llvm::Module &m);

// Those of them that a program which opens no checkpoint does without: to libc's again.
std::map<const llvm::Function *, llvm::Function *> known_plain(llvm::Module &m);

#endif
