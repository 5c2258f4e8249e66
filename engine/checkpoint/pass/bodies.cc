// A function f becomes three:
//
//	f		jmp f.plain
//	f.plain		as it was, without a check, a gate, a thunk, a large array moved
//	f.checked	all of these
//
// and a row (f, f.checked) in a table of the program's.  In a program in which checkpoints may be
// opened the runtime makes each entry lead to the other body before anything of the program runs
// (seam/bodies.c); in one that takes none nothing is done, and a checkpoint costs a jump
// for a call from another module.  Within a module a body calls the bodies of its kind.
//
// Entries lie together, so that few pages are written; and so do checked bodies, and plain ones, so
// that a process has little of what does not run in its memory.  Checked ones are made first: so
// the linker puts them next to what has one body only, and plain ones last (seam/bodies.c).
#include "engine/checkpoint/pass/bodies.h"
#include "engine/checkpoint/pass/known.h"
#include "engine/checkpoint/pass/options.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"
#include <map>

using namespace llvm;

static const char entries[] = ".mve_entry";
static const char checks[] = ".mve_text", plains[] = ".mve_plain";
static const char table[] = "mve_checked";

// A label in assembly may be there once.
static bool has_label(const Function &f)
{
	for (const Instruction &i : instructions(f)) {
		auto *call = dyn_cast<CallBase>(&i);
		auto *code = call ? dyn_cast<InlineAsm>(call->getCalledOperand()) : nullptr;
		if (code && StringRef(code->getAsmString()).contains(':'))
			return true;
		if (call && call->cannotDuplicate())
			return true;
	}
	return false;
}

// A table of addresses of blocks leads into the one body that it was made for.
static bool has_addresses(const Function &f)
{
	return any_of(f, [](const BasicBlock &b) { return b.hasAddressTaken(); });
}

// The symbol is this definition's, whatever the others are linked with: no other one's entry is
// made to lead here.
static bool is_own(const Function &f)
{
	return f.hasLocalLinkage() || f.hasComdat() || f.hasExactDefinition();
}

// So many arguments come in registers (x86-64's ABI); an entry with others would have to move them.
static const unsigned whole_most = 6, vector_most = 8;

static bool in_registers(const Function &f)
{
	unsigned whole = 0, vector = 0;

	for (const Argument &a : f.args()) {
		const Type *type = a.getType();
		uint64_t bits = type->isPointerTy() ? 64 : type->getPrimitiveSizeInBits();
		if (a.hasPassPointeeByValueCopyAttr() || bits == 0 || bits > 128 ||
		    type->isX86_FP80Ty())
			return false;
		if (type->isPointerTy() || type->isIntegerTy())
			whole += bits > 64 ? 2 : 1;
		else
			vector++;
	}
	return whole <= whole_most && vector <= vector_most &&
	       (f.getCallingConv() == CallingConv::C || f.getCallingConv() == CallingConv::Fast);
}

static bool can(const Function &f)
{
	return is_own(f) && in_registers(f) && !f.isVarArg() && !f.hasOptNone() &&
	       !f.hasSection() && !f.hasPrologueData() && !f.hasPrefixData() &&
	       !has_addresses(f) && !has_label(f);
}

// Its own code only: arguments stay as they are passed.
static void entry_make(Function &f, Function &plain)
{
	GlobalValue::LinkageTypes linkage = f.getLinkage();
	Comdat *comdat = f.getComdat();
	SmallVector<Value *, 8> arguments;

	f.deleteBody();
	f.setLinkage(linkage);
	f.setComdat(comdat);
	for (auto kind : {Attribute::StackProtect, Attribute::StackProtectReq,
			  Attribute::StackProtectStrong, Attribute::NoReturn})
		f.removeFnAttr(kind);
	f.removeFnAttr("frame-pointer");
	f.addFnAttr(Attribute::OptimizeForSize);
	f.addFnAttr(Attribute::NoInline);
	f.setSection(entries);
	f.setAlignment(Align(8));
	IRBuilder<> b(BasicBlock::Create(f.getContext(), "", &f));
	for (Argument &a : f.args())
		arguments.push_back(&a);
	CallInst *call = b.CreateCall(&plain, arguments);
	call->setCallingConv(f.getCallingConv());
	call->setAttributes(f.getAttributes().removeFnAttributes(f.getContext()));
	call->setTailCallKind(CallInst::TCK_MustTail);
	if (f.getReturnType()->isVoidTy())
		b.CreateRetVoid();
	else
		b.CreateRet(call);
}

