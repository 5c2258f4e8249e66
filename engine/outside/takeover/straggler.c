/*
 * Who does not stand when all of a version's threads are asked to, in words: which call the
 * kernel says that it is in, and where its next instruction is.  Only that is read while its
 * server stands; whose code it is is looked for behind that.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/abi/table.h"
#include "engine/core/must.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/start/image.h"
#include "engine/outside/takeover/straggler.h"

#define PLACE_MAX	120

/* "NR ARGS STACK PLACE", "-1 STACK PLACE" outside of a call, "running", or nothing. */
static void call_read(struct straggler *s, const char *text)
{
	const char *last = strrchr(text, ' ');

	if (!last)
		return;
	s->call = atoi(text);
	s->place = strtoull(last, NULL, 16);
}

void straggler_note(struct straggler *s, const struct version *v, uint32_t slot)
{
	uint64_t holder = __atomic_load_n(&v->area->slot[slot].holder, __ATOMIC_RELAXED);
	char name[64], text[256] = "";
	int fd;

	MUST(slot < AREA_THREADS);
	*s = (struct straggler){ .slot = slot + 1, .pid = (pid_t)(holder >> 32),
			       .tid = (pid_t)(uint32_t)holder, .call = -1 };
	s->state = thread_state(s->pid, s->tid);
	snprintf(name, sizeof(name), "/proc/%d/task/%d/syscall", s->pid, s->tid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		call_read(s, text);
	if (fd >= 0)
		close(fd);
}

/* In our code by function and line. */
static void place_say(const struct straggler *s, const struct version *v, char *text, size_t size)
{
	const struct slot *slot = &v->area->slot[s->slot - 1];
	const struct image *im = &v->image[slot->image % AREA_IMAGES];
	uint64_t into = s->place - im->inside;

	if (im->inside && into < im->inside_len)
		inside_place(into - inside_image()->own_from, text, size);
	else
		maps_place(s->pid, s->place, text, size);
}

static void doing_say(const struct straggler *s, const struct version *v, char *text, size_t size)
{
	const struct call_desc *d = s->call >= 0 ? call_find(s->call) : NULL;
	char place[PLACE_MAX] = "";

	if (s->place)
		place_say(s, v, place, sizeof(place));
	if (s->state == 'T' || s->state == 't')
		snprintf(text, size, "it is stopped");
	else if (d)
		snprintf(text, size, "it is in %s, %s", d->name, place);
	else if (s->place)
		snprintf(text, size, "it waits for memory, %s", place);
	else if (s->state == 'R')
		snprintf(text, size, "it runs");
	else
		snprintf(text, size, "its state is %c", s->state ? s->state : '?');
}

void straggler_say(const struct straggler *s, const struct version *v, char *text, size_t size)
{
	int n;

	MUST(size);
	if (!s->slot) {
		snprintf(text, size, "a thread or process of it is only being made");
		return;
	}
	n = snprintf(text, size, "thread %d of process %d does not stand: ", s->tid, s->pid);
	if (n > 0 && (size_t)n < size)
		doing_say(s, v, text + n, size - (size_t)n);
}

void why_first(char *text, const char *fmt, ...)
{
	va_list ap;

	if (text[0])
		return;
	va_start(ap, fmt);
	vsnprintf(text, WHY_MAX, fmt, ap);
	va_end(ap);
}
