/*
 * Plans that this process has already made, by the identity of the file: device,
 * inode, size and time of change.  A file rewritten in place gets a new time,
 * a replaced one a new inode.  Behind it are the plans on disk (plan_store.c).
 * That a file could not be planned is kept in the same way.
 *
 * The cache holds one reference to each of its plans, the callers hold theirs;
 * a plan that has been pushed out lives until its last user is done.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>
#include "engine/core/must.h"
#include "engine/outside/plan/plan_parts.h"

#define CACHE_MAX	256

struct entry {
	struct stat st;
	struct plan *plan;	/* NULL: none could be made, */
	int error;		/* for this */
};

static struct {
	pthread_mutex_t lock;
	struct entry entries[CACHE_MAX];
	unsigned n, oldest;
} cache = { .lock = PTHREAD_MUTEX_INITIALIZER };

bool plan_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int plan_known(const struct stat *st, struct plan **out)
{
	int result = -EAGAIN;

	pthread_mutex_lock(&cache.lock);
	for (unsigned i = 0; result == -EAGAIN && i < cache.n; i++) {
		const struct entry *e = &cache.entries[i];

		if (!plan_same_file(&e->st, st))
			continue;
		*out = e->plan;
		result = e->error;
	}
	if (!result)
		plan_ref(*out);
	pthread_mutex_unlock(&cache.lock);
	return result;
}

void plan_learn(const struct stat *st, struct plan *p, int error)
{
	struct entry *e;

	/* -EAGAIN would mean that nobody knows: whoever asks would wait for ever. */
	MUST(!p == (error != 0) && error <= 0 && error != -EAGAIN);
	if (p)
		plan_ref(p);
	pthread_mutex_lock(&cache.lock);
	if (cache.n < CACHE_MAX) {
		e = &cache.entries[cache.n++];
	} else {
		e = &cache.entries[cache.oldest++ % CACHE_MAX];
		plan_free(e->plan);
	}
	*e = (struct entry){ *st, p, error };
	pthread_mutex_unlock(&cache.lock);
}

static struct plan *load(int fd, const struct stat *st)
{
	struct plan *p = NULL;
	struct elf_view v;

	if (elf_open_file(&v, fd, ELF_HEADERS))
		return NULL;
	if (v.build_id_len)
		p = store_load(fd, (uint64_t)st->st_size, &v);
	elf_close(&v);
	return p;
}

/*
 * A plan on disk is found by its file's build id, which whoever writes a file can copy from
 * another: a file of another user, with most calls taken out, would have those of the real one
 * go unseen.
 */
static bool is_trusted(const struct stat *st)
{
	return (!st->st_uid || st->st_uid == geteuid()) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

int plan_cached(int fd, struct plan **out)
{
	struct stat st, after;
	int err;

	err = fstat(fd, &st) ? -errno : plan_known(&st, out);
	if (err != -EAGAIN)
		return err;
	*out = load(fd, &st);
	if (!*out) {
		err = plan_file(fd, out);
		if (err)
			return err;
		if (fstat(fd, &after) || !plan_same_file(&st, &after))
			return 0;	/* it changed meanwhile: do not keep this */
		if ((*out)->build_id_len && is_trusted(&st))
			store_save(fd, (uint64_t)st.st_size, *out);
	}
	plan_learn(&st, *out, 0);
	return 0;
}
