/*
 * Plans that this process has already made, by the identity of the file: device,
 * inode, size and time of change.  A file rewritten in place gets a new time,
 * a replaced one a new inode.  Behind it are the plans on disk (plan_store.c).
 *
 * The cache holds one reference to each of its plans, the callers hold theirs;
 * a plan that has been pushed out lives until its last user is done.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include "engine/outside/plan/plan_parts.h"

#define CACHE_MAX	256

struct entry {
	struct stat st;
	struct plan *plan;
};

static struct {
	pthread_mutex_t lock;
	struct entry entries[CACHE_MAX];
	unsigned n, oldest;
} cache = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static struct plan *look_up(const struct stat *st)
{
	struct plan *p = NULL;

	pthread_mutex_lock(&cache.lock);
	for (unsigned i = 0; !p && i < cache.n; i++)
		if (same_file(&cache.entries[i].st, st))
			p = cache.entries[i].plan;
	if (p)
		plan_ref(p);
	pthread_mutex_unlock(&cache.lock);
	return p;
}

static void remember(const struct stat *st, struct plan *p)
{
	struct entry *e;

	plan_ref(p);
	pthread_mutex_lock(&cache.lock);
	if (cache.n < CACHE_MAX) {
		e = &cache.entries[cache.n++];
	} else {
		e = &cache.entries[cache.oldest++ % CACHE_MAX];
		plan_free(e->plan);
	}
	e->st = *st;
	e->plan = p;
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

int plan_cached(int fd, struct plan **out)
{
	struct stat st, after;
	int err;

	if (fstat(fd, &st))
		return -errno;
	*out = look_up(&st);
	if (*out)
		return 0;
	*out = load(fd, &st);
	if (!*out) {
		err = plan_file(fd, out);
		if (err)
			return err;
		if (fstat(fd, &after) || !same_file(&st, &after))
			return 0;	/* it changed meanwhile: do not keep this */
		if ((*out)->build_id_len)
			store_save(fd, (uint64_t)st.st_size, *out);
	}
	remember(&st, *out);
	return 0;
}
