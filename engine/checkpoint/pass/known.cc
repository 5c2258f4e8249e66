// known.def as maps.  A length that needs looking into memory is asked of the runtime, which
// looks only while a checkpoint is open.
#include "engine/checkpoint/pass/known.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

enum class Kind { arg, product, fixed, asked };

struct Length {
	Kind kind;
	unsigned first, second, number;
	const char *function;
	bool most = false;
};

struct Row {
	const char *name;
	unsigned argument;	// and, with `each`, those behind it
	Length length;
};

static const unsigned each = 0x100;

#define EACH(n)			(each | (n))
#define ARG(n)			Length{Kind::arg, n, 0, 0, nullptr}
#define MOST(n)			Length{Kind::arg, n, 0, 0, nullptr, true}
#define PRODUCT(n, m, k)	Length{Kind::product, n, m, k, nullptr}
#define FIXED(n)		Length{Kind::fixed, 0, 0, n, nullptr}
#define STRING(n)		Length{Kind::asked, n, 0, 0, "mve_known_string"}
#define LEN_AT(n)		Length{Kind::asked, n, 0, 0, "mve_known_at", true}
#define WHOLE			Length{Kind::asked, ~0u, 0, 0, "mve_known_whole"}

static const Row rows[] = {
#define WRITES(name, argument, length)	{#name, argument, length},
#define NONE(name)
#define WAITS(name)
#define RENAME(name, own)
#define ONLY(name)
#include "engine/checkpoint/pass/known.def"
#undef WRITES
#undef NONE
#undef RENAME
#undef WAITS
#undef ONLY
};

static const char *const all[] = {
#define WRITES(name, argument, length)	#name,
#define NONE(name)			#name,
#define WAITS(name)
#define RENAME(name, own)		#name,
#define ONLY(name)
#include "engine/checkpoint/pass/known.def"
#undef WRITES
#undef NONE
#undef RENAME
#undef WAITS
#undef ONLY
};

static const char *const waits[] = {
#define WRITES(name, argument, length)
#define NONE(name)
#define WAITS(name)	#name,
#define RENAME(name, own)
#define ONLY(name)
#include "engine/checkpoint/pass/known.def"
#undef WRITES
#undef NONE
#undef RENAME
#undef WAITS
#undef ONLY
};

static const struct {
	const char *name, *own;
} renamed[] = {
#define WRITES(name, argument, length)
#define NONE(name)
#define WAITS(name)
#define RENAME(name, own)	{#name, #own},
#define ONLY(name)
#include "engine/checkpoint/pass/known.def"
};

static StringMap<std::vector<const Row *>> map_rows()
{
	StringMap<std::vector<const Row *>> map;

	for (const char *name : all)
		map[name];
	for (const Row &row : rows)
		map[row.name].push_back(&row);
	return map;
}

static const std::vector<const Row *> *find(const Function *f)
{
	static const StringMap<std::vector<const Row *>> map = map_rows();

	if (!f || !f->isDeclaration())
		return nullptr;
	auto found = map.find(f->getName());
	return found == map.end() ? nullptr : &found->second;
}

bool known_asked(const Function &f)
{
	return f.getName().starts_with("mve_known_");
}

// What checks call, and frames: the runtime's functions that open nothing.
static const char *const checks[] = {
	"mve_known_", "mve_checkpoint_log", "mve_checkpoint_touch", "mve_checkpoint_atomic",
	"mve_checkpoint_frame",
};

// glibc's headers give some functions other names: __isoc23_strtol is not among them here.
bool known_quiet(const Function &f)
{
	static const StringSet<> waiting = [] {
		StringSet<> names;
		for (const char *name : waits)
			names.insert(name);
		return names;
	}();

	return (find(&f) && !waiting.contains(f.getName())) ||
	       any_of(checks, [&](const char *begins) { return f.getName().starts_with(begins); });
}

static Value *asked(IRBuilder<> &b, const Length &length, Value *about)
{
	Module *m = b.GetInsertBlock()->getModule();
	FunctionCallee f = m->getOrInsertFunction(length.function, b.getInt64Ty(), b.getPtrTy());

	return b.CreateCall(f, about);
}

static Value *wide(IRBuilder<> &b, Value *v)
{
	return b.CreateZExtOrTrunc(v, b.getInt64Ty());
}

