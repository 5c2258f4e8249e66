// A cluster becomes
//
//	if (epoch)			the gate
//		if (any tag < epoch)	the tags of first and last byte of each range, and between
//			save(...)	for each range; it looks again
//
// and a range whose length is not known here is looked at in the same way where it turns out to be
// no longer than a region; else the runtime looks, behind the gate.
#include "engine/checkpoint/pass/emit.h"
#include "engine/checkpoint/pass/known.h"
#include "engine/checkpoint/pass/options.h"
#include "engine/checkpoint/runtime/tags.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

// So many regions' tags are looked at in line.
static const unsigned inline_regions = 3;

static Value *emit_epoch(IRBuilder<> &b)
{
	Module *m = b.GetInsertBlock()->getModule();
	Constant *found = m->getOrInsertGlobal("mve_checkpoint_epoch", b.getInt8Ty());
	auto *epoch = cast<GlobalVariable>(found);

	if (m->getPIELevel() != PIELevel::Default || m->getPICLevel() == PICLevel::NotPIC)
		epoch->setDSOLocal(true);
	return b.CreateLoad(b.getInt8Ty(), epoch, "epoch");
}

// As in runtime/save.h.
static void call_save(IRBuilder<> &b, StringRef name, ArrayRef<Value *> args)
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

// A store's own alignment is only what its type promises: programs for x86 break that promise,
// and it works.  So it is believed when asked for; what is known of the object always is.
static uint64_t align_of(const Site &s)
{
	const DataLayout &dl = s.at->getModule()->getDataLayout();
	uint64_t known = s.pointer == s.base ? getKnownAlignment(s.base, dl).value() : 1;

	return options().aligned ? std::max(s.align, known) : known;
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

static Value *address(IRBuilder<> &b, const Site &s)
{
	if (s.length)
		return s.pointer;
	return s.offset ? b.CreatePtrAdd(s.base, b.getInt64(s.offset)) : s.base;
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
	Value *pointer = address(b, s);
	Value *any = old(b, pointer, 0, epoch);
	uint64_t region = options().region();

	if (s.size <= region && align_of(s) >= s.size)
		return any;		// it does not reach into the next region
	for (uint64_t more = region; more < s.size - 1; more += region)
		any = b.CreateOr(any, old(b, pointer, more, epoch));
	return s.size > 1 ? b.CreateOr(any, old(b, pointer, s.size - 1, epoch)) : any;
}

static void range_save(IRBuilder<> &b, const Site &s)
{
	Value *pointer = address(b, s);
	Value *size = s.length ? b.CreateZExtOrTrunc(s.length, b.getInt64Ty()) : b.getInt64(s.size);

	if (options().log)
		call_save(b, "mve_checkpoint_log", {pointer, size});
	else if (!options().checks)
		call_save(b, "mve_checkpoint_touch", {pointer, size});
	else if (in_line(s) && s.size <= options().region() && align_of(s) >= s.size)
		call_save(b, "mve_checkpoint_save", {pointer});
	else
		call_save(b, "mve_checkpoint_save_range", {pointer, size});
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

// Of a length of 1 to a region's the first and last byte say all; nothing is read for one of 0.
static Value *length_old(IRBuilder<> &b, const Site &s, Instruction *at, Value *epoch)
{
	Type *word = b.getInt64Ty();
	Value *more = b.CreateSub(b.CreateZExtOrTrunc(s.length, word), b.getInt64(1));
	Value *is_short = b.CreateICmpULT(more, b.getInt64(options().region()));
	BasicBlock *before = b.GetInsertBlock();
	Instruction *in = SplitBlockAndInsertIfThen(is_short, at, false);
	IRBuilder<> look(in), after(at);
	Value *last = look.CreatePtrAdd(s.pointer, more);
	Value *any = look.CreateOr(old(look, s.pointer, 0, epoch), old(look, last, 0, epoch));
	PHINode *either = after.CreatePHI(b.getInt1Ty(), 2);

	either->addIncoming(b.getTrue(), before);
	either->addIncoming(any, in->getParent());
	return either;
}

static void emit_length(const Site &s, Instruction *at, Value *epoch)
{
	IRBuilder<> b(at);
	Value *any = length_old(b, s, at, epoch);
	MDNode *seldom = MDBuilder(at->getContext()).createBranchWeights(1, 1000);
	IRBuilder<> save(SplitBlockAndInsertIfThen(any, at, false, seldom));

	save.SetCurrentDebugLocation(s.at->getDebugLoc());
	range_save(save, s);
}

// The ranges whose tags are looked at in line, in one branch.
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
	MDNode *seldom = MDBuilder(at->getContext()).createBranchWeights(1, 1000);
	IRBuilder<> save(SplitBlockAndInsertIfThen(any, at, false, seldom));
	save.SetCurrentDebugLocation(cluster.at->getDebugLoc());
	for (const Site &s : cluster.sites)
		if (in_line(s))
			range_save(save, s);
}

// A length that the runtime is asked for is of use only here, where a checkpoint is open.
static void ask_here(const Site &s, Instruction *at)
{
	auto *pick = dyn_cast_or_null<SelectInst>(s.length);
	auto *call = dyn_cast_or_null<CallInst>(pick ? pick->getFalseValue() : s.length);

	if (!call || !call->getCalledFunction() || !known_asked(*call->getCalledFunction()) ||
	    call->getNumUses() != (pick ? 1 : 0) || (pick && !pick->use_empty()))
		return;
	call->moveBefore(at);
	if (pick)
		pick->moveBefore(at);
}

void emit(const Cluster &cluster, Gates &gates, Count &count)
{
	Instruction *at = gate(cluster.at, gates);

	for (const Site &s : cluster.sites)
		ask_here(s, at);
	IRBuilder<> b(at);
	Value *epoch = emit_epoch(b);

	count.checks += cluster.sites.size();
	b.SetCurrentDebugLocation(cluster.at->getDebugLoc());
	for (const Site &s : cluster.sites)
		if (s.length && tags())
			emit_length(s, at, epoch);
		else if (!in_line(s) || !tags())
			range_save(b, s);
	if (tags())
		emit_tags(cluster, at, epoch);
}
