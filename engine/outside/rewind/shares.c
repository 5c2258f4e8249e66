/*
 * Memory that processes share.  A fork shares it with the leader; a twin's processes must share
 * it with each other alone.  So while all of the leader's processes stand the monitor reads
 * in their maps what they have in common, which is the kernel's word, and makes a file for each
 * such object.  Each process maps them before it is forked, and one of them copies what there
 * is (inside/state/twin_shares.c).
 *
 * What nobody of them may write stays what it is: that is nobody's own.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/abi/request.h"
#include "engine/core/must.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/kernel/shared.h"
#include "engine/outside/rewind/shares.h"

/*
 * Limit (followers): mappings of all of a leader's processes that are of files, or of memory,
 * that several may write. Beyond: it has no twin.
 */
#define SHARES_MOST	1024
/*
 * Limit (followers): bytes of memory that a leader's processes share. Beyond: it has no twin.
 */
#define SHARES_BYTES	(256ull << 20)

/* A file, or memory that is like one. */
struct object {
	dev_t dev;
	ino_t inode;
	char path[256];
	uint64_t end;		/* behind the last byte that somebody has mapped */
	bool written;
	int fd;			/* what the twin has; -1: nothing, or nothing yet */
};

static struct object object[SHARES_MOST];
static unsigned objects;
static struct share { pid_t pid; struct object *of; struct twin_share to; } share[SHARES_MOST];
static unsigned shares;

/* All of the kernel's own rings have one inode. */
static bool is_one(const struct object *o, const struct map *m)
{
	return o->inode == m->inode && o->dev == m->dev && !strcmp(o->path, m->path) &&
	       strncmp(m->path, "anon_inode:", 11) && strncmp(m->path, "/[aio]", 6);
}

static struct object *object_of(const struct map *m)
{
	struct object *o = object;

	while (o < object + objects && !is_one(o, m))
		o++;
	if (o == object + objects) {
		MUST(objects < SHARES_MOST);	/* no more than mappings */
		objects++;
		*o = (struct object){ .dev = m->dev, .inode = m->inode, .fd = -1 };
		memcpy(o->path, m->path, sizeof(o->path));
	}
	return o;
}

static int map_add(pid_t pid, const struct map *m)
{
	uint64_t len = m->end - m->start;
	struct object *o;

	if (shares == SHARES_MOST || shares_of(pid) == TWIN_SHARES)
		return -E2BIG;
	o = object_of(m);
	o->written |= m->write;
	o->end = m->offset + len > o->end ? m->offset + len : o->end;
	share[shares++] = (struct share){ pid, o, {
		.at = m->start, .len = len, .offset = m->offset,
		.prot = (m->read ? PROT_READ : 0u) | (m->write ? PROT_WRITE : 0u) |
			(m->exec ? PROT_EXEC : 0u) } };
	return 0;
}

int shares_look(pid_t pid)
{
	struct maps maps;
	int result = maps_read_shared(pid, &maps);

	/* The session's own is what all versions share. */
	for (size_t i = 0; i < maps.n && !result; i++)
		if (maps.map[i].shared && !shared_is_ours(maps.map[i].dev, maps.map[i].inode))
			result = map_add(pid, &maps.map[i]);
	maps_free(&maps);
	return result;
}

/* Another copies all of it already. */
static bool is_filled(const struct share *s)
{
	for (const struct share *o = share; o < s; o++)
		if (o->of == s->of && o->to.fills && o->to.offset <= s->to.offset &&
		    o->to.offset + o->to.len >= s->to.offset + s->to.len)
			return true;
	return false;
}

static void unwritten_forget(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < shares; i++)
		if (share[i].of->written)
			share[n++] = share[i];
	shares = n;
}

static int object_make(struct object *o)
{
	MUST(o->fd < 0 && o->end);
	o->fd = memfd_create("shared", MFD_CLOEXEC);
	if (o->fd < 0 || ftruncate(o->fd, (off_t)o->end) < 0)
		return -errno;
	return 0;
}

int shares_make(void)
{
	uint64_t bytes = 0;
	int result = 0;

	unwritten_forget();
	for (unsigned i = 0; i < shares; i++) {
		share[i].to.fills = share[i].to.prot & PROT_READ && !is_filled(&share[i]);
		bytes += share[i].to.fills ? share[i].to.len : 0;
	}
	if (bytes > SHARES_BYTES)
		return -E2BIG;
	for (unsigned i = 0; i < shares && !result; i++)
		if (share[i].of->fd < 0)
			result = object_make(share[i].of);
	return result;
}

uint32_t shares_of(pid_t pid)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < shares; i++)
		n += share[i].pid == pid;
	return n;
}

int shares_send(pid_t pid, int socket)
{
	int result = 0;

	for (unsigned i = 0; i < shares && !result; i++) {
		MUST(share[i].of->fd >= 0);
		if (share[i].pid == pid)
			result = descriptors_send(socket, &share[i].of->fd, 1, &share[i].to,
						  sizeof(share[i].to));
	}
	return result;
}

void shares_end(void)
{
	for (unsigned i = 0; i < objects; i++)
		if (object[i].fd >= 0)
			close(object[i].fd);
	objects = shares = 0;
}
