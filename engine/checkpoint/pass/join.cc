// Within a block, and as far as no checkpoint can be opened, a later store's check is made with
// the first one's if its address is known there.  Stores from one base that lie near one another
// become one range, and so do a range of a length that is not known and what is stored at its end.
#include "engine/checkpoint/pass/join.h"
#include "engine/checkpoint/pass/options.h"
#include <map>

using namespace llvm;

// How many regions a joined range may be long: what lies between its stores is saved with it.
static const unsigned join_regions = 2;

// More behind a range of a length that is not known has a check of its own.
static const uint64_t word_most = 8;

static bool known_before(const Value *v, const Instruction *at)
{
	auto *i = dyn_cast<Instruction>(v);

	return !i || i->getParent() != at->getParent() || i->comesBefore(at);
}

// A store right behind a range of a length that is not known: the end of a string.
static bool follows(const Site &range, const Site &site)
{
	auto *end = dyn_cast<GetElementPtrInst>(site.base);

	return range.length && !range.zeros && !range.most && !site.length && end &&
	       end->getNumIndices() == 1 &&
	       end->getSourceElementType()->isIntegerTy(8) &&
	       end->getPointerOperand() == range.pointer && *end->idx_begin() == range.length &&
	       site.offset == (int64_t)range.more && site.size <= word_most;
}

// The pointer is made anew from its base where the check is.
static bool can_join(const Site &site, const Cluster &cluster)
{
	if (any_of(cluster.sites, [&](const Site &s) { return follows(s, site); }))
		return true;
	if (site.length)
		return known_before(site.pointer, cluster.at) &&
		       known_before(site.length, cluster.at);
	return known_before(site.base, cluster.at);
}

static bool lengthen(Site &wide, const Site &site)
{
	Site range = follows(site, wide) ? site : wide;

	if (!follows(wide, site) && !follows(site, wide))
		return false;
	range.more += wide.length ? site.size : wide.size;
	wide = range;
	return true;
}

static bool widen(Site &wide, const Site &site)
{
	if (lengthen(wide, site))
		return true;
	int64_t begin = std::min(wide.offset, site.offset);
	int64_t end = std::max(wide.offset + (int64_t)wide.size, site.offset + (int64_t)site.size);

	if (wide.length || site.length || wide.base != site.base ||
	    uint64_t(end - begin) > join_regions * options().region())
		return false;
	if (site.offset < wide.offset || (site.offset == wide.offset && site.align > wide.align)) {
		wide.pointer = site.pointer;
		wide.align = site.align;
	}
	wide.offset = begin;
	wide.size = end - begin;
	return true;
}

static void put(Cluster &cluster, const Site &site, Count &count)
{
	if (options().joined)
		for (Site &wide : cluster.sites)
			if (widen(wide, site)) {
				count.joined++;
				return;
			}
	cluster.sites.push_back(site);
}

Clusters join(Function &f, const Sites &sites, const Quiet &quiet, Count &count)
{
	std::map<const Instruction *, std::vector<const Site *>> at;
	Clusters clusters;

	for (const Site &s : sites)
		at[s.at].push_back(&s);
	for (BasicBlock &b : f) {
		bool open = false;	// the last cluster can take more
		for (Instruction &i : b) {
			for (const Site *s : at.count(&i) ? at[&i] : std::vector<const Site *>()) {
				if (!open || !options().joined || !can_join(*s, clusters.back()))
					clusters.push_back({&i, {}});
				open = true;
				put(clusters.back(), *s, count);
			}
			open = open && !may_open(i, quiet);
		}
	}
	return clusters;
}
