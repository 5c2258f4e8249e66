// What the pass was told, by the environment: MVE_CHECKPOINT_FLAGS, words with commas between.
// mve-cc writes it; a plugin is loaded too late to have options of its own on clang's command line.
#ifndef MVE_CHECKPOINT_OPTIONS_H
#define MVE_CHECKPOINT_OPTIONS_H

#include <string>

struct Options {
	unsigned shift = 7;	// region=BYTES
	bool checks = true;	// no-checks: only what is known of libraries
	bool log = false;	// undo: each store is logged, without tags
	bool stack = true;	// no-stack: stores to the stack are checked, too
	bool frames = true;	// no-frames: large arrays stay on the ordinary stack
	bool dominated = true;	// no-dominated
	bool joined = true;	// no-joined
	bool loops = true;	// no-loops
	bool zeros = true;	// no-zeros: what is to be zero is saved, too, where it is zero
	bool aligned = false;	// trust-alignment: a store is aligned as its type says
	bool marked = true;	// unmarked: it is not what makes a program one that was built
	bool editions = true;	// no-editions
	std::string count;	// count=FILE: a line for each module is added to it; "-": stderr

	unsigned long region() const { return 1ul << shift; }
};

// The process' own; a word that is not known is said, and ends the compiler.
const Options &options();

#endif
