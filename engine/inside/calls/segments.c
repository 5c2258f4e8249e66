/*
 * System V segments of a follower.  It must not touch the leader's: each segment is a memfd
 * of its own, made with the shmget, so that children have it, too, which attach it later.
 * What the leader's shmat and shmdt answer counts, where they fail, too; where it attaches,
 * so do we, if the program leaves the place to the kernel.
 *
 * A segment that was removed is kept while there is room: who has it attached may attach it
 * again.  Of one that another process has made the kernel knows the size; asking changes
 * nothing.  What it holds is not known.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/ipc.h>
#include <linux/mman.h>
#include <linux/shm.h>

#include "engine/core/must.h"
#include "engine/inside/calls/segments.h"
#include "engine/inside/calls/special.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/latch.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/rules/rules_object.h"

/*
 * Limit (files): System V segments that a follower has copies of. Beyond: it is dropped as
 * *unsupported*.
 */
#define SEGMENTS	64
/*
 * Limit (files): places where System V segments are attached. Beyond: shmdt
 * of a further one leaves a follower's mapping.
 */
#define PLACES		256
#define MEMFD_CLOEXEC	1
#define PAGE		4096ull

static struct segment {
	int32_t id;		/* + 1; 0: free */
	int32_t fd;
	bool removed;
} segments[SEGMENTS];

static struct place { uint64_t at, size; } places[PLACES];	/* at 0: free */

static struct segment *segment_find(int32_t id)
{
	for (int i = 0; i < SEGMENTS; i++)
		if (segments[i].id == id + 1)
			return &segments[i];
	return NULL;
}

static struct segment *segment_room(void)
{
	struct segment *removed = NULL;

	for (int i = 0; i < SEGMENTS; i++) {
		if (!segments[i].id)
			return &segments[i];
		if (segments[i].removed)
			removed = &segments[i];
	}
	if (removed)
		OWN1(__NR_close, removed->fd);
	return removed;
}

static uint64_t size_known(int32_t id)
{
	struct shmid64_ds ds = { 0 };

	return OWN3(__NR_shmctl, id, IPC_STAT, &ds) < 0 ? 0 : ds.shm_segsz;
}

static struct segment *segment_make(int32_t id, uint64_t size)
{
	struct segment *s = segment_room();
	uint64_t known = size_known(id);
	long fd = s ? OWN2(__NR_memfd_create, "segment", MEMFD_CLOEXEC) : -ENOSPC;

	if (fd >= 0)
		fd = number_high(fd);
	if (fd < 0)
		return NULL;
	MUST(latch_is_held(LATCH_segments) && (!s->id || s->removed));
	size = known > size ? known : size;
	OWN2(__NR_ftruncate, fd, (size + PAGE - 1) & ~(PAGE - 1));
	*s = (struct segment){ id + 1, (int32_t)fd, false };
	return s;
}

void shm_made(const uint64_t *args, long id)
{
	latch_take(LATCH_segments);
	if (!segment_find((int32_t)id))
		segment_make((int32_t)id, args[1]);
	latch_give(LATCH_segments);
}

void shm_changed(const uint64_t *args)
{
	struct segment *s;

	if ((uint32_t)args[1] != IPC_RMID)
		return;
	latch_take(LATCH_segments);
	s = segment_find((int32_t)args[0]);
	if (s)
		s->removed = true;
	latch_give(LATCH_segments);
}

static uint64_t size_of(const struct segment *s)
{
	long end = OWN3(__NR_lseek, s->fd, 0, 2 /* SEEK_END */);

	return end < 0 ? 0 : (uint64_t)end;
}

static void attached_note(uint64_t at, uint64_t size)
{
	MUST(latch_is_held(LATCH_segments) && at);	/* a row at 0 is free */
	for (int i = 0; i < PLACES; i++)
		if (!places[i].at) {
			places[i] = (struct place){ at, size };
			return;
		}
}

/* How large it was; 0: it was not attached so. */
static uint64_t attached_forget(uint64_t at)
{
	uint64_t size = 0;

	latch_take(LATCH_segments);
	for (int i = 0; at && !size && i < PLACES; i++)
		if (places[i].at == at) {
			size = places[i].size;
			places[i].at = 0;
		}
	latch_give(LATCH_segments);
	return size;
}

static long segment_attach(struct thread *t, const struct segment *s, uint64_t leaders)
{
	uint64_t how = t->frame.rdx, at = t->frame.rsi, flags = MAP_SHARED, prot = PROT_READ;
	struct frame was = t->frame;
	long result;

	if (at)
		flags |= how & SHM_REMAP ? MAP_FIXED : MAP_FIXED_NOREPLACE;
	prot |= (how & SHM_RDONLY ? 0 : PROT_WRITE) | (how & SHM_EXEC ? PROT_EXEC : 0);
	t->frame.rdi = at ? at & ~(PAGE - 1) : leaders;
	t->frame.rsi = size_of(s);
	t->frame.rdx = prot;
	t->frame.r10 = flags;
	t->frame.r8 = (uint64_t)s->fd;
	t->frame.r9 = 0;
	t->frame.rax = __NR_mmap;
	result = serve_special(t, __NR_mmap);
	t->frame = was;
	if (result > 0)
		attached_note((uint64_t)result, size_of(s));
	return result;
}

/* The leader has attached it, there. */
long shm_attach(struct thread *t, uint64_t leaders)
{
	int32_t id = (int32_t)t->frame.rdi;
	struct segment *s;
	long result;

	t->answered = 1;
	latch_take(LATCH_segments);
	s = segment_find(id);
	if (!s)
		s = segment_make(id, 0);
	result = s ? segment_attach(t, s, leaders) : -ENOMEM;
	latch_give(LATCH_segments);
	if (result == -ENOMEM)
		request_ask(t, REQ_VERDICT, VERDICT_UNSUPPORTED, DIFFERS_CALL, 0);
	return result;
}

/* Of what was attached as above, by this version or when it followed; else by the kernel. */
long shm_detach(struct thread *t)
{
	uint64_t size = attached_forget(t->frame.rdi);

	if (!size)
		return t->following ? 0 : call_kernel(t);
	t->answered = 1;
	return OWN2(__NR_munmap, t->frame.rdi, size);
}
