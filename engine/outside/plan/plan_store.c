/*
 * Plans on disk, by build id: ${XDG_CACHE_HOME:-~/.cache}/mve/plans/<id>.plan.
 *
 * A wrong plan crashes a server, so a stored one is believed only when
 *  - the file and its folder are the user's own and nobody else may write them,
 *  - it is of this version, for this build id and this size of ELF file, whole,
 *    and every site lies within its bounds,
 *  - the ELF file's bytes around every site are what they were when the plan
 *    was made: a build id survives a binary's being edited by hand.
 * Anything else is no error: the plan is made anew.
 *
 * Raise STORE_VERSION when struct plan_site changes, or when the planner itself
 * changes its mind about what is safe.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/kernel/cache.h"
#include "engine/outside/kernel/folder.h"
#include "engine/outside/plan/plan_parts.h"

#define STORE_MAGIC	"mveplan"
#define PLAN_SUFFIX	".plan"
#define STORE_VERSION	7
#define NAME_ROOM	(2 * PLAN_BUILD_ID_MAX + sizeof(PLAN_SUFFIX))
#define NEAR_BYTES	(NEAR_BEFORE + NEAR_AFTER)

struct store_head {
	char magic[8];
	uint32_t version, n;
	uint64_t file_size;
	uint64_t near_hash;	/* of the ELF file's bytes around the sites */
	uint64_t sites_hash;	/* of the sites that follow */
	uint32_t unknown_pairs;
	uint8_t vsyscall, id_len, go, pad;
	uint8_t id[PLAN_BUILD_ID_MAX];
};

_Static_assert(sizeof(struct store_head) == 80, "a file format");
_Static_assert(sizeof(struct plan_site) == 24, "a file format");

/* FNV-1a: against damage, not against malice, which the owner check is for. */
static uint64_t hash(uint64_t h, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3;
	return h;
}

#define HASH_START	0xcbf29ce484222325

static const uint8_t pair_bytes[][2] = {
	[SITE_TRAP] = { 0x0f, 0x05 },
	[SITE_BEFORE] = { 0x0f, 0x05 },
	[SITE_AROUND] = { 0x0f, 0x05 },
	[SITE_INT80] = { 0xcd, 0x80 },
	[SITE_SYSENTER] = { 0x0f, 0x34 },
	[SITE_INSN] = { 0x0f },	/* and one of several */
};
_Static_assert(sizeof(pair_bytes) / sizeof(pair_bytes[0]) == SITE_INSN + 1, "each kind");

static bool pair_stands(const uint8_t *p, enum site_kind kind)
{
	return !memcmp(p, pair_bytes[kind], kind == SITE_INSN ? 1 : SITE_BYTES);
}


/* Hashes what the ELF file has around the sites; false: it has no such sites. */
static bool hash_near(int fd, const struct plan *p, uint64_t *out)
{
	*out = HASH_START;
	for (unsigned i = 0; i < p->n; i++) {
		const struct plan_site *s = &p->sites[i];
		uint64_t from = s->offset < NEAR_BEFORE ? 0 : s->offset - NEAR_BEFORE;
		uint8_t near[NEAR_BYTES];
		ssize_t got = pread(fd, near, sizeof(near), (off_t)from);
		size_t at = s->offset - from;

		MUST(at <= NEAR_BEFORE);
		if (got < (ssize_t)(at + SITE_BYTES) ||
		    !pair_stands(near + at, s->kind))
			return false;
		*out = hash(*out, near, (size_t)got);
	}
	return true;
}

/* The folder, and a plan's name in it; -1: there is none to be had. */
static int place_find(char *name, const uint8_t *id, unsigned id_len, int how)
{
	int cache, plans;

	MUST(id_len && id_len <= PLAN_BUILD_ID_MAX);
	for (unsigned i = 0; i < id_len; i++)
		sprintf(name + 2 * i, "%02x", id[i]);
	strcpy(name + 2 * id_len, PLAN_SUFFIX);
	cache = folder_base("XDG_CACHE_HOME", ".cache", how);
	plans = cache < 0 ? -1 : folder_open(cache, "plans", how);
	if (cache >= 0)
		close(cache);
	return plans;
}

static bool head_fits(const struct store_head *h, uint64_t size, uint64_t file_size,
		      const struct elf_view *v)
{
	return !memcmp(h->magic, STORE_MAGIC, sizeof(h->magic)) && h->version == STORE_VERSION &&
	       h->n <= PLAN_SITES_MAX && h->file_size == file_size &&
	       size == sizeof(*h) + (uint64_t)h->n * sizeof(struct plan_site) &&
	       h->id_len == v->build_id_len && !memcmp(h->id, v->build_id, sizeof(h->id));
}


static struct plan *read_plan(int from, uint64_t size, int fd, uint64_t file_size,
			      const struct elf_view *v)
{
	struct store_head h;
	struct plan *p;
	uint64_t near;
	size_t bytes;

	if (pread(from, &h, sizeof(h), 0) != sizeof(h) || !head_fits(&h, size, file_size, v))
		return NULL;
	p = plan_new(h.n);
	if (!p)
		return NULL;
	bytes = h.n * sizeof(p->sites[0]);
	p->n = h.n;
	p->unknown_pairs = h.unknown_pairs;
	p->vsyscall = h.vsyscall != 0;
	p->go = h.go != 0;
	p->build_id_len = h.id_len;
	memcpy(p->build_id, h.id, sizeof(p->build_id));
	if (pread(from, p->sites, bytes, sizeof(h)) == (ssize_t)bytes &&
	    hash(HASH_START, p->sites, bytes) == h.sites_hash && plan_fits(p, file_size) &&
	    hash_near(fd, p, &near) && near == h.near_hash)
		return p;
	plan_free(p);
	return NULL;
}

struct plan *store_load(int fd, uint64_t file_size, const struct elf_view *v)
{
	char name[NAME_ROOM];
	int folder = place_find(name, v->build_id, v->build_id_len, FOLDER_LOOK);
	struct plan *p = NULL;
	uint64_t size;
	int from = folder < 0 ? -1 : folder_file(folder, name, &size);

	if (from >= 0) {
		p = read_plan(from, size, fd, file_size, v);
		close(from);
	}
	if (p)
		cache_use(folder, name);
	if (folder >= 0)
		close(folder);
	return p;
}

void store_save(int fd, uint64_t file_size, const struct plan *p)
{
	struct store_head h = { .magic = STORE_MAGIC, .version = STORE_VERSION, .n = p->n,
				.file_size = file_size, .unknown_pairs = p->unknown_pairs,
				.vsyscall = p->vsyscall, .id_len = p->build_id_len,
				.go = p->go };
	struct folder_part parts[] = { { &h, sizeof(h) },
				       { p->sites, p->n * sizeof(p->sites[0]) } };
	char name[NAME_ROOM];
	int folder;

	if (!hash_near(fd, p, &h.near_hash))
		return;
	folder = place_find(name, p->build_id, p->build_id_len, FOLDER_MAKE);
	if (folder < 0)
		return;
	memcpy(h.id, p->build_id, sizeof(h.id));
	h.sites_hash = hash(HASH_START, p->sites, parts[1].len);
	folder_write(folder, name, parts, 2);
	cache_clean(folder, PLAN_SUFFIX);
	close(folder);
}
