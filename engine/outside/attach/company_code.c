/*
 * From alone to leading (company.c): what of a process is against it, and what becomes of its
 * code.  While it stands its lock functions are hooked, and instructions that ask the machine
 * are marked, as both would have been had it begun in company: but only where no thread stands
 * within what changes.  What has been hooked stays so, whatever comes of it: a hook of a process
 * that is alone does nothing.
 *
 * What cannot be learnt any more (shared memory of shmat, say) is refused beforehand.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "engine/outside/attach/company_code.h"
#include "engine/outside/follow/runtime.h"
#include "engine/outside/kernel/asker.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/kernel/shared.h"
#include "engine/outside/monitor/serve.h"
#include "engine/outside/patch/board.h"
#include "engine/outside/patch/hook.h"
#include "engine/outside/patch/patch.h"
#include "engine/outside/patch/planner.h"
#include "engine/outside/session/memory.h"
#include "engine/outside/start/auxv.h"
#include "engine/outside/start/image.h"
#include "engine/outside/start/inject.h"
#include "engine/outside/start/vdso.h"

/* --- may it be -------------------------------------------------------------------------- */

/* Its timers (timer_create); 0, -E2BIG, or -EPROTO: the kernel says something else of them. */
static int timers_read(pid_t pid, struct company_timer *to, uint32_t *n)
{
	char name[64], notify[8], whom[8];
	struct company_timer one = { 0 };
	int result = 0;
	FILE *f;

	*n = 0;
	snprintf(name, sizeof(name), "/proc/%d/timers", pid);
	f = fopen(name, "re");
	while (f && !result && fscanf(f, " ID: %d", &one.id) == 1) {
		int got = fscanf(f, " signal: %d/%lx notify: %7[a-z]/%3[a-z].%d ClockID: %d",
				 &one.signo, &one.value, notify, whom, &one.tid, &one.clock);

		one.notify = !strcmp(notify, "none") ? SIGEV_NONE :
			     !strcmp(whom, "tid") ? SIGEV_THREAD_ID : SIGEV_SIGNAL;
		result = got != 6 ? -EPROTO : *n == COMPANY_TIMERS ? -E2BIG : 0;
		if (!result)
			to[(*n)++] = one;
	}
	if (f)
		fclose(f);
	return result;
}

/* Memory that the kernel or strangers may write, and what was made to be followed nowhere. */
static const char *map_barred(pid_t pid, const struct map *m)
{
	struct code_range_at range[RUNTIME_RANGES];

	if (!strncmp(m->path, "/[aio]", 6))
		return "it has asked the kernel for asynchronous I/O (io_setup)";
	if (!strncmp(m->path, "/SYSV", 5))
		return "it has attached shared memory (shmat)";
	if (m->exec && m->inode &&
	    (runtime_is_library(m->path) || runtime_in_program(pid, m, range)))
		return "a sanitizer's runtime is in it";
	return NULL;
}

static const char *maps_barred(pid_t pid, const struct maps *maps)
{
	static struct company_timer timer[COMPANY_TIMERS];
	const char *why = NULL;
	uint32_t timers;

	if (timers_read(pid, timer, &timers))
		why = "it has too many timers (timer_create) that it made when nobody followed";
	for (size_t i = 0; i < maps->n && !why; i++)
		why = map_barred(pid, &maps->map[i]);
	return why;
}

/* --- its code --------------------------------------------------------------------------- */

/* A static program has its locks in itself. */
static enum hook_file hooks_of(const struct maps *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		if (maps->map[i].exec && maps->map[i].inode && runtime_is_loader(maps->map[i].path))
			return HOOK_LIBRARY;
	return HOOK_STATIC;
}

/* Not ours: the inside, and what still lies on the shelf. */
static bool is_of_file(const struct map *m)
{
	return m->exec && m->inode && !m->shared && !shared_is_ours(m->dev, m->inode);
}

/* What is in its files is known; else somebody is finding it out. */
static bool planned(pid_t pid, const struct maps *maps)
{
	enum hook_file file = hooks_of(maps);
	bool all = true;

	for (size_t i = 0; i < maps->n; i++) {
		const struct map *m = &maps->map[i];
		struct plan *p;
		int result;

		if (!is_of_file(m))
			continue;
		all &= hook_planned(pid, m, file);
		result = patch_plan(pid, -1, m, &p);
		if (!result)
			plan_free(p);
		all &= result != -EAGAIN;
	}
	return all;
}

