// The second analysis follows facts forward through the blocks: "these bytes from this base are
// checked".  A fact begins at a site; what may open a checkpoint ends all; the definition of its
// base, come to again by a loop, ends it, too.  At a meeting of ways those hold that hold on each.
// What was zero and is to be zero is not saved (Site::zeros), and of what is perhaps written only
// what is there (Site::most), so nothing is known of these.
//
// What was just allocated is checked as the rest: it may have been somebody's when the checkpoint
// was opened, and have been freed since.
#include "engine/checkpoint/pass/leave.h"
#include "engine/checkpoint/pass/options.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include <algorithm>
#include <map>

using namespace llvm;

static bool on_stack(const Site &site)
{
	SmallVector<const Value *, 4> objects;

	getUnderlyingObjects(site.pointer, objects);
	return all_of(objects, [](const Value *v) { return isa<AllocaInst>(v); });
}

void leave_stack(Sites &sites, Count &count)
{
	if (!options().stack)
		return;
	auto kept = std::remove_if(sites.begin(), sites.end(), on_stack);
	count.stack += sites.end() - kept;
	sites.erase(kept, sites.end());
}

namespace {
struct Fact {
	const Value *base;
	int64_t begin, end;
};

class Facts {
public:
	Facts(Function &f, const Sites &sites, const Quiet &quiet);
	// The fact that a site needs no check for, once those before it are done; null: none.
	const Fact *covers(const Site &site, const BitVector &now) const;
	BitVector begin(const BasicBlock &b) const;
	// What a block's instruction changes; sites are told by their numbers.
	void step(const Instruction &i, BitVector &now) const;

private:
	void add(const Instruction *at, Fact fact);
	BitVector through(const BasicBlock &b) const;

	const Quiet &quiet;
	std::vector<Fact> facts;
	std::map<const Instruction *, SmallVector<unsigned, 2>> made_at;
	std::map<const Value *, SmallVector<unsigned, 4>> of_base;
	std::map<const BasicBlock *, BitVector> out;
};
}

void Facts::add(const Instruction *at, Fact fact)
{
	made_at[at].push_back(facts.size());
	of_base[fact.base].push_back(facts.size());
	facts.push_back(fact);
}

BitVector Facts::begin(const BasicBlock &b) const
{
	BitVector now(facts.size(), !pred_empty(&b));

	for (const BasicBlock *before : predecessors(&b)) {
		auto known = out.find(before);
		if (known != out.end())
			now &= known->second;
	}
	return now;
}

void Facts::step(const Instruction &i, BitVector &now) const
{
	auto defined = of_base.find(&i);
	if (defined != of_base.end())
		for (unsigned n : defined->second)
			now.reset(n);
	if (may_open(i, quiet))
		now.reset();
	auto made = made_at.find(&i);
	if (made != made_at.end())
		for (unsigned n : made->second)
			now.set(n);
}

BitVector Facts::through(const BasicBlock &b) const
{
	BitVector now = begin(b);

	for (const Instruction &i : b)
		step(i, now);
	return now;
}

Facts::Facts(Function &f, const Sites &sites, const Quiet &q) : quiet(q)
{
	bool changed = true;

	if (options().dominated)
		for (const Site &s : sites)
			if (!s.length && s.size && !s.zeros && !s.most)
				add(s.at, {s.base, s.offset, s.offset + (int64_t)s.size});
	ReversePostOrderTraversal<Function *> order(&f);
	while (changed) {
		changed = false;
		for (BasicBlock *b : order) {
			BitVector now = through(*b);
			auto [known, is_new] = out.try_emplace(b, now);
			changed |= is_new || known->second != now;
			known->second = now;
		}
	}
}

const Fact *Facts::covers(const Site &site, const BitVector &now) const
{
	auto found = of_base.find(site.base);

	if (found == of_base.end())
		return nullptr;
	for (unsigned n : found->second) {
		const Fact &fact = facts[n];
		if (!now.test(n))
			continue;
		if (!site.length && fact.begin <= site.offset &&
		    site.offset + (int64_t)site.size <= fact.end)
			return &fact;
	}
	return nullptr;
}

using Leaves = std::vector<bool>;

static void block_leave(const Facts &facts, const BasicBlock &b, const Sites &sites,
			const std::map<const Instruction *, SmallVector<unsigned, 2>> &at,
			Leaves &leaves, Count &count)
{
	BitVector now = facts.begin(b);

	for (const Instruction &i : b) {
		auto here = at.find(&i);
		if (here != at.end())
			for (unsigned n : here->second) {
				const Fact *fact = facts.covers(sites[n], now);
				leaves[n] = fact;
				count.dominated += fact != nullptr;
			}
		facts.step(i, now);
	}
}

void leave_checked(Function &f, Sites &sites, const Quiet &quiet, Count &count)
{
	Facts facts(f, sites, quiet);
	std::map<const Instruction *, SmallVector<unsigned, 2>> at;
	Leaves leaves(sites.size());
	Sites kept;

	for (unsigned n = 0; n < sites.size(); n++)
		at[sites[n].at].push_back(n);
	for (const BasicBlock &b : f)
		block_leave(facts, b, sites, at, leaves, count);
	for (unsigned n = 0; n < sites.size(); n++)
		if (!leaves[n])
			kept.push_back(sites[n]);
	sites = std::move(kept);
}
