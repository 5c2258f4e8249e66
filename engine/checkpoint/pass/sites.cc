// Finds what writes memory: stores, atomics, intrinsics, operands of assembly, and functions of
// libraries that known.def has rows for.  What may write and is none of these is counted.
#include "engine/checkpoint/pass/sites.h"
#include "engine/checkpoint/pass/emit.h"
#include "engine/checkpoint/pass/known.h"
#include "engine/checkpoint/pass/options.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"

using namespace llvm;

void site_resolve(Site &site)
{
	const DataLayout &dl = site.at->getModule()->getDataLayout();
	APInt offset(dl.getIndexTypeSizeInBits(site.pointer->getType()), 0);

	site.base = site.pointer->stripAndAccumulateConstantOffsets(dl, offset, true);
	site.offset = offset.getSExtValue();
}

static Site site(Instruction *at, Value *pointer, uint64_t size, uint64_t align)
{
	Site s{at, pointer, pointer, 0, size, nullptr, align ? align : 1};

	site_resolve(s);
	return s;
}

static Site site_long(Instruction *at, Value *pointer, Value *length)
{
	auto *known = dyn_cast<ConstantInt>(length);
	Site s = site(at, pointer, known ? known->getZExtValue() : 0, 1);

	s.length = known ? nullptr : length;
	return s;
}

static uint64_t bytes(const Instruction &i, Type *type)
{
	return i.getModule()->getDataLayout().getTypeStoreSize(type).getFixedValue();
}

// Of a structure, which is shorter, most is written behind that: it is saved, and needs no checks.
static const unsigned long_regions = 16;

static bool may_be_long(const Site &s)
{
	return s.length || s.size > long_regions * options().region();
}

static void from_memory(MemIntrinsic &i, Sites &sites)
{
	Site s = site_long(&i, i.getRawDest(), i.getLength());
	auto *set = dyn_cast<MemSetInst>(&i);
	auto *value = set ? dyn_cast<ConstantInt>(set->getValue()) : nullptr;

	s.zeros = options().zeros && value && value->isZero() && may_be_long(s);
	if (s.length || s.size)
		sites.push_back(s);
}

// A store of some lanes of a vector to places of their own.
static void from_scatter(IntrinsicInst &i, Sites &sites)
{
	auto *places = cast<FixedVectorType>(i.getArgOperand(1)->getType());
	uint64_t size = bytes(i, cast<VectorType>(i.getArgOperand(0)->getType())->getElementType());
	IRBuilder<> b(&i);

	for (unsigned lane = 0; lane < places->getNumElements(); lane++) {
		Site s = site(&i, b.CreateExtractElement(i.getArgOperand(1), lane), 0, 1);
		Value *on = b.CreateExtractElement(i.getArgOperand(3), lane);
		s.length = b.CreateSelect(on, b.getInt64(size), b.getInt64(0));
		sites.push_back(s);
	}
}

// Of lanes that lie together those from the first that is on to the last: where others would be
// there may be no memory.  Packed: those that are on, one behind the other.
static void from_lanes(IntrinsicInst &i, Value *pointer, Value *value, Value *on, bool packed,
		       Sites &sites)
{
	auto *lanes = cast<FixedVectorType>(on->getType());
	IRBuilder<> b(&i);
	Value *size = b.getInt64(bytes(i, value->getType()) / lanes->getNumElements());
	Value *mask = b.CreateZExt(b.CreateBitCast(on, b.getIntNTy(lanes->getNumElements())),
				   b.getInt64Ty());
	Value *count = b.CreateUnaryIntrinsic(Intrinsic::ctpop, mask);

	if (!packed) {
		Value *first = b.CreateBinaryIntrinsic(Intrinsic::cttz, mask, b.getFalse());
		Value *above = b.CreateBinaryIntrinsic(Intrinsic::ctlz, mask, b.getFalse());
		Value *all = b.CreateSub(b.CreateSub(b.getInt64(64), above), first);
		count = b.CreateSelect(b.CreateIsNull(mask), mask, all);
		pointer = b.CreatePtrAdd(pointer, b.CreateMul(first, size));
	}
	Site s = site(&i, pointer, 0, 1);
	s.length = b.CreateMul(count, size);
	sites.push_back(s);
}

// A lane is on whose sign is set.
static Value *signs(IntrinsicInst &i, Value *mask)
{
	IRBuilder<> b(&i);

	return b.CreateICmpSLT(mask, Constant::getNullValue(mask->getType()));
}

static bool writes_nothing(Intrinsic::ID id)
{
	switch (id) {
	case Intrinsic::lifetime_start:
	case Intrinsic::lifetime_end:
	case Intrinsic::invariant_start:
	case Intrinsic::invariant_end:
	case Intrinsic::assume:
	case Intrinsic::experimental_noalias_scope_decl:
	case Intrinsic::prefetch:
	case Intrinsic::stackrestore:
	case Intrinsic::stacksave:
	case Intrinsic::sideeffect:
	case Intrinsic::pseudoprobe:
	case Intrinsic::trap:
	case Intrinsic::vaend:
	case Intrinsic::eh_typeid_for:
		return true;
	default:
		return false;
	}
}

static const uint64_t va_list_bytes = 24;

