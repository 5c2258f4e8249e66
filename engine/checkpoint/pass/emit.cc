// A cluster becomes
//
//	if (epoch)			the gate
//		if (any tag < epoch)	the tags of first and last byte of each range, and between
//			save(...)	for each range; it looks again
//
// and a range whose length is not known here is looked at in the same way where it turns out to be
// no longer than a region; else the runtime looks.  A word's last byte is looked at by its address:
// one that is aligned as its size is lies in one region.
//
// A body that runs only where checkpoints may be open has no gates (bodies.cc): no tag is less than
// an epoch of 0.
#include "engine/checkpoint/pass/emit.h"
#include "engine/checkpoint/pass/known.h"
#include "engine/checkpoint/pass/options.h"
#include "engine/checkpoint/runtime/tags.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

// So many regions' tags are looked at in line.
static const unsigned inline_regions = 3;

static const uint64_t word_most = 8;

// Whether the runtime is in the object that this will be in: else what it has is found by a table.
static bool has_runtime(const Module &m)
{
	return m.getPIELevel() != PIELevel::Default || m.getPICLevel() == PICLevel::NotPIC;
}

static Value *emit_epoch(IRBuilder<> &b)
{
	Module *m = b.GetInsertBlock()->getModule();
	Constant *found = m->getOrInsertGlobal("mve_checkpoint_epoch", b.getInt8Ty());
	auto *epoch = cast<GlobalVariable>(found);

	if (has_runtime(*m))
		epoch->setDSOLocal(true);
	return b.CreateLoad(b.getInt8Ty(), epoch, "epoch");
}

// In C, and it keeps all registers, as in runtime/save.h.
static void call_ordinary(IRBuilder<> &b, StringRef name, ArrayRef<Value *> args)
{
	Module *m = b.GetInsertBlock()->getModule();
	SmallVector<Type *, 2> types;

	for (Value *v : args)
		types.push_back(v->getType());
	auto *type = FunctionType::get(b.getVoidTy(), types, false);
	FunctionCallee f = m->getOrInsertFunction(name, type);
	cast<Function>(f.getCallee())->setCallingConv(CallingConv::PreserveAll);
	cast<Function>(f.getCallee())->setDoesNotThrow();
	CallInst *call = b.CreateCall(f, args);
	call->setCallingConv(CallingConv::PreserveAll);
	call->setDoesNotThrow();
}

// A call that keeps all registers, of arguments in r11 and r10, and wants no alignment of the
// stack (runtime/save.h): so a function that calls no other needs no frame for its checks, and who
// is given arguments in registers need not move them.  The address is made here, in one
// instruction: there are many such calls, and what they are long is in memory beside what runs.
static void call_save(IRBuilder<> &b, StringRef name, Value *base, int64_t offset, Value *size)
{
	BasicBlock *block = b.GetInsertBlock();
	std::string call = has_runtime(*block->getModule()) ? "call " + name.str() + "@PLT" :
			   "call *" + name.str() + "@GOTPCREL(%rip)";
	std::string operands = "{r11}";
	SmallVector<Value *, 2> args = {base};
	SmallVector<Type *, 2> types = {base->getType()};

	if (offset) {
		call = "lea " + std::to_string(offset) + "($0), %r11\n\t" + call;
		operands = "r";
	}
	if (size) {
		operands += ",{r10}";
		args.push_back(size);
		types.push_back(size->getType());
	}
	if (offset)
		operands += ",~{r11}";
	auto *type = FunctionType::get(b.getVoidTy(), types, false);
	operands += ",~{memory},~{dirflag},~{fpsr},~{flags}";
	b.CreateCall(type, InlineAsm::get(type, call, operands, true), args)->setDoesNotThrow();
	block->getParent()->addFnAttr(Attribute::NoRedZone);
}

bool is_save(const CallBase &call)
{
	auto *code = dyn_cast<InlineAsm>(call.getCalledOperand());

	return code && StringRef(code->getAsmString()).contains("mve_checkpoint_save");
}

// What locks, or counts what others count, too: they wait for it, or see it at once.
static bool is_atomic(const Instruction &i)
{
	auto *call = dyn_cast<CallBase>(&i);
	auto *code = call ? dyn_cast<InlineAsm>(call->getCalledOperand()) : nullptr;

	if (code)
		return StringRef(code->getAsmString()).contains("lock") ||
		       StringRef(code->getAsmString()).contains("xchg");
	return isa<AtomicRMWInst>(i) || isa<AtomicCmpXchgInst>(i);
}

void emit_atomics(const Sites &sites)
{
	for (const Site &s : sites)
		if (is_atomic(*s.at)) {
			IRBuilder<> b(s.at);
			call_ordinary(b, "mve_checkpoint_atomic", {s.pointer});
		}
}

