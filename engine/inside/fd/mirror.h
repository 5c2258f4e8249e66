/* Files that are mapped and written: each version has a mirror. */
#ifndef MVE_INSIDE_MIRROR_H
#define MVE_INSIDE_MIRROR_H

#include "engine/core/walk.h"
#include "engine/inside/fd/files.h"
#include "engine/inside/gate/thread.h"

/* A leader's mapping of a descriptor; and what a call does to a mapped file. */
void mirror_tell(struct thread *t, const uint64_t args[CALL_ARGS], int64_t result);
void mirror_note(struct thread *t, const struct walk *w);
void mirror_placed(const struct event *e);
/* What the loader opens for itself, and a follower's loader does not find any more. */
void mirror_tell_loaded(struct thread *t, long nr, int64_t fd);
long mirror_loaded(struct thread *t, long nr);
/* The leader's descriptors are here: memfds among them become their mirrors. */
void mirrors_take(struct thread *t);
/* A descriptor was opened by a path; `truncates`: the file is empty now. */
void mirror_opened(struct file *f, bool truncates);
/* The file of this path was cut or made longer. */
void mirror_cut(const struct file *f, int64_t size);
/* Another file may be made under its path. */
void mirror_unlinked(const struct file *f);
/* The mirror has not what the file has: a word for the user, once. */
void mirror_lost(struct thread *t, long fd);
extern uint64_t mirrors_made;

/* Which file it is: what events say, and mirrors are found by. */
static inline uint64_t file_device(const struct statx *st)
{
	return (uint64_t)st->stx_dev_major << 32 | st->stx_dev_minor;
}

static inline uint64_t file_number(const struct statx *st)
{
	return st->stx_ino ^ ((uint64_t)st->stx_btime.tv_sec << 32 ^ st->stx_btime.tv_nsec);
}

/*
 * What stands behind a descriptor that is to be mapped, as the leader says: an enum
 * file_kind, with what mmap answered and where it is, or MIRROR_LEADS.  Of FILE_TOLD, our
 * descriptor.
 */
int mirror_asked(struct thread *t, int32_t fd, int64_t *result, uint64_t *at, int32_t *mirror);

#endif
