/*
 * Data of epoll registrations.  The kernel has them, no variable does: where they are the address
 * of something that is made anew, or of a variable, the new build is to be given the new one.
 *
 * Which there are is read when all threads stand, in the server itself: a twin has none of its
 * descriptors.  The list lies in memory of its own, which no walk over the heap looks at.  In place
 * the kernel is told; in a twin it must not be, since the set is the server's, and mve puts the
 * new data in the place of the kernel's.
 *
 * A number that is no address of what moves stays what it is; what is changed is said.
 */
#include "engine/update/state/epoll.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/update/heap.h"
#include "engine/update/session.h"

/* Limit (live update): registrations of epoll sets. Beyond: the update is refused. */
#define WATCHES_MAX	(1u << 20)
#define PART_SIZE	16384
#define LINE_SIZE	256
#define LEAST_ADDRESS	4096

enum leads { LEADS_NOWHERE, LEADS_ON, LEADS_UNKNOWN };

struct watch {
	int set, fd;
	uint32_t events;
	enum leads leads;
	uint64_t kernels, own, new;	/* the data; own: what the old build reads */
	uint64_t inode;
};

static struct watch *watches;
static size_t nwatches;

/* --- what there is ------------------------------------------------------------ */

/* The number behind a word, from where the last one was found on. */
static bool number_after(const char **at, const char *word, int base, uint64_t *number)
{
	const char *found = strstr(*at, word);
	char *end;

	if (!found)
		return false;
	found += strlen(word);
	*number = strtoull(found, &end, base);
	*at = end;
	return end != found;
}

/* `tfd: 7 events: 19 data: 55d0c0de pos:0 ino:61 sdev:9`, numbers but the first in hexadecimal. */
static bool watch_parse(const char *line, struct watch *w)
{
	uint64_t fd, events;

	if (!number_after(&line, "tfd:", 10, &fd) || !number_after(&line, "events:", 16, &events) ||
	    !number_after(&line, "data:", 16, &w->kernels) ||
	    !number_after(&line, "ino:", 16, &w->inode))
		return false;
	w->fd = (int)fd;
	w->events = (uint32_t)events;
	w->own = w->kernels;
	return true;
}

static bool line_take(int set, const char *line)
{
	struct watch w = { .set = set };

	if (!watch_parse(line, &w))
		return true;
	if (nwatches == WATCHES_MAX)
		return false;
	session_epoll_own(set, w.fd, w.kernels, &w.own);
	watches[nwatches++] = w;
	return true;
}

/* False with errno. */
static bool set_read(int set)
{
	char path[32], part[PART_SIZE], line[LINE_SIZE];
	size_t used = 0;
	bool ok = true;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", set);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (ok && (n = read(fd, part, sizeof(part))) > 0)
		for (ssize_t i = 0; ok && i < n; i++) {
			if (part[i] != '\n') {
				line[used] = part[i];
				used += used < sizeof(line) - 1;
				continue;
			}
			line[used] = 0;
			used = 0;
			ok = line_take(set, line);
		}
	close(fd);
	errno = ok ? errno : ENOSPC;
	return ok && n >= 0;
}

/* What has no file of its own shares one, which the kernel tells faster than a name. */
static bool is_set(int fd, const struct stat *shared)
{
	static const char what[] = "anon_inode:[eventpoll]";
	char path[32], is[sizeof(what)];
	struct stat s;

	if (fstat(fd, &s) || s.st_ino != shared->st_ino || s.st_dev != shared->st_dev)
		return false;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, is, sizeof(is)) == sizeof(what) - 1 &&
		!memcmp(is, what, sizeof(what) - 1);
}

static bool shared_find(struct stat *shared)
{
	int set = epoll_create1(EPOLL_CLOEXEC);
	bool ok = set >= 0 && !fstat(set, shared);

	if (set >= 0)
		close(set);
	return ok;
}

/* All numbers of descriptors are below; 0: it cannot be known. */
static int numbers_end(void)
{
	char part[PART_SIZE];
	const char *at = part;
	uint64_t end = 0;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, part, sizeof(part) - 1) : -1;

	part[n > 0 ? n : 0] = 0;
	if (fd >= 0)
		close(fd);
	return number_after(&at, "FDSize:", 10, &end) ? (int)end : 0;
}

/* By their numbers: a list of names costs more than a look at each of them. */
static bool sets_read(void)
{
	int end = numbers_end();
	struct stat shared;
	bool ok = end > 0 && shared_find(&shared);

	for (int fd = 0; ok && fd < end; fd++)
		ok = !is_set(fd, &shared) || set_read(fd);
	return ok;
}

