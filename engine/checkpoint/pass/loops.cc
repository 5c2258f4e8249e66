// Only loops without anything that may open a checkpoint are looked at.  A range is taken where it
// is exact: the loop is left at its end only, and the store is made in each turn; so no byte is
// read that the loop would not have written.
#include "engine/checkpoint/pass/loops.h"
#include "engine/checkpoint/pass/options.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace {
// What is known of a function's loops; made anew when they are changed.
struct Analyses {
	TargetLibraryInfoImpl known;
	TargetLibraryInfo library;
	AssumptionCache assumptions;
	DominatorTree dominators;
	LoopInfo loops;
	ScalarEvolution evolution;

	explicit Analyses(Function &f)
		: known(Triple(f.getParent()->getTargetTriple())), library(known, &f),
		  assumptions(f), dominators(f), loops(dominators),
		  evolution(f, library, assumptions, dominators, loops) {}
};
}

void loops_prepare(Function &f)
{
	Analyses a(f);

	for (Loop *loop : a.loops)
		simplifyLoop(loop, &a.dominators, &a.loops, &a.evolution, &a.assumptions, nullptr,
			     false);
	for (Loop *loop : a.loops)
		formLCSSARecursively(*loop, a.dominators, &a.loops, &a.evolution);
}

static bool opens(const Loop &loop, const Quiet &quiet)
{
	for (const BasicBlock *b : loop.blocks())
		for (const Instruction &i : *b)
			if (may_open(i, quiet))
				return true;
	return false;
}

// It is left after a whole turn only, and the site is come to in each.
static bool each_turn(const Loop &loop, const Site &s, const DominatorTree &dominators)
{
	BasicBlock *latch = loop.getLoopLatch();

	return latch && loop.getExitingBlock() == latch && loop.getLoopPreheader() &&
	       dominators.dominates(s.at->getParent(), latch);
}

// First byte and number of bytes of what a site writes in all turns; null: not known.
static bool range(const Loop &loop, const Site &s, ScalarEvolution &se, const SCEV *&begin,
		  const SCEV *&length)
{
	const SCEV *at = se.getSCEV(s.pointer), *turns = se.getBackedgeTakenCount(&loop);
	Type *word = Type::getInt64Ty(s.at->getContext());

	if (se.isLoopInvariant(at, &loop)) {
		begin = at;
		length = se.getConstant(word, s.size);
		return true;
	}
	auto *steps = dyn_cast<SCEVAddRecExpr>(at);
	if (isa<SCEVCouldNotCompute>(turns) || !steps || steps->getLoop() != &loop ||
	    !steps->isAffine())
		return false;
	auto *step = dyn_cast<SCEVConstant>(steps->getStepRecurrence(se));
	if (!step || step->getAPInt().abs().ugt(std::max(2 * s.size, options().region())))
		return false;
	const SCEV *way = se.getMulExpr(se.getTruncateOrZeroExtend(turns, word),
					se.getConstant(step->getAPInt().abs()));
	begin = steps->getStart();
	if (step->getAPInt().isNegative())
		begin = se.getMinusSCEV(se.getAddExpr(begin, se.getConstant(word, 0)), way);
	length = se.getAddExpr(way, se.getConstant(word, s.size));
	return true;
}

// The site's check is moved before the loop.
static bool hoist(Loop &loop, Site &s, Analyses &a)
{
	const DataLayout &dl = s.at->getModule()->getDataLayout();
	Instruction *before = loop.getLoopPreheader()->getTerminator();
	SCEVExpander expander(a.evolution, dl, "checkpoint");
	const SCEV *begin, *length;

	if (s.length || !range(loop, s, a.evolution, begin, length) ||
	    !begin->getType()->isPointerTy() || !expander.isSafeToExpandAt(begin, before) ||
	    !expander.isSafeToExpandAt(length, before))
		return false;
	s.pointer = expander.expandCodeFor(begin, begin->getType(), before);
	Value *bytes = expander.expandCodeFor(length, length->getType(), before);
	s.at = before;
	auto *known = dyn_cast<ConstantInt>(bytes);
	s.size = known ? known->getZExtValue() : 0;
	s.length = known ? nullptr : bytes;
	site_resolve(s);
	return true;
}

void loops_range(Function &f, Sites &sites, const Quiet &quiet, Count &count)
{
	Analyses a(f);
	DenseMap<const Loop *, bool> closed;

	if (!options().loops)
		return;
	for (Loop *loop : a.loops.getLoopsInPreorder())
		closed[loop] = !opens(*loop, quiet);
	for (Site &s : sites) {
		Loop *loop = a.loops.getLoopFor(s.at->getParent());
		bool moved = false;
		while (loop && closed[loop] && each_turn(*loop, s, a.dominators) &&
		       hoist(*loop, s, a)) {
			moved = true;
			loop = loop->getParentLoop();
		}
		count.loop += moved;
	}
}

static bool has_sites(const Loop &loop, const Sites &sites)
{
	return any_of(sites, [&](const Site &s) { return loop.contains(s.at); });
}

// The outermost ones that no checkpoint is opened in: where they are come to.
static void closed_loops(const Loop &loop, const Sites &sites, const Quiet &quiet,
			 std::vector<Instruction *> &begin)
{
	BasicBlock *before = loop.getLoopPreheader();

	if (!has_sites(loop, sites))
		return;
	if (before && !opens(loop, quiet)) {
		begin.push_back(before->getTerminator());
		return;
	}
	for (const Loop *inner : loop)
		closed_loops(*inner, sites, quiet, begin);
}

void loops_gates(Function &f, const Sites &sites, const Quiet &quiet, Gates &gates)
{
	std::vector<Instruction *> begin;
	Analyses a(f);

	if (sites.empty() || !editions_can(f))
		return;
	for (const Loop *loop : a.loops)
		closed_loops(*loop, sites, quiet, begin);
	for (Instruction *at : begin)
		emit_gate(at, gates);
}