static Value *length_of(IRBuilder<> &b, const Row &row, CallBase &call, Value *pointer)
{
	const Length &l = row.length;

	switch (l.kind) {
	case Kind::arg:
		return wide(b, call.getArgOperand(l.first));
	case Kind::product:
		return b.CreateMul(wide(b, call.getArgOperand(l.first)),
				   l.first == l.second ? b.getInt64(l.number) :
				   wide(b, call.getArgOperand(l.second)));
	case Kind::fixed:
		return b.getInt64(l.number);
	case Kind::asked:
		return asked(b, l, l.first == ~0u ? pointer : call.getArgOperand(l.first));
	}
	llvm_unreachable("a kind of length");
}

static bool fits(const Row &row, const CallBase &call)
{
	unsigned most = std::max({row.argument & ~each, row.length.second,
				  row.length.first == ~0u ? 0 : row.length.first});

	return most < call.arg_size();
}

Ranges known_ranges(CallBase &call)
{
	auto *found = find(call.getCalledFunction());
	Ranges ranges;

	if (!found)
		return ranges;
	IRBuilder<> b(&call);
	for (const Row *row : *found) {
		unsigned n = row->argument & ~each;
		unsigned end = row->argument & each ? call.arg_size() : n + 1;

		for (; fits(*row, call) && n < end; n++) {
			Value *pointer = call.getArgOperand(n);
			if (!pointer->getType()->isPointerTy() || isa<ConstantPointerNull>(pointer))
				continue;
			Value *length = length_of(b, *row, call, pointer);
			length = b.CreateSelect(b.CreateIsNull(pointer), b.getInt64(0), length);
			ranges.push_back({pointer, length, row->length.most});
		}
	}
	return ranges;
}

// It may be a library's, and no row says what it writes.
static bool is_unknown(const CallBase &call)
{
	const Function *f = call.getCalledFunction();

	if (call.onlyReadsMemory() || call.isInlineAsm())
		return false;
	return !f || (f->isDeclaration() && !f->isIntrinsic() && !find(f) &&
		      !f->getName().starts_with("mve_"));
}

// Of an object that C++ passes by reference, or as `this`, its type says how large it is.
static uint64_t object_bytes(const CallBase &call, unsigned n)
{
	const DataLayout &dl = call.getModule()->getDataLayout();
	Type *returned = call.getParamStructRetType(n);
	uint64_t size = call.getParamDereferenceableBytes(n);

	return returned ? std::max(size, dl.getTypeStoreSize(returned).getFixedValue()) : size;
}

Ranges known_objects(CallBase &call)
{
	Ranges ranges;

	if (!is_unknown(call))
		return ranges;
	for (unsigned n = 0; n < call.arg_size(); n++) {
		Value *pointer = call.getArgOperand(n);
		uint64_t size = pointer->getType()->isPointerTy() && !call.onlyReadsMemory(n) ?
				object_bytes(call, n) : 0;
		if (size)
			ranges.push_back({pointer, ConstantInt::get(
				Type::getInt64Ty(call.getContext()), size)});
	}
	return ranges;
}

bool known_not(const CallBase &call)
{
	if (!call.getCalledFunction() || !is_unknown(call))
		return false;
	for (unsigned n = 0; n < call.arg_size(); n++)
		if (call.getArgOperand(n)->getType()->isPointerTy() && !call.onlyReadsMemory(n))
			return true;
	return false;
}

void known_rename(Module &m)
{
	for (auto &row : renamed) {
		Function *f = m.getFunction(row.name);
		if (!f || !f->isDeclaration())
			continue;
		FunctionCallee own = m.getOrInsertFunction(row.own, f->getFunctionType(),
							   f->getAttributes());
		f->replaceAllUsesWith(own.getCallee());
	}
}

std::map<const Function *, Function *> known_plain(Module &m)
{
	std::map<const Function *, Function *> plain;

	for (auto &row : renamed) {
		Function *own = m.getFunction(row.own);
		StringRef name = row.own;
		if (!own || !own->isDeclaration() ||
		    !(name.starts_with("mve_seam_") || name.starts_with("mve_map_")))
			continue;
		FunctionCallee f = m.getOrInsertFunction(row.name, own->getFunctionType(),
							 own->getAttributes());
		if (auto *libc = dyn_cast<Function>(f.getCallee()))
			plain[own] = libc;
	}
	return plain;
}
