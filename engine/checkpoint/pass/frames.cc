// A function with large arrays becomes
//
//	place = mve_checkpoint_frame(the frame's address, bytes of them all)
//	if (!place)
//		place = alloca(bytes)
//	...
//	mve_checkpoint_frame_end(what was given)	before each return
//
// and stores to them are checked as those to any memory.  A function that is left by a jump or an
// exception ends nothing: the runtime finds that out.
#include "engine/checkpoint/pass/emit.h"
#include "engine/checkpoint/pass/options.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include <vector>

using namespace llvm;

// Less is copied as fast as it is checked.
static const uint64_t large = 4096;

// What the runtime aligns a place to.
static const uint64_t place_align = 64;

using Arrays = std::vector<AllocaInst *>;

static uint64_t bytes(const AllocaInst &a)
{
	auto size = a.getAllocationSize(a.getModule()->getDataLayout());

	return size && !size->isScalable() ? size->getFixedValue() : 0;
}

static Arrays arrays(Function &f)
{
	Arrays found;

	for (Instruction &i : f.getEntryBlock())
		if (auto *a = dyn_cast<AllocaInst>(&i); a && a->isStaticAlloca() &&
		    !a->isSwiftError() && a->getAddressSpace() == 0 &&
		    a->getAlign().value() <= place_align && bytes(*a) >= large)
			found.push_back(a);
	return found;
}

// A call that takes the frame's place, and a frame that others look into.
static bool is_strange(Function &f)
{
	for (Instruction &i : instructions(f)) {
		auto *call = dyn_cast<CallBase>(&i);
		auto *intrinsic = dyn_cast<IntrinsicInst>(&i);
		if ((call && call->isMustTailCall()) ||
		    (intrinsic && intrinsic->getIntrinsicID() == Intrinsic::localescape))
			return true;
	}
	return false;
}

static CallInst *call(IRBuilder<> &b, StringRef name, CallingConv::ID kept, Type *result,
		      ArrayRef<Value *> arguments)
{
	Module *m = b.GetInsertBlock()->getModule();
	SmallVector<Type *, 2> types;

	for (Value *v : arguments)
		types.push_back(v->getType());
	FunctionCallee f = m->getOrInsertFunction(name, FunctionType::get(result, types, false));
	cast<Function>(f.getCallee())->setCallingConv(kept);
	CallInst *made = b.CreateCall(f, arguments);
	made->setCallingConv(kept);
	made->setDoesNotThrow();
	return made;
}

// Behind all of the entry's static allocas, which must stay in it.
static Instruction *behind_allocas(Function &f)
{
	BasicBlock &entry = f.getEntryBlock();
	std::vector<Instruction *> all;

	for (Instruction &i : entry)
		if (auto *a = dyn_cast<AllocaInst>(&i); a && a->isStaticAlloca())
			all.push_back(a);
	Instruction *first = &*entry.getFirstInsertionPt();
	for (Instruction *a : all)
		if (a == first)
			first = first->getNextNode();
		else
			a->moveBefore(first);
	return first;
}

// Its markers mean nothing elsewhere.
static void replace(AllocaInst *array, Value *place)
{
	std::vector<Instruction *> markers;

	for (User *u : array->users())
		if (auto *i = dyn_cast<IntrinsicInst>(u); i && i->isLifetimeStartOrEnd())
			markers.push_back(i);
	for (Instruction *i : markers)
		i->eraseFromParent();
	array->replaceAllUsesWith(place);
	array->eraseFromParent();
}

static void ends(Function &f, Value *given)
{
	std::vector<Instruction *> leave;

	for (BasicBlock &b : f)
		if (isa<ReturnInst>(b.getTerminator()) || isa<ResumeInst>(b.getTerminator()))
			leave.push_back(b.getTerminator());
	for (Instruction *i : leave) {
		IRBuilder<> b(i);
		call(b, "mve_checkpoint_frame_end", CallingConv::PreserveMost, b.getVoidTy(),
		     given);
	}
}

// The frame itself is aligned no more than the arrays are: that would cost each call.
static PHINode *place(Instruction *at, uint64_t all, Align align, Value *&given)
{
	IRBuilder<> b(at);
	MDNode *seldom = MDBuilder(at->getContext()).createBranchWeights(1, 1000);

	Value *here = b.CreateIntrinsic(Intrinsic::frameaddress, {b.getPtrTy()}, {b.getInt32(0)});
	given = call(b, "mve_checkpoint_frame", CallingConv::C, b.getPtrTy(),
		     {here, b.getInt64(all)});
	BasicBlock *entry = at->getParent();
	Value *none = b.CreateIsNull(given);
	IRBuilder<> in(SplitBlockAndInsertIfThen(none, at, false, seldom));
	AllocaInst *own = in.CreateAlloca(in.getInt8Ty(), in.getInt64(all));
	own->setAlignment(align);
	IRBuilder<> after(at);
	PHINode *either = after.CreatePHI(after.getPtrTy(), 2);
	either->addIncoming(given, entry);
	either->addIncoming(own, own->getParent());
	return either;
}

void frames_move(Function &f, Count &count)
{
	Arrays found = arrays(f);
	uint64_t all = 0, offset = 0;
	Align align;
	Value *given;

	if (!options().frames || !options().checks || options().log || found.empty() ||
	    is_strange(f))
		return;
	for (AllocaInst *a : found) {
		all += alignTo(bytes(*a), place_align);
		align = std::max(align, a->getAlign());
	}
	Instruction *at = behind_allocas(f);
	PHINode *begin = place(at, all, align, given);
	IRBuilder<> b(&*begin->getParent()->getFirstInsertionPt());
	std::vector<Value *> places;	// all, before a marker goes that they may stand before
	for (AllocaInst *a : found) {
		places.push_back(offset ? b.CreatePtrAdd(begin, b.getInt64(offset)) : begin);
		offset += alignTo(bytes(*a), place_align);
	}
	for (size_t n = 0; n < found.size(); n++)
		replace(found[n], places[n]);
	ends(f, given);
	count.frames += found.size();
}