/* A thread is within what would change. */
static bool stands_within(pid_t pid, const struct maps *maps, const uint64_t *place, uint32_t n)
{
	enum hook_file file = hooks_of(maps);

	for (size_t i = 0; i < maps->n; i++) {
		const struct map *m = &maps->map[i];

		for (uint32_t k = 0; is_of_file(m) && k < n; k++)
			if (place[k] >= m->start && place[k] < m->end &&
			    hook_holds(pid, m, file, place[k]))
				return true;
	}
	return false;
}

static void map_mark(pid_t pid, int memory, const struct map *m)
{
	struct plan *p;

	if (patch_plan(pid, memory, m, &p))
		return;
	patch_marks(memory, m, p);
	plan_free(p);
}

static void library_note(struct company_start *s, pid_t pid, const struct map *m)
{
	struct mapped_answer a = { 0 };
	uint64_t bits = library_look(&a, pid, m);

	if ((runtime_is_loader(m->path) || bits & MAPPED_LOCAL) && s->locals < BOOT_LOCALS)
		s->local[s->locals++] = (struct code_range_at){ m->start, m->end };
	if (bits & (MAPPED_LIBC | MAPPED_LOCAL) && s->parts < BOOT_PARTS)
		s->part[s->parts++] = (struct code_part){
			m->start, m->end, a.unwind,
			bits & MAPPED_LIBC ? PART_LIBC : PART_ALLOCATOR, 0,
		};
}

/* All of it is as if it had been mapped in company. */
static void code_ready(struct monitor *m, pid_t pid, int memory, const struct maps *maps,
		       struct board_room *room, struct company_start *s)
{
	enum hook_file file = hooks_of(maps);

	for (size_t i = 0; i < maps->n; i++) {
		const struct map *one = &maps->map[i];

		if (!is_of_file(one))
			continue;
		if (m->options->tier == TIER_PATCH)
			map_mark(pid, memory, one);
		hook_map(pid, memory, one, file, room);
		library_note(s, pid, one);
	}
}

const char *company_barred(pid_t pid, bool *passes)
{
	struct maps maps = { 0 };
	const char *why = "its memory cannot be read";
	int result = maps_read(pid, &maps);

	if (!result) {
		why = maps_barred(pid, &maps);
		*passes = !why && !planned(pid, &maps);
		if (*passes)
			why = "its files are being looked at";
	} else if (process_over(pid)) {
		why = NULL;	/* it has ended since it was found: nobody waits for it */
	} else if (result == -ESRCH) {
		/* The kernel has taken its memory, and has not said yet that it has ended. */
		*passes = true;
		why = "a process of it is about to end";
	}
	maps_free(&maps);
	return why;
}

/* --- while it stands -------------------------------------------------------------------- */

/* Of one that mve has come to: a program that we began has the inside's. */
static bool has_kernels_vdso(const struct request *r)
{
	return r->call[3];
}

static int places_look(const struct request *r, int memory, const struct maps *maps)
{
	static uint64_t place[AREA_THREADS];
	struct board_room room = { r->args[3], LIBRARY_BOARDS, r->call[0] };
	int result = board_room_fits(&room) ? 0 : -EINVAL;

	if (!result)
		result = memory_read(memory, r->args[2], place, sizeof(place));
	if (!result && stands_within(r->pid, maps, place, AREA_THREADS))
		result = -EAGAIN;
	if (!result && has_kernels_vdso(r))
		result = vdso_may_lead(memory, process_vdso(r->pid), place, AREA_THREADS);
	return result;
}

static int code_change(struct monitor *m, const struct request *r, int memory,
		       const struct maps *maps, struct company_start *s)
{
	struct board_room room = { r->args[3], LIBRARY_BOARDS, r->call[0] };
	int result = timers_read(r->pid, s->timer, &s->timers);

	if (!result && has_kernels_vdso(r))
		result = vdso_lead(memory, process_vdso(r->pid),
				   r->call[2] - inside_image()->boot);
	if (!result)
		code_ready(m, r->pid, memory, maps, &room, s);
	if (asker_give(r, r->call[1], &room.used, sizeof(room.used)) && !result)
		result = -EFAULT;
	return result;
}

int company_code(struct monitor *m, const struct request *r, struct company_start *s)
{
	int memory = memory_open(r->tid), result;
	struct maps maps = { 0 };

	if (memory < 0)
		return memory;
	result = maps_read(r->pid, &maps);
	if (!result && !s)
		result = places_look(r, memory, &maps);
	else if (!result)
		result = code_change(m, r, memory, &maps, s);
	maps_free(&maps);
	memory_close(memory);
	return result;
}
