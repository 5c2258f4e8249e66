/*
 * Memory that an image's processes share, or that one has at two places: a file for each such
 * object, made before any of the processes is, which inherit them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/foam/foam.h"

static struct object {
	uint64_t dev, inode;
	uint64_t len;		/* behind the last byte that somebody has mapped */
	int fd;
} *object;
static unsigned objects;

static struct object *find(const struct foam_map *m)
{
	for (unsigned i = 0; i < objects; i++)
		if (object[i].dev == m->dev && object[i].inode == m->inode)
			return &object[i];
	return NULL;
}

static void map_see(const struct foam_map *m)
{
	uint64_t end = m->offset + (m->end - m->start);
	struct object *o;

	if (m->kind != FOAM_MEMORY)
		return;
	o = find(m);
	if (!o) {
		object = realloc(object, (objects + 1) * sizeof(*object));
		MUST(object);
		o = &object[objects++];
		*o = (struct object){ .dev = m->dev, .inode = m->inode, .fd = -1 };
	}
	o->len = end > o->len ? end : o->len;
}

static int object_make(struct object *o)
{
	MUST(o->fd < 0 && o->len);
	o->fd = memfd_create("shared", MFD_CLOEXEC);
	return o->fd < 0 || ftruncate(o->fd, (off_t)o->len) < 0 ? -errno : 0;
}

int foam_objects_make(const struct foam *first)
{
	int result = 0;

	MUST(!objects);
	FOAM_EACH(f, (struct foam *)first)
		for (uint32_t i = 0; i < f->head.maps; i++)
			map_see(&f->map[i]);
	for (unsigned i = 0; i < objects && !result; i++)
		result = object_make(&object[i]);
	return result;
}

int foam_object(const struct foam_map *m)
{
	const struct object *o = find(m);

	return o ? o->fd : -ENOENT;
}

void foam_objects_keep(void)
{
	for (unsigned i = 0; i < objects; i++)
		fcntl(object[i].fd, F_SETFD, 0);
}

void foam_objects_close(void)
{
	for (unsigned i = 0; i < objects; i++)
		if (object[i].fd >= 0)
			close(object[i].fd);
	free(object);
	object = NULL;
	objects = 0;
}