bool epoll_read(char *why, size_t size)
{
	bool ok;

	epoll_forget();
	watches = mmap(NULL, WATCHES_MAX * sizeof(*watches), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (watches == MAP_FAILED)
		watches = NULL;
	ok = watches && sets_read();
	if (!ok)
		snprintf(why, size, "the registrations of epoll sets cannot be read: %s",
			strerror(errno));
	return ok;
}

void epoll_forget(void)
{
	if (watches)
		munmap(watches, WATCHES_MAX * sizeof(*watches));
	watches = NULL;
	nwatches = 0;
}

/* --- where they lead ------------------------------------------------------------ */

static enum leads leads_where(struct migration *m, const struct watch *w)
{
	const char *at = (const char *)w->own;
	const struct object *o;
	size_t size;
	char *base;

	if (w->own < LEAST_ADDRESS || (int64_t)w->own < 0)
		return LEADS_NOWHERE;
	if (image_holds(m->old, at))
		return (m->x->code_only ? word_moved(m, at) != NULL : variable_at(m, at) != NULL) ?
			LEADS_ON : LEADS_NOWHERE;
	base = m->x->code_only ? NULL : heap_base(at, &size);
	o = base ? object_find(m, base) : NULL;
	if (o)
		return o->pair->moves ? LEADS_ON : LEADS_NOWHERE;
	return base ? LEADS_UNKNOWN : LEADS_NOWHERE;
}

/* Its number is closed, and another leads to what was registered: nobody can change it. */
static bool is_there(const struct watch *w)
{
	struct stat s;

	return fstat(w->fd, &s) == 0 && s.st_ino == w->inode;
}

static bool watch_plan(struct migration *m, struct watch *w)
{
	const struct object *o;
	size_t size;

	w->leads = leads_where(m, w);
	if (m->is_stack((const char *)w->own))
		return wrong(m, "the data of descriptor %d in epoll set %d lead to the stack of a "
			"thread, which begins anew", w->fd, w->set);
	if (w->leads != LEADS_ON)
		return true;
	if (!session_is_twin() && !is_there(w))
		return wrong(m, "the data of descriptor %d in epoll set %d lead to what moves, "
			"and the descriptor is closed", w->fd, w->set);
	if (image_holds(m->old, (const char *)w->own))
		return true;
	o = object_find(m, heap_base((const char *)w->own, &size));
	return place_moved(o->pair, (size_t)((const char *)w->own - o->old)) != XFORM_NONE ||
		wrong(m, "the data of descriptor %d in epoll set %d lead to a field of `%s` "
			"that is gone", w->fd, w->set, o->pair->name);
}

bool epoll_plan(struct migration *m)
{
	for (size_t i = 0; i < nwatches; i++)
		if (!watch_plan(m, &watches[i]))
			return false;
	return true;
}

void epoll_tell(FILE *to)
{
	size_t on = 0, unknown = 0;

	for (size_t i = 0; i < nwatches; i++) {
		on += watches[i].leads == LEADS_ON;
		unknown += watches[i].leads == LEADS_UNKNOWN;
	}
	if (on)
		fprintf(to, "epoll: data of %zu registrations, made anew\n", on);
	if (unknown)
		fprintf(to, "epoll: data of %zu registrations, as they are: they lead to what no "
			"variable leads to\n", unknown);
}

void epoll_fill(struct migration *m)
{
	for (size_t i = 0; i < nwatches; i++) {
		struct watch *w = &watches[i];
		const void *old = (const void *)w->own;

		w->new = w->leads != LEADS_ON ? w->own :
			(uint64_t)(m->x->code_only ? word_moved(m, old) : migrated(m, old));
	}
}

/* --- it is said ------------------------------------------------------------------- */

/* One that wakes a single waiter can only be made anew. */
static bool kernel_told(const struct watch *w)
{
	struct epoll_event e = { .events = w->events, .data.u64 = w->new };

	if (!(w->events & EPOLLEXCLUSIVE))
		return epoll_ctl(w->set, EPOLL_CTL_MOD, w->fd, &e) == 0;
	return epoll_ctl(w->set, EPOLL_CTL_DEL, w->fd, NULL) == 0 &&
		epoll_ctl(w->set, EPOLL_CTL_ADD, w->fd, &e) == 0;
}

bool epoll_set(struct migration *m)
{
	for (size_t i = 0; i < nwatches; i++) {
		const struct watch *w = &watches[i];
		bool told = w->new == w->own || (session_is_twin() ?
			session_epoll_is(w->set, w->fd, w->kernels, w->new) : kernel_told(w));

		if (!told)
			return wrong(m, "the data of descriptor %d in epoll set %d cannot be "
				"changed: %s", w->fd, w->set, strerror(errno));
	}
	return true;
}
