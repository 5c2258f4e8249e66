/*
 * The shelf: patched code of files, each part as a process is to have it mapped.
 *
 * A server that starts a program for each request has the same libraries patched each time.
 * To write into their mappings costs a copy of each page that is touched, again for each
 * process, and again as it forks and ends.  So what is patched is kept here as a
 * whole (patched.c): a program has the shelf mapped, out of the way, and its inside moves a
 * part of it over the mapping of the file (inside/calls/shelf.c).  Nothing is copied then, and
 * all processes share the pages, as they do natively.  Not in sessions with followers.
 *
 * What lies here becomes code of programs under any uid: it is made of the file alone, never
 * of a process's memory, and only the monitor has it mapped for writing.  Parts are added,
 * and never changed or taken away, since processes have them mapped.
 *
 * The kernel says of such a mapping that it is the shelf's: kernel/maps.c, by which we read
 * /proc/PID/maps, says by shelf_name_file() which file it stands for.  Between two parts lies a
 * page that is of none: so what is left between two that have been moved is not taken for a
 * file's.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "engine/core/must.h"
#include "engine/outside/patch/shelf.h"
#include "engine/outside/kernel/shared.h"

#define PAGE		4096ull

static struct {
	int fd;
	bool failed;		/* it could not be made, and is not tried again */
	uint8_t *memory;	/* NULL: it is yet to be made */
	dev_t dev;
	ino_t inode;
	uint64_t filled;
	unsigned parts;
	struct shelf_part part[SHELF_PARTS];
} shelf = { .fd = -1 };

static bool shelf_make(void)
{
	struct stat st;

	if (shelf.memory || shelf.failed)
		return shelf.memory;
	shelf.memory = shared_make("mve-code", SHELF_BYTES, NULL, F_SEAL_FUTURE_WRITE, &shelf.fd);
	shelf.failed = !shelf.memory || fstat(shelf.fd, &st);
	if (shelf.failed) {
		shelf.memory = NULL;
		return false;
	}
	shelf.dev = st.st_dev;
	shelf.inode = st.st_ino;
	return true;
}

unsigned shelf_add(const struct map *of, uint8_t **code)
{
	uint64_t len = of->end - of->start;
	struct shelf_part *p;

	MUST(!of->shelved && !(len % PAGE) && of->start < of->end);
	if (shelf.parts == SHELF_PARTS || len + PAGE > SHELF_BYTES - shelf.filled || !shelf_make())
		return SHELF_NONE;
	p = &shelf.part[shelf.parts];
	*p = (struct shelf_part){ .at = shelf.filled, .len = len, .of = *of };
	*code = shelf.memory + p->at;
	shelf.filled += len + PAGE;
	return shelf.parts++;
}

const struct shelf_part *shelf_part(unsigned n)
{
	MUST(n < shelf.parts);
	return &shelf.part[n];
}

bool shelf_is_roomy(void)
{
	return shelf.parts < SHELF_PARTS / 2 && shelf.filled < SHELF_BYTES / 2;
}

int shelf_fd(void)
{
	return shelf_make() ? shelf.fd : -1;
}

bool shelf_is_rest(const struct map *m)
{
	return shelf.filled && m->inode == shelf.inode && m->dev == shelf.dev;
}

void shelf_name_file(struct map *m)
{
	for (unsigned i = 0; i < shelf.parts && shelf_is_rest(m); i++) {
		const struct shelf_part *p = &shelf.part[i];

		if (m->offset < p->at || m->offset + (m->end - m->start) > p->at + p->len)
			continue;
		m->shelved = true;
		m->offset = p->of.offset + (m->offset - p->at);
		m->dev = p->of.dev;
		m->inode = p->of.inode;
		memcpy(m->path, p->of.path, sizeof(m->path));
		return;
	}
}
