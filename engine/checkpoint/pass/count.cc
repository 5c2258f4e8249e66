// A module's count, as one line of NAME=NUMBER; a line is one write, as compilers run side by side.
#include "engine/checkpoint/pass/count.h"
#include "engine/checkpoint/pass/options.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

static std::string line(const Count &c, const Module &m)
{
	std::string text;
	raw_string_ostream out(text);

	out << "stores=" << c.stores << " stack=" << c.stack
	    << " dominated=" << c.dominated << " loop=" << c.loop << " joined=" << c.joined
	    << " checks=" << c.checks << " gates=" << c.gates << " editions=" << c.editions
	    << " frames=" << c.frames << " entries=" << c.entries << " unseen=" << c.unseen
	    << " file=" << m.getSourceFileName();
	if (!c.unknown.empty())
		out << " unknown=";
	const char *between = "";
	for (auto &name : c.unknown) {
		out << between << name;
		between = ",";
	}
	out << '\n';
	return text;
}

void Count::print(const Module &m) const
{
	const std::string &file = options().count;

	if (file.empty())
		return;
	if (file == "-") {
		errs() << line(*this, m);
		return;
	}
	std::error_code error;
	raw_fd_ostream out(file, error, sys::fs::OF_Append);
	if (error)
		report_fatal_error(Twine(file) + ": " + error.message(), false);
	out << line(*this, m);
}