// A store's own alignment is only what its type promises: programs for x86 break that promise,
// and it works.  So it is believed when asked for; what is known of the object always is.
static bool in_one_region(const Site &s)
{
	const DataLayout &dl = s.at->getModule()->getDataLayout();
	uint64_t known = std::min(getKnownAlignment(s.base, dl).value(), options().region());

	return (s.offset & (known - 1)) + s.size <= known ||
	       (options().aligned && s.align >= s.size && s.size <= options().region());
}

// It lies in one region if its base is aligned so.
static bool is_word(const Site &s)
{
	return isPowerOf2_64(s.size) && s.size <= word_most && s.offset % (int64_t)s.size == 0;
}

// Without them each range is left to the runtime.
static bool tags()
{
	return options().checks && !options().log;
}

static bool in_line(const Site &s)
{
	return !s.length && s.size <= inline_regions * options().region();
}

static Value *address(IRBuilder<> &b, const Site &s, Value *base)
{
	if (s.length)
		return s.pointer;
	return s.offset ? b.CreatePtrAdd(base, b.getInt64(s.offset)) : base;
}

// Whether the tag of a byte is older than the epoch.
static Value *old(IRBuilder<> &b, Value *pointer, uint64_t more, Value *epoch)
{
	Value *at = b.CreatePtrToInt(pointer, b.getInt64Ty());

	if (more)
		at = b.CreateAdd(at, b.getInt64(more));
	at = b.CreateAdd(b.CreateLShr(at, options().shift), b.getInt64(TAGS_AT));
	Value *tag = b.CreateLoad(b.getInt8Ty(), b.CreateIntToPtr(at, b.getPtrTy()), "tag");
	return b.CreateICmpULT(tag, epoch);
}

static Value *range_old(IRBuilder<> &b, const Site &s, Value *epoch)
{
	Value *pointer = address(b, s, s.base);
	Value *any = old(b, pointer, 0, epoch);
	uint64_t region = options().region();

	if (in_one_region(s) || is_word(s))
		return any;
	for (uint64_t more = region; more < s.size - 1; more += region)
		any = b.CreateOr(any, old(b, pointer, more, epoch));
	return s.size > 1 ? b.CreateOr(any, old(b, pointer, s.size - 1, epoch)) : any;
}

static Value *length(IRBuilder<> &b, const Site &s)
{
	Value *bytes = b.CreateZExtOrTrunc(s.length, b.getInt64Ty());

	return s.more ? b.CreateAdd(bytes, b.getInt64(s.more)) : bytes;
}

static Value *range_size(IRBuilder<> &b, const Site &s)
{
	return s.length ? length(b, s) : b.getInt64(s.size);
}

// A word that is not aligned may lie in two regions.
static std::string save_of(const Site &s)
{
	std::string name = "mve_checkpoint_save_";

	if (s.zeros)
		return name + "zeros_at";
	if (s.most)
		return name + "most_at";
	if (in_line(s) && in_one_region(s))
		return name + "at";
	bool word = in_line(s) && is_word(s) && s.size > 2;
	return name + (word ? std::to_string(s.size) : "range") + "_at";
}

// What is no register, but a place that is known, is an address in one instruction anyway.
static bool is_place(const Site &s)
{
	return isa<Constant>(s.base) || isa<AllocaInst>(s.base) || !isInt<32>(s.offset);
}

static void range_save(IRBuilder<> &b, const Site &s)
{
	std::string name = save_of(s);
	bool has_size = s.zeros || s.most || StringRef(name).contains("range");
	bool whole = s.length || is_place(s) || !tags();
	Value *at = whole ? address(b, s, s.base) : s.base;

	if (options().log)
		call_ordinary(b, "mve_checkpoint_log", {at, range_size(b, s)});
	else if (!options().checks)
		call_ordinary(b, "mve_checkpoint_touch", {at, range_size(b, s)});
	else
		call_save(b, name, at, whole ? 0 : s.offset,
			  has_size ? range_size(b, s) : nullptr);
}

// What is behind it reads the epoch once more: so the gate is a comparison with memory, and can go
// alone (editions.cc).
static Instruction *gate(Instruction *at, Gates &gates)
{
	IRBuilder<> b(at);
	Instruction *in = SplitBlockAndInsertIfThen(b.CreateIsNotNull(emit_epoch(b)), at, false);

	gates.push_back(in->getParent()->getSinglePredecessor()->getTerminator());
	return in;
}

void emit_gate(Instruction *at, Gates &gates)
{
	BasicBlock *before = at->getParent(), *after = SplitBlock(before, at);
	IRBuilder<> b(before->getTerminator());

	gates.push_back(b.CreateCondBr(b.CreateIsNotNull(emit_epoch(b)), after, after));
	before->back().eraseFromParent();
}

