/*
 * Memory that processes share.  A fork shares it with the follower itself, which goes on to
 * change it: so the image has a copy of its own, which is put in its place when it goes on.
 * What it is the kernel says: mirrors of files, memory of the program's, System V's segments,
 * and some of ours; but not the session's, which is what all versions share.
 *
 * The kernel copies, too: behind the end of a file that was cut there is nothing to be had.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/mman.h>

#include "engine/core/must.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/rewind/shared.h"

/*
 * Limit (followers): mappings of a process' memory that others share. Beyond: it keeps no
 * image of itself.
 */
#define SHARED_MOST	128
/*
 * Limit (followers): bytes of them. Beyond: it keeps no image of itself.
 */
#define SHARED_BYTES	(256ull << 20)
#define LINE_MAX	512
#define PERM_WRITE	1
#define PERM_SHARED	3

static struct shared { uint64_t at, len, copy, had; } shared[SHARED_MOST];
static uint32_t shareds;
static uint64_t shared_bytes;

/* Of /proc/self/maps, by lines. */
struct maps_text {
	long fd;
	uint32_t at, have;
	char text[LINE_MAX];
};

static int next_char(struct maps_text *m)
{
	if (m->at == m->have) {
		long n = OWN3(__NR_read, m->fd, m->text, sizeof(m->text));

		m->at = 0;
		m->have = n > 0 ? (uint32_t)n : 0;
	}
	return m->at < m->have ? m->text[m->at++] : -1;
}

/* A number in sixteens, and what stands behind it; -1: there is no more. */
static int number_read(struct maps_text *m, uint64_t *to)
{
	int c;

	for (*to = 0; (c = next_char(m)) >= 0; *to = *to << 4 | (uint64_t)(c & 15))
		if (c >= 'a' && c <= 'f')
			c += 9;
		else if (c < '0' || c > '9')
			break;
	return c;
}

static void line_end(struct maps_text *m)
{
	int c;

	while ((c = next_char(m)) >= 0 && c != '\n')
		;
}

static bool is_within(uint64_t at, uint64_t from, uint64_t len)
{
	return at - from < len;
}

/* By where it lies: a name like its files' names anybody may give. */
static bool is_sessions(uint64_t at)
{
	return is_within(at, boot.area, AREA_ROOM) || is_within(at, boot.brief, BRIEF_ROOM) ||
	       is_within(at, boot.streams, streams_size(streams.conduct->chunks));
}

static bool row_add(uint64_t at, uint64_t len)
{
	if (shareds == SHARED_MOST || shared_bytes + len > SHARED_BYTES)
		return false;
	shared[shareds++] = (struct shared){ at, len, 0, 0 };
	shared_bytes += len;
	return true;
}

/* False: there is too much; *more: another line may follow. */
static bool line_take(struct maps_text *m, bool *more)
{
	uint64_t from, to = 0;
	char perm[4];

	*more = number_read(m, &from) == '-' && number_read(m, &to) == ' ';
	for (uint32_t i = 0; *more && i < sizeof(perm); i++)
		perm[i] = (char)next_char(m);
	line_end(m);
	if (!*more || perm[PERM_WRITE] != 'w' || perm[PERM_SHARED] != 's' || is_sessions(from))
		return true;
	MUST(to > from);
	return row_add(from, to - from);
}

static bool rows_find(void)
{
	struct maps_text m = { .fd = OWN3(__NR_open, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0) };
	bool more = m.fd >= 0, fits = more;

	shareds = 0;
	shared_bytes = 0;
	while (more && fits)
		fits = line_take(&m, &more);
	if (m.fd >= 0)
		OWN1(__NR_close, m.fd);
	return fits;
}

/* How much of it; what lies behind the end of its file nobody has. */
static uint64_t memory_move(long nr, const struct shared *s, uint64_t len)
{
	struct { uint64_t base, len; } here = { s->copy, len }, there = { s->at, len };
	long n = OWN6(nr, thread_self()->tid, &here, 1, &there, 1, 0);

	MUST(s->copy && len <= s->len);
	return n > 0 ? (uint64_t)n : 0;
}

bool shared_keep(void)
{
	bool kept = rows_find();

	for (uint32_t i = 0; i < shareds && kept; i++) {
		long at = own_share(shared[i].len);

		kept = at > 0;
		shared[i].copy = kept ? (uint64_t)at : 0;
		if (kept)
			shared[i].had = memory_move(__NR_process_vm_readv, &shared[i],
						    shared[i].len);
	}
	if (!kept)
		shared_drop();
	return kept;
}

void shared_drop(void)
{
	for (uint32_t i = 0; i < shareds; i++)
		if (shared[i].copy)
			OWN2(__NR_munmap, shared[i].copy, shared[i].len);
	shareds = 0;
}

bool shared_put_back(void)
{
	bool all = true;

	for (uint32_t i = 0; i < shareds; i++)
		all &= memory_move(__NR_process_vm_writev, &shared[i], shared[i].had) ==
		       shared[i].had;
	shared_drop();
	return all;
}
