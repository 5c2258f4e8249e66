/*
 * /proc/PID/maps, and where there is room between.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "engine/abi/boot.h"
#include "engine/core/must.h"
#include "engine/outside/patch/shelf.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/session/reach.h"

#define REACH		0x7ff00000ull	/* a bit less than 2 GiB */
#define LOWEST		0x10000ull	/* vm.mmap_min_addr as Debian has it */
#define GUARD		0x10000ull	/* keep off the neighbours, stacks above all */

/* A number in hexadecimal, and the character behind it. */
static const char *hex_parse(const char *at, uint64_t *out)
{
	for (*out = 0;; at++) {
		unsigned digit = *at >= '0' && *at <= '9' ? (unsigned)(*at - '0') :
				 *at >= 'a' && *at <= 'f' ? (unsigned)(*at - 'a' + 10) : 16;

		if (digit > 15)
			return *at ? at + 1 : at;
		*out = *out << 4 | digit;
	}
}

/* What the kernel says of it, and what it stands for. */
static void map_note(struct map *m)
{
	shelf_name_file(m);
	m->link = m->shelved ? 0 : m->start;
	m->link_end = m->shelved ? 0 : m->end;
}

/*
 * In the place of a file's mapping lies what names the first path that the file was seen by,
 * and does not hold the file.  A neighbour that is of the file does, as a library has.
 */
static void map_link(struct map *m, const struct map *beside)
{
	if (!m->shelved || m->link_end || !beside->link_end || beside->inode != m->inode ||
	    beside->dev != m->dev)
		return;
	m->link = beside->link;
	m->link_end = beside->link_end;
	memcpy(m->path, beside->path, sizeof(m->path));
}

/* start-end rwxp offset major:minor inode path; by hand, for each program that starts. */
static int map_parse(const char *line, struct map *m)
{
	uint64_t maj, min;
	const char *prot;
	char *at;

	prot = hex_parse(hex_parse(line, &m->start), &m->end);
	if (strlen(prot) < sizeof("r-xp ") - 1 || prot[4] != ' ')
		return -EINVAL;
	line = hex_parse(hex_parse(hex_parse(prot + 5, &m->offset), &maj), &min);
	m->inode = strtoul(line, &at, 10);
	if (at == line)
		return -EINVAL;
	m->dev = makedev((unsigned)maj, (unsigned)min);
	m->read = prot[0] == 'r';
	m->write = prot[1] == 'w';
	m->exec = prot[2] == 'x';
	m->shared = prot[3] == 's';
	m->shelved = false;
	at += strspn(at, " ");
	snprintf(m->path, sizeof(m->path), "%.*s", (int)strcspn(at, "\n"), at);
	map_note(m);
	return 0;
}

static int map_append(struct maps *m, const struct map *one)
{
	if (m->n % 64 == 0) {
		struct map *more = realloc(m->map, (m->n + 64) * sizeof(*more));

		if (!more)
			return -ENOMEM;
		m->map = more;
	}
	m->map[m->n++] = *one;
	if (m->n > 1) {
		map_link(&m->map[m->n - 1], &m->map[m->n - 2]);
		map_link(&m->map[m->n - 2], &m->map[m->n - 1]);
	}
	return 0;
}

static int maps_read_of(pid_t thread, struct maps *m)
{
	char name[64], *line = NULL;
	size_t cap = 0;
	struct map one;
	int result = 0;
	FILE *f;

	*m = (struct maps){ 0 };
	snprintf(name, sizeof(name), "/proc/%d/maps", thread);
	f = fopen(name, "re");
	if (!f)
		return -errno;
	while (!result && getline(&line, &cap, f) > 0)
		if (!map_parse(line, &one))
			result = map_append(m, &one);
	free(line);
	fclose(f);
	return result ? result : m->n ? 0 : -ESRCH;
}

