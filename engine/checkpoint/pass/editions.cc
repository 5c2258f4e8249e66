// What a gate has found holds until the next call that may open a checkpoint.  So the blocks
// between such a gate and others are there three times: as they were, for who comes from such a
// call; for who knows that none is open, without gates and checks; for who knows that one is,
// without gates.
//
//	gate -- none is open: blocks, without checks ------ call
//	    \-- one is open:  blocks, with checks, no gate -/
//
// Only blocks that lead to another gate are doubled.  Values that come out of them are kept in
// memory while that is done, and made values again.
#include "engine/checkpoint/pass/emit.h"
#include "engine/checkpoint/pass/options.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"
#include "llvm/Transforms/Utils/ValueMapper.h"
#include <map>

using namespace llvm;

// A function of more instructions is not doubled.
static const unsigned doubled_most = 20000;

// What is known where a block begins.
enum State { unknown, closed, open, states };

static bool is_rare(const Instruction &i)
{
	auto *call = dyn_cast<CallBase>(&i);

	return isa<CallBrInst>(i) || isa<IndirectBrInst>(i) || isa<FuncletPadInst>(i) ||
	       i.getType()->isTokenTy() || i.isSwiftError() ||
	       (call && (call->isConvergent() || call->cannotDuplicate()));
}

bool editions_can(const Function &f)
{
	if (!options().editions || f.hasOptNone() || f.getInstructionCount() > doubled_most)
		return false;
	for (const BasicBlock &b : f) {
		if (b.hasAddressTaken())
			return false;
		for (const Instruction &i : b)
			if (is_rare(i))
				return false;
	}
	return true;
}

namespace {
class Editions {
public:
	Editions(Function &f, const Gates &gates, const Quiet &quiet);
	bool find();
	void make(Count &count);

private:
	using Place = std::pair<BasicBlock *, State>;

	bool is_gate(const BasicBlock *b) const { return gates.count(b->getTerminator()); }
	void need_find();
	State behind(const Place &p, unsigned successor) const;
	bool leads(const Place &p, unsigned successor) const;
	bool has_copy(BasicBlock *b) const;
	void keep(BasicBlock &b);
	void keep_phis();
	void copy_all();
	void lead(const Place &p, BasicBlock *block);
	BasicBlock *at(const Place &p) const { return copies.find(p)->second; }

	Function &f;
	SmallPtrSet<const Instruction *, 16> gates;
	DenseSet<const BasicBlock *> opens, needs;
	std::map<Place, BasicBlock *> copies;	// where unknown, the block itself
	std::vector<Place> order;	// what can be come to
	std::vector<AllocaInst *> kept;	// what comes out of a block with copies
};
}

// What an invocation gives is given on its way to the next block: so there is a place to keep it.
static void invocations_split(Function &f)
{
	std::vector<InvokeInst *> all;

	for (BasicBlock &b : f)
		if (auto *call = dyn_cast<InvokeInst>(b.getTerminator());
		    call && isa<PHINode>(call->getNormalDest()->front()))
			all.push_back(call);
	for (InvokeInst *call : all)
		SplitEdge(call->getParent(), call->getNormalDest());
}

// An invocation is taken for one that may open: it is not doubled.
Editions::Editions(Function &function, const Gates &all, const Quiet &quiet) : f(function)
{
	for (const WeakVH &gate : all)
		gates.insert(cast<Instruction>(gate));
	invocations_split(f);
	for (BasicBlock &b : f)
		if (isa<InvokeInst>(b.getTerminator()) ||
		    any_of(b, [&](const Instruction &i) { return may_open(i, quiet); }))
			opens.insert(&b);
}

// Blocks of which copies are of use: a gate is come to before anything that may open.
void Editions::need_find()
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (BasicBlock &b : f) {
			if (opens.count(&b) || needs.count(&b))
				continue;
			if (is_gate(&b) || any_of(successors(&b), [&](const BasicBlock *next) {
				return needs.count(next); }))
				changed = needs.insert(&b).second;
		}
	}
}

// A gate leads to where one is open first, and then to where none is.
State Editions::behind(const Place &p, unsigned successor) const
{
	State now = opens.count(p.first) ? unknown : p.second;

	if (is_gate(p.first))
		now = successor ? closed : open;
	return needs.count(p.first->getTerminator()->getSuccessor(successor)) ? now : unknown;
}

bool Editions::leads(const Place &p, unsigned successor) const
{
	if (!is_gate(p.first) || p.second == unknown)
		return true;
	return (p.second == closed) == (successor == 1);
}