static void from_intrinsic(IntrinsicInst &i, Sites &sites, Count &count)
{
	switch (i.getIntrinsicID()) {
	case Intrinsic::masked_store:
		from_lanes(i, i.getArgOperand(1), i.getArgOperand(0), i.getArgOperand(3), false,
			   sites);
		return;
	case Intrinsic::masked_compressstore:
		from_lanes(i, i.getArgOperand(1), i.getArgOperand(0), i.getArgOperand(2), true,
			   sites);
		return;
	case Intrinsic::x86_avx_maskstore_pd:
	case Intrinsic::x86_avx_maskstore_pd_256:
	case Intrinsic::x86_avx_maskstore_ps:
	case Intrinsic::x86_avx_maskstore_ps_256:
	case Intrinsic::x86_avx2_maskstore_d:
	case Intrinsic::x86_avx2_maskstore_d_256:
	case Intrinsic::x86_avx2_maskstore_q:
	case Intrinsic::x86_avx2_maskstore_q_256:
		from_lanes(i, i.getArgOperand(0), i.getArgOperand(2), signs(i, i.getArgOperand(1)),
			   false, sites);
		return;
	case Intrinsic::x86_sse2_maskmov_dqu:
		from_lanes(i, i.getArgOperand(2), i.getArgOperand(0), signs(i, i.getArgOperand(1)),
			   false, sites);
		return;
	case Intrinsic::masked_scatter:
		from_scatter(i, sites);
		return;
	case Intrinsic::vastart:
	case Intrinsic::vacopy:
		sites.push_back(site(&i, i.getArgOperand(0), va_list_bytes, 8));
		return;
	default:
		break;
	}
	if (auto *memory = dyn_cast<MemIntrinsic>(&i))
		from_memory(*memory, sites);
	else if (i.mayWriteToMemory() && !i.onlyAccessesInaccessibleMemory() &&
		 !writes_nothing(i.getIntrinsicID()) && !i.isDebugOrPseudoInst())
		count.unseen++;
}

// Each operand in memory may be written: programs declare as inputs what they exchange.  What is
// written by a pointer in a register is not known.
static void from_asm(CallBase &call, Sites &sites, Count &count)
{
	bool any = false;

	for (unsigned n = 0; n < call.arg_size(); n++)
		if (Type *type = call.getParamElementType(n))
			sites.push_back(site(&call, call.getArgOperand(n), bytes(call, type), 1));
		else
			any |= call.getArgOperand(n)->getType()->isPointerTy();
	if (any && call.mayWriteToMemory())
		count.unseen++;
}

static void from_call(CallBase &call, Sites &sites, Count &count)
{
	if (auto *intrinsic = dyn_cast<IntrinsicInst>(&call)) {
		from_intrinsic(*intrinsic, sites, count);
		return;
	}
	if (call.isInlineAsm()) {
		from_asm(call, sites, count);
		return;
	}
	Ranges ranges = known_ranges(call), objects = known_objects(call);
	ranges.insert(ranges.end(), objects.begin(), objects.end());
	for (auto &range : ranges) {
		Site s = site_long(&call, range.pointer, range.length);
		s.most = range.most && may_be_long(s);
		if (s.length || s.size)
			sites.push_back(s);
	}
	if (known_not(call))
		count.unknown.insert(call.getCalledFunction()->getName().str());
}

static void from_instruction(Instruction &i, Sites &sites, Count &count)
{
	if (auto *store = dyn_cast<StoreInst>(&i))
		sites.push_back(site(&i, store->getPointerOperand(),
				     bytes(i, store->getValueOperand()->getType()),
				     store->getAlign().value()));
	else if (auto *rmw = dyn_cast<AtomicRMWInst>(&i))
		sites.push_back(site(&i, rmw->getPointerOperand(),
				     bytes(i, rmw->getValOperand()->getType()),
				     rmw->getAlign().value()));
	else if (auto *swap = dyn_cast<AtomicCmpXchgInst>(&i))
		sites.push_back(site(&i, swap->getPointerOperand(),
				     bytes(i, swap->getNewValOperand()->getType()),
				     swap->getAlign().value()));
	else if (auto *call = dyn_cast<CallBase>(&i))
		from_call(*call, sites, count);
}

Sites sites_find(Function &f, Count &count)
{
	std::vector<Instruction *> all;
	Sites sites;

	for (Instruction &i : instructions(f))
		all.push_back(&i);
	for (Instruction *i : all)	// what is known of a call may add instructions
		from_instruction(*i, sites, count);
	count.stores += sites.size();
	return sites;
}

// Threads wait for one another by these: another may have opened a checkpoint meanwhile.
static bool synchronizes(const Instruction &i)
{
	if (auto *load = dyn_cast<LoadInst>(&i))
		return load->isVolatile() || isStrongerThanMonotonic(load->getOrdering());
	return isa<AtomicRMWInst>(i) || isa<AtomicCmpXchgInst>(i) || isa<FenceInst>(i);
}

bool may_open(const Instruction &i, const Quiet &quiet)
{
	auto *call = dyn_cast<CallBase>(&i);

	if (!call)
		return synchronizes(i);
	if (call->isInlineAsm())
		return call->mayReadOrWriteMemory() && !is_save(*call);
	if (isa<IntrinsicInst>(call) || call->onlyReadsMemory())
		return false;
	const Function *callee = call->getCalledFunction();
	return !callee || !(quiet.count(callee) || known_quiet(*callee));
}

static bool opens(const Function &f, const Quiet &quiet)
{
	for (const Instruction &i : instructions(f))
		if (may_open(i, quiet))
			return true;
	return false;
}

// Begins with all, and takes away those that call another, until none is left to take away.
Quiet quiet_find(Module &m)
{
	Quiet quiet;
	bool changed = true;

	for (Function &f : m)
		if (f.hasExactDefinition())
			quiet.insert(&f);
	while (changed) {
		changed = false;
		for (Function &f : m)
			if (quiet.count(&f) && opens(f, quiet))
				changed = quiet.erase(&f);
	}
	return quiet;
}