// A block before an instruction, for where the first holds, or, if not, what the second makes, if
// that makes anything.
static Instruction *if_either(Value *first, Instruction *at,
			      function_ref<Value *(IRBuilder<> &)> second)
{
	MDNode *seldom = MDBuilder(at->getContext()).createBranchWeights(1, 1000);
	Instruction *in = SplitBlockAndInsertIfThen(first, at, false, seldom);
	BasicBlock *block = in->getParent(), *behind = at->getParent();
	BasicBlock *other = BasicBlock::Create(at->getContext(), "", at->getFunction(), behind);
	IRBuilder<> b(other);

	if (Value *also = second(b)) {
		block->getSinglePredecessor()->getTerminator()->setSuccessor(1, other);
		b.CreateCondBr(also, block, behind, seldom);
	} else {
		other->eraseFromParent();
	}
	return in;
}

// Of a length of 1 to a region's the first and last byte say all; nothing is read for one of 0.
static void emit_length(const Site &s, Instruction *at, Value *epoch)
{
	IRBuilder<> b(at);
	Value *more = b.CreateSub(length(b, s), b.getInt64(1));
	Value *is_long = b.CreateICmpUGE(more, b.getInt64(options().region()));
	IRBuilder<> save(if_either(is_long, at, [&](IRBuilder<> &look) {
		Value *last = look.CreatePtrAdd(s.pointer, more);
		return look.CreateOr(old(look, s.pointer, 0, epoch), old(look, last, 0, epoch));
	}));

	save.SetCurrentDebugLocation(s.at->getDebugLoc());
	range_save(save, s);
}

// Of those whose last byte is not looked at: whether any is not aligned.  Null: there are none.
static Value *misaligned(IRBuilder<> &b, const Sites &sites)
{
	MapVector<Value *, uint64_t> bits;
	Value *any = nullptr;

	for (const Site &s : sites)
		if (in_line(s) && is_word(s) && !in_one_region(s))
			bits[s.base] |= s.size - 1;
	for (auto [base, mask] : bits) {
		Value *low = b.CreateTrunc(b.CreatePtrToInt(base, b.getInt64Ty()), b.getInt8Ty());
		Value *is = b.CreateIsNotNull(b.CreateAnd(low, mask));
		any = any ? b.CreateOr(any, is) : is;
	}
	return any;
}

// The ranges whose tags are looked at in line.
static void emit_tags(const Cluster &cluster, Instruction *at, Value *epoch)
{
	IRBuilder<> b(at);
	Value *any = nullptr;

	for (const Site &s : cluster.sites)
		if (in_line(s)) {
			Value *is = range_old(b, s, epoch);
			any = any ? b.CreateOr(any, is) : is;
		}
	if (!any)
		return;
	IRBuilder<> save(if_either(any, at, [&](IRBuilder<> &look) {
		return misaligned(look, cluster.sites); }));
	save.SetCurrentDebugLocation(cluster.at->getDebugLoc());
	for (const Site &s : cluster.sites)
		if (in_line(s))
			range_save(save, s);
}

// A length that the runtime is asked for.
static bool asks(const Site &s)
{
	auto *pick = dyn_cast_or_null<SelectInst>(s.length);
	auto *call = dyn_cast_or_null<CallInst>(pick ? pick->getFalseValue() : s.length);

	return call && call->getCalledFunction() && known_asked(*call->getCalledFunction());
}

// It is of use only where a checkpoint is open.
static void ask_here(const Site &s, Instruction *at)
{
	auto *pick = dyn_cast<SelectInst>(s.length);
	auto *call = cast<CallInst>(pick ? pick->getFalseValue() : s.length);

	if (call->getNumUses() != (pick ? 1 : 0) || (pick && !pick->use_empty()))
		return;
	call->moveBefore(at);
	if (pick)
		pick->moveBefore(at);
}

// What is to be asked of the runtime, or left to it, is only where a checkpoint is open.
static bool wants_gate(const Cluster &cluster)
{
	return !tags() || any_of(cluster.sites, asks);
}

void emit(const Cluster &cluster, bool gated, Gates &gates, Count &count)
{
	Instruction *at = gated || wants_gate(cluster) ? gate(cluster.at, gates) : cluster.at;

	for (const Site &s : cluster.sites)
		if (asks(s))
			ask_here(s, at);
	IRBuilder<> b(at);
	b.SetCurrentDebugLocation(cluster.at->getDebugLoc());
	Value *epoch = emit_epoch(b);

	count.checks += cluster.sites.size();
	for (const Site &s : cluster.sites)
		if (s.length && tags())
			emit_length(s, at, epoch);
		else if (!in_line(s) || !tags()) {
			IRBuilder<> save(at);
			save.SetCurrentDebugLocation(cluster.at->getDebugLoc());
			range_save(save, s);
		}
	if (tags())
		emit_tags(cluster, at, epoch);
}
