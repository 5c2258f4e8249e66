// A pointer that is called may be a library's function, which nobody has put a thunk before
// (runtime/library.h): dlsym() gave it, or a structure of a library's.  So each such call becomes
//
//	if (function - text >= size of text)
//		function = mve_checkpoint_callee(function)
//	function(...)
#include "engine/checkpoint/pass/emit.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

static bool by_pointer(const CallBase &call)
{
	return !call.isInlineAsm() && !isa<Constant>(call.getCalledOperand());
}

static Value *text(IRBuilder<> &b)
{
	Module *m = b.GetInsertBlock()->getModule();
	Type *type = ArrayType::get(b.getInt64Ty(), 2);
	auto *found = cast<GlobalVariable>(m->getOrInsertGlobal("mve_checkpoint_text", type));

	if (m->getPIELevel() != PIELevel::Default || m->getPICLevel() == PICLevel::NotPIC)
		found->setDSOLocal(true);
	return found;
}

static Value *is_outside(IRBuilder<> &b, Value *function)
{
	Value *begin = text(b), *at = b.CreatePtrToInt(function, b.getInt64Ty());
	Value *size = b.CreatePtrAdd(begin, b.getInt64(8));

	at = b.CreateSub(at, b.CreateLoad(b.getInt64Ty(), begin));
	return b.CreateICmpUGE(at, b.CreateLoad(b.getInt64Ty(), size));
}

static void thunk(CallBase &call)
{
	Module *m = call.getModule();
	Value *function = call.getCalledOperand();
	IRBuilder<> b(&call);
	Value *outside = is_outside(b, function);
	MDNode *seldom = MDBuilder(call.getContext()).createBranchWeights(1, 1000);
	BasicBlock *before = call.getParent();
	Instruction *in = SplitBlockAndInsertIfThen(outside, &call, false, seldom);
	IRBuilder<> ask(in);

	ask.SetCurrentDebugLocation(call.getDebugLoc());
	FunctionCallee asked = m->getOrInsertFunction("mve_checkpoint_callee", ask.getPtrTy(),
						      ask.getPtrTy());
	cast<Function>(asked.getCallee())->setCallingConv(CallingConv::PreserveMost);
	CallInst *got = ask.CreateCall(asked, function);
	got->setCallingConv(CallingConv::PreserveMost);
	got->setDoesNotThrow();
	IRBuilder<> after(&call);
	PHINode *either = after.CreatePHI(function->getType(), 2);
	either->addIncoming(function, before);
	either->addIncoming(got, got->getParent());
	call.setCalledOperand(either);
}

void outside_thunks(Function &f)
{
	std::vector<CallBase *> calls;

	for (Instruction &i : instructions(f))
		if (auto *call = dyn_cast<CallBase>(&i); call && by_pointer(*call))
			calls.push_back(call);
	for (CallBase *call : calls)
		thunk(*call);
}