/* A thread that has ended has no maps, also where it is the process' first: others have. */
static int all_read(pid_t pid, struct maps *m)
{
	int result = maps_read_of(pid, m);
	const struct dirent *d;
	char name[64];
	DIR *tasks;

	if (result != -ESRCH)
		return result;
	snprintf(name, sizeof(name), "/proc/%d/task", pid);
	tasks = opendir(name);
	while (result == -ESRCH && tasks && (d = readdir(tasks)))
		if (d->d_name[0] != '.')
			result = maps_read_of((pid_t)strtol(d->d_name, NULL, 10), m);
	if (tasks)
		closedir(tasks);
	return result;
}

/* --- a part of them ------------------------------------------------------------------- */

/* The kernel's struct procmap_query, of Linux 6.11. */
struct query {
	uint64_t size, flags, at;
	uint64_t start, end, vma_flags, page, offset, inode;
	uint32_t major, minor;
	uint32_t name_size, id_size;
	uint64_t name, id;
};

_Static_assert(sizeof(struct query) == 104, "the kernel's");

#define PROCMAP_QUERY	_IOWR('f', 17, struct query)
enum query_flags {
	QUERY_READ = 1, QUERY_WRITE = 2, QUERY_EXEC = 4, QUERY_SHARED = 8, QUERY_OR_NEXT = 16
};

/* Of some kind: at the address, or the next one: 0, -ENOENT: none, or why it cannot be asked. */
static int map_at(int maps, uint64_t at, uint64_t kind, struct map *m)
{
	struct query q = { .size = sizeof(q), .flags = QUERY_OR_NEXT | kind, .at = at,
			   .name_size = sizeof(m->path), .name = (uint64_t)(uintptr_t)m->path };

	*m = (struct map){ 0 };
	if (ioctl(maps, PROCMAP_QUERY, &q) < 0)
		return -errno;
	m->start = q.start;
	m->end = q.end;
	m->offset = q.offset;
	m->dev = makedev(q.major, q.minor);
	m->inode = q.inode;
	m->read = q.vma_flags & QUERY_READ;
	m->write = q.vma_flags & QUERY_WRITE;
	m->exec = q.vma_flags & QUERY_EXEC;
	m->shared = q.vma_flags & QUERY_SHARED;
	map_note(m);
	return 0;
}

/* Its neighbours may be no part of what is asked for. */
static void neighbours_ask(int maps, struct map *m)
{
	struct map beside;

	if (m->shelved && !map_at(maps, m->start - 1, 0, &beside))
		map_link(m, &beside);
	if (m->shelved && !m->link_end && !map_at(maps, m->end, 0, &beside))
		map_link(m, &beside);
}

struct part {
	uint64_t start, end, kind;
};

static int part_read(pid_t pid, const struct part *p, struct maps *m)
{
	uint64_t start = p->start, end = p->end;
	char name[64];
	struct map one;
	int fd, result;

	*m = (struct maps){ 0 };
	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (!(result = map_at(fd, start, p->kind, &one)) && one.start < end &&
	       start < one.end) {
		neighbours_ask(fd, &one);
		result = map_append(m, &one);
		start = one.end;
		if (result || start >= end)
			break;
	}
	close(fd);
	if (!result || result == -ENOENT)
		return 0;
	maps_free(m);		/* an older kernel, or a name that is too long */
	return all_read(pid, m);
}

/* --- whoever holds the maps may hold them for ever ------------------------------------- */

struct reading {
	pid_t pid;
	struct part part;	/* without an end: all */
	struct maps maps;
};

static long reading_do(void *room)
{
	struct reading *r = room;

	return r->part.end ? part_read(r->pid, &r->part, &r->maps) :
			     all_read(r->pid, &r->maps);
}

static void reading_late(void *room, long result)
{
	(void)result;
	maps_free(&((struct reading *)room)->maps);
}

