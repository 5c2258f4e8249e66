// Reads MVE_CHECKPOINT_FLAGS.  A word is a row here.
#include "engine/checkpoint/pass/options.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"
#include <cstdlib>

using namespace llvm;

static const struct {
	const char *word;
	bool Options::*option;
	bool value;
} words[] = {
	{"no-checks", &Options::checks, false},
	{"undo", &Options::log, true},
	{"trust-alignment", &Options::aligned, true},
	{"unmarked", &Options::marked, false},
	{"no-stack", &Options::stack, false},
	{"no-frames", &Options::frames, false},
	{"no-dominated", &Options::dominated, false},
	{"no-joined", &Options::joined, false},
	{"no-loops", &Options::loops, false},
	{"no-zeros", &Options::zeros, false},
	{"no-editions", &Options::editions, false},
};

[[noreturn]] static void refuse(StringRef word)
{
	report_fatal_error(Twine("MVE_CHECKPOINT_FLAGS: not known: ") + word, false);
}

static void region(Options &o, StringRef bytes)
{
	unsigned long n;

	if (bytes.getAsInteger(10, n) || !isPowerOf2_64(n) || n < 32 || n > 512)
		refuse(bytes);
	o.shift = Log2_64(n);
}

static void word_read(Options &o, StringRef word)
{
	for (auto &w : words)
		if (word == w.word) {
			o.*w.option = w.value;
			return;
		}
	if (word.consume_front("region="))
		region(o, word);
	else if (word.consume_front("count="))
		o.count = word.str();
	else if (!word.empty())
		refuse(word);
}

static Options read()
{
	Options o;
	const char *env = getenv("MVE_CHECKPOINT_FLAGS");
	StringRef rest = env ? env : "";

	while (!rest.empty()) {
		auto [word, others] = rest.split(',');
		word_read(o, word);
		rest = others;
	}
	return o;
}

const Options &options()
{
	static const Options o = read();
	return o;
}
