/*
 * Memory that processes share, in a twin: a fork shares it with the leader.  The monitor has
 * made files for it (outside/rewind/shares.c), the same for all processes of the twin.  While the
 * leader stands each of its processes maps them beside its own memory, and where it is told to
 * copies what stands there; the copy moves them to their places.
 *
 * The kernel copies: behind the end of a file that was cut there is nothing to be had.
 */
#include <asm/unistd.h>
#include <linux/mman.h>

#include "engine/abi/request.h"
#include "engine/core/must.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/realm/sections.h"
#include "engine/inside/state/twin_shares.h"

static struct { struct twin_share of; uint64_t copy; } share[TWIN_SHARES];
static uint32_t shares;

static void fill(const struct twin_share *s, uint64_t copy)
{
	struct { uint64_t base, len; } here = { copy, s->len }, there = { s->at, s->len };

	MUST(copy && s->len);
	OWN6(__NR_process_vm_readv, thread_self()->tid, &here, 1, &there, 1, 0);
}

static bool share_take(int socket)
{
	struct twin_share *s = &share[shares].of;
	int32_t fd;
	long at;

	if (!descriptors_receive(socket, &fd, 1, s, sizeof(*s)))
		return false;
	at = OWN6(__NR_mmap, 0, s->len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
		  s->offset);
	OWN1(__NR_close, fd);
	if (at < 0)
		return false;
	share[shares++].copy = (uint64_t)at;
	if (s->fills)
		fill(s, (uint64_t)at);
	return true;
}

bool twin_shares_take(int socket, uint32_t n)
{
	bool all = n <= TWIN_SHARES;

	shares = 0;
	while (all && shares < n)
		all = share_take(socket);
	return all;
}

void twin_shares_drop(void)
{
	for (uint32_t i = 0; i < shares; i++)
		OWN2(__NR_munmap, share[i].copy, share[i].of.len);
	shares = 0;
}

static bool share_move(const struct twin_share *s, uint64_t copy)
{
	return OWN6(__NR_mremap, copy, s->len, s->len, MREMAP_MAYMOVE | MREMAP_FIXED, s->at, 0) ==
		       (long)s->at &&
	       !OWN3(__NR_mprotect, s->at, s->len, s->prot);
}

bool twin_shares_move(void)
{
	bool all = true;

	for (uint32_t i = 0; i < shares; i++)
		all &= share_move(&share[i].of, share[i].copy);
	shares = 0;
	return all;
}
