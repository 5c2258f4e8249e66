/*
 * Mappings of files in a follower, which has none of the leader's descriptors: the file is
 * opened again by its path, or a mirror stands for it.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/mman.h>

#include "engine/core/must.h"
#include "engine/inside/calls/special.h"
#include "engine/inside/fd/files.h"
#include "engine/inside/fd/mirror.h"
#include "engine/inside/fd/places.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/record/lead.h"
#include "engine/inside/replay/follow_mmap.h"
#include "engine/inside/rules/opened.h"

/*
 * The mapping, of a descriptor of ours and with these flags; where the program leaves the
 * place to the kernel, the leader's: that of a file depends on its file system.
 */
static long mmap_as(struct thread *t, long fd, uint64_t at, uint64_t flags)
{
	struct frame was = t->frame;
	long result;

	MUST(fd >= 0 || flags & MAP_ANONYMOUS);

	t->frame.r8 = (uint64_t)fd;
	t->frame.r10 = flags;
	if (!t->frame.rdi)
		t->frame.rdi = at;
	if (flags & MAP_ANONYMOUS)
		t->frame.r9 = 0;
	result = serve_special(t, __NR_mmap);
	was.rax = t->frame.rax;
	t->frame = was;
	return result;
}

/* By the path that the leader opened; what is shared and written becomes a copy. */
static long mmap_path(struct thread *t, const struct file *f, uint64_t at)
{
	uint64_t flags = t->frame.r10;
	long fd = f && f->known ? file_open(f) : -EBADF, result;

	if ((flags & MAP_TYPE) != MAP_PRIVATE && t->frame.rdx & PROT_WRITE)
		flags = (flags & ~(uint64_t)MAP_TYPE) | MAP_PRIVATE;
	if (fd < 0)	/* at least it is there */
		flags |= MAP_ANONYMOUS;
	result = mmap_as(t, fd, at, flags);
	if (fd >= 0)
		OWN1(__NR_close, fd);
	return result;
}

/* A mapping of a descriptor that only the leader has. */
static long mmap_again(struct thread *t, int32_t fd)
{
	int64_t leaders = 0;
	uint64_t at = 0;
	int32_t mirror;

	switch (mirror_asked(t, fd, &leaders, &at, &mirror)) {
	case MIRROR_LEADS:
		return lead_call(t, __NR_mmap);
	case FILE_ZERO:
		return mmap_as(t, -1, at, t->frame.r10 | MAP_ANONYMOUS);
	case FILE_TOLD:
		return mmap_as(t, mirror, at, t->frame.r10);
	case FILE_OTHER:
		request_ask(t, REQ_VERDICT, VERDICT_UNSUPPORTED, DIFFERS_CALL, 0);
		break;
	case FILE_LARGE:
		mirror_lost(t, fd);
		break;
	}
	if (leaders < 0) {
		t->answered = 1;
		return leaders;
	}
	return mmap_path(t, file_row(fd), at);
}

long follow_mmap(struct thread *t)
{
	if (t->frame.r10 & MAP_ANONYMOUS || (int32_t)t->frame.r8 < 0 ||
	    rules_opened((uint32_t)t->frame.r8))
		return serve_special(t, __NR_mmap);
	return mmap_again(t, (int32_t)t->frame.r8);
}