static Function *body(Function &f, const char *kind, const char *section)
{
	ValueToValueMapTy values;
	Function *made = CloneFunction(&f, values);

	made->setName(f.getName() + kind);
	made->setLinkage(GlobalValue::InternalLinkage);
	made->setVisibility(GlobalValue::DefaultVisibility);
	made->setDLLStorageClass(GlobalValue::DefaultStorageClass);
	made->setComdat(f.getComdat());
	made->setSection(section);
	return made;
}

// In a shared object a symbol may be another's.
std::vector<Bodies> bodies_make(Module &m, std::vector<Function *> &functions)
{
	std::vector<Bodies> all;

	if (!options().editions || m.getPIELevel() == PIELevel::Default)
		return all;
	for (Function *f : functions)
		if (can(*f))
			all.push_back({f, nullptr, body(*f, ".checked", checks)});
	for (Function *&f : functions) {
		auto with = find_if(all, [&](const Bodies &b) { return b.entry == f; });
		if (with == all.end())
			continue;
		with->plain = body(*f, ".plain", plains);
		entry_make(*f, *with->plain);
		f = with->checked;
	}
	return all;
}

using Leads = std::map<const Function *, Function *>;

static void calls_lead(Function &f, const Leads &leads)
{
	for (Instruction &i : instructions(f)) {
		auto *call = dyn_cast<CallBase>(&i);
		auto found = call ? leads.find(call->getCalledFunction()) : leads.end();
		if (found != leads.end())
			call->setCalledFunction(found->second);
	}
}

static Constant *from(GlobalVariable *row, unsigned field, Function *to)
{
	LLVMContext &c = row->getContext();
	Type *word = Type::getInt64Ty(c), *half = Type::getInt32Ty(c);
	Constant *at = ConstantExpr::getAdd(ConstantExpr::getPtrToInt(row, word),
					    ConstantInt::get(word, field * 4));
	Constant *way = ConstantExpr::getSub(ConstantExpr::getPtrToInt(to, word), at);

	return ConstantExpr::getTrunc(way, half);
}

// As in seam/bodies.c.  It goes where its function goes.
static GlobalVariable *row_make(Module &m, const Bodies &b)
{
	auto *type = ArrayType::get(Type::getInt32Ty(m.getContext()), 2);
	auto *row = new GlobalVariable(m, type, true, GlobalValue::PrivateLinkage, nullptr,
				       "mve_checked_row");

	row->setInitializer(ConstantArray::get(type, {from(row, 0, b.entry),
						      from(row, 1, b.checked)}));
	row->setSection(table);
	row->setAlignment(Align(4));
	row->setComdat(b.entry->getComdat());
	row->setMetadata(LLVMContext::MD_associated,
			 MDNode::get(m.getContext(), ValueAsMetadata::get(b.entry)));
	return row;
}

void bodies_lead(Module &m, const std::vector<Bodies> &all, Count &count)
{
	Leads plain = known_plain(m), checked;
	std::vector<GlobalValue *> rows;

	for (const Bodies &b : all) {
		plain[b.entry] = b.plain;
		checked[b.entry] = b.checked;
	}
	for (const Bodies &b : all) {
		calls_lead(*b.plain, plain);
		calls_lead(*b.checked, checked);
	}
	for (const Bodies &b : all) {
		if (b.entry->hasLocalLinkage() && b.entry->use_empty()) {
			b.entry->eraseFromParent();
			continue;
		}
		rows.push_back(row_make(m, b));
		count.entries++;
	}
	appendToCompilerUsed(m, rows);
}