// Whether there is a gate that need not ask.
bool Editions::find()
{
	Place first{&f.getEntryBlock(), unknown};
	bool any = false;

	need_find();
	order.push_back(first);
	copies[first] = first.first;
	for (size_t n = 0; n < order.size(); n++) {
		Place p = order[n];
		any |= p.second != unknown && is_gate(p.first);
		for (unsigned i = 0; i < p.first->getTerminator()->getNumSuccessors(); i++) {
			Place next{p.first->getTerminator()->getSuccessor(i), behind(p, i)};
			if (leads(p, i) && copies.try_emplace(next, next.first).second)
				order.push_back(next);
		}
	}
	return any;
}

bool Editions::has_copy(BasicBlock *b) const
{
	return copies.count({b, closed}) || copies.count({b, open});
}

// Elsewhere, what a variable was is no longer there to be read.
static void debug_forget(Instruction &i)
{
	SmallVector<DbgVariableIntrinsic *, 4> calls;
	SmallVector<DbgVariableRecord *, 4> records;

	findDbgUsers(calls, &i, &records);
	for (DbgVariableIntrinsic *call : calls)
		if (call->getParent() != i.getParent())
			call->setKillLocation();
	for (DbgVariableRecord *record : records)
		if (record->getParent() != i.getParent())
			record->setKillLocation();
}

// The values of a block with copies that others use.
void Editions::keep(BasicBlock &b)
{
	std::vector<Instruction *> out;

	for (Instruction &i : b)
		if (i.isUsedOutsideOfBlock(&b))
			out.push_back(&i);
	for (Instruction *i : out) {
		debug_forget(*i);
		kept.push_back(DemoteRegToStack(*i));
	}
}

// Those that ways meet in of which there are several now.
void Editions::keep_phis()
{
	std::vector<PHINode *> out;

	for (BasicBlock &b : f)
		if (has_copy(&b) || any_of(predecessors(&b), [&](BasicBlock *before) {
			return has_copy(before); }))
			for (PHINode &phi : b.phis())
				out.push_back(&phi);
	for (PHINode *phi : out)
		if (AllocaInst *place = DemotePHIToStack(phi))
			kept.push_back(place);
}

void Editions::copy_all()
{
	static const char *const name[] = {"", ".closed", ".open"};

	for (State now : {closed, open}) {
		SmallVector<BasicBlock *, 16> blocks;
		ValueToValueMapTy values;
		for (const Place &p : order)
			if (p.second == now) {
				copies[p] = CloneBasicBlock(p.first, values, name[now], &f);
				blocks.push_back(copies[p]);
			}
		remapInstructionsInBlocks(blocks, values);
	}
}

// A block's end goes where the state is the one that holds there.
void Editions::lead(const Place &p, BasicBlock *block)
{
	Instruction *end = block->getTerminator();
	bool known = is_gate(p.first) && p.second != unknown;

	if (!known) {
		for (unsigned i = 0; i < end->getNumSuccessors(); i++)
			end->setSuccessor(i, at({end->getSuccessor(i), behind(p, i)}));
		return;
	}
	unsigned i = p.second == closed;
	Value *condition = cast<BranchInst>(end)->getCondition();
	BranchInst::Create(at({end->getSuccessor(i), behind(p, i)}), end->getIterator());
	end->eraseFromParent();
	RecursivelyDeleteTriviallyDeadInstructions(condition);
}

// The originals come last: they say where the others lead to.
void Editions::make(Count &count)
{
	for (const Place &p : order)
		count.editions += p.second == closed && is_gate(p.first);
	keep_phis();
	for (BasicBlock &b : f)
		if (has_copy(&b))
			keep(b);
	copy_all();
	for (State now : {open, closed, unknown})
		for (const Place &p : order)
			if (p.second == now)
				lead(p, at(p));
	removeUnreachableBlocks(f);
	DominatorTree dominators(f);
	PromoteMemToReg(kept, dominators);
}

// A gate before a loop that leads to no other is none.
static void tidy(Function &f)
{
	for (BasicBlock &b : f)
		ConstantFoldTerminator(&b, true);
	for (auto next = f.begin(); next != f.end();)
		MergeBlockIntoPredecessor(&*next++);
}

void editions(Function &f, const Gates &gates, const Quiet &quiet, Count &count)
{
	if (gates.empty())
		return;
	if (editions_can(f)) {
		Editions of(f, gates, quiet);
		if (of.find())
			of.make(count);
	}
	tidy(f);
	count.gates += count_if(gates, [](const WeakVH &gate) { return gate != nullptr; });
}