static int reading(struct reading want, struct maps *m)
{
	struct reading *r;
	int result;

	*m = (struct maps){ 0 };
	if (reach_in_place(want.pid)) {
		result = (int)reading_do(&want);
		*m = want.maps;
		return result;
	}
	r = reach_room(want.pid, sizeof(*r));
	if (!r)
		return -ETIME;
	*r = want;
	result = (int)reach_do(reading_do, reading_late);
	if (result != -ETIME)
		*m = r->maps;
	return result;
}

int maps_read(pid_t pid, struct maps *m)
{
	return reading((struct reading){ .pid = pid }, m);
}

int maps_read_part(pid_t pid, uint64_t start, uint64_t end, struct maps *m)
{
	return reading((struct reading){ pid, .part = { start, end, 0 } }, m);
}

int maps_read_shared(pid_t pid, struct maps *m)
{
	return reading((struct reading){ pid, .part = { 0, UINT64_MAX, QUERY_SHARED } }, m);
}

void maps_free(struct maps *m)
{
	free(m->map);
	*m = (struct maps){ 0 };
}

void maps_place(pid_t pid, uint64_t place, char *words, size_t size)
{
	struct maps maps;

	snprintf(words, size, "at 0x%lx", place);
	if (maps_read_part(pid, place, place + 1, &maps))
		maps.n = 0;
	for (size_t i = 0; i < maps.n; i++) {
		const struct map *at = &maps.map[i];
		const char *base = strrchr(at->path, '/');

		if (place >= at->start && place < at->end && base)
			snprintf(words, size, "at %.80s+0x%lx", base + 1,
				 at->offset + place - at->start);
	}
	maps_free(&maps);
}

static dev_t memory_device(void)
{
	static dev_t device;
	struct stat st;
	int fd = device ? -1 : memfd_create("mve-device", MFD_CLOEXEC);

	if (fd >= 0 && !fstat(fd, &st))
		device = st.st_dev;
	if (fd >= 0)
		close(fd);
	return device;
}

bool map_is_memory(const struct map *m, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/memfd:%s (deleted)", name);
	return m->inode && !strcmp(m->path, path) && m->dev == memory_device();
}

bool map_is_insides(const struct map *m)
{
	return map_is_memory(m, MAP_INSIDE);
}

bool maps_held(const struct maps *m)
{
	bool code = false, area = false;

	for (size_t i = 0; i < m->n; i++) {
		const struct map *at = &m->map[i];

		code |= at->exec && !at->shared && map_is_insides(at);
		area |= at->shared && map_is_memory(at, MAP_AREA);
	}
	return code && area;
}

bool maps_own(const struct maps *m, const struct map *at)
{
	MUST(at->start < at->end);
	for (size_t i = 0; i < m->n; i++) {
		const struct map *in = &m->map[i];

		if (map_is_insides(in) && at->start < in->end - OWN_BELOW &&
		    at->end > in->start - OWN_BELOW - OWN_SPAN)
			return true;
	}
	return false;
}

uint64_t maps_hole_near(const struct maps *m, uint64_t start, uint64_t end, uint64_t len)
{
	uint64_t low = end > REACH ? end - REACH : LOWEST, best = 0;
	uint64_t hole = LOWEST;

	/* Holes below first: what is above a program is its heap's. */
	for (size_t i = 0; i < m->n && m->map[i].start <= start; i++) {
		uint64_t top = m->map[i].start;
		uint64_t from = hole > low ? hole : low;

		if (top > GUARD && top - GUARD >= from + len)
			best = (top - GUARD - len) & ~0xfffull;
		else if (top >= from + len + 0x1000)
			best = (top - len) & ~0xfffull;
		hole = m->map[i].end;
	}
	if (best >= low)
		return best;
	for (size_t i = 0; i + 1 < m->n; i++) {
		uint64_t from = m->map[i].end + GUARD;

		if (m->map[i].start < start || from + len > m->map[i + 1].start)
			continue;
		return from + len - start < REACH ? from : 0;
	}
	return 0;
}
