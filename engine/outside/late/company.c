/*
 * From alone to leading.  A session that was begun without followers tells nothing, which is
 * why it costs nothing.  When the first follower is wanted (late/twin.c) all threads of its
 * server are made to stand, the streams are made, and the process takes them
 * (inside/roles/company.c).  While it stands its lock functions are hooked, and instructions
 * that ask the machine are marked, as both would have been had it begun in company: but only
 * where no thread stands within what changes.
 *
 * What cannot be learnt any more (timers of timer_create, say) is refused beforehand.  Until the
 * process says that it is in company there are no streams: nobody else sees a step of this.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/follow/runtime.h"
#include "engine/outside/kernel/asker.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/kernel/shared.h"
#include "engine/outside/late/company.h"
#include "engine/outside/late/rows.h"
#include "engine/outside/monitor/realms.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/serve.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/patch/board.h"
#include "engine/outside/patch/hook.h"
#include "engine/outside/patch/patch.h"
#include "engine/outside/patch/planner.h"
#include "engine/outside/session/memory.h"
#include "engine/outside/spill/spill.h"
#include "engine/outside/start/auxv.h"
#include "engine/outside/start/exec.h"
#include "engine/outside/start/image.h"
#include "engine/outside/start/inject.h"
#include "engine/outside/start/vdso.h"
#include "engine/outside/takeover/takeover.h"
#include "engine/outside/takeover/takeover_parts.h"

#define STAND_US	20000	/* of its time, for the leader's threads to come to stand */
#define TAKE_US		500000	/* by the clock, for its process to be in company */
#define LOOK_US		20

/* While it is, the monitor does nothing else. */
static struct {
	struct monitor *m;	/* NULL: nothing is under way */
	bool done;
	int result;
} making;

void company_word_set(struct version *v, uint32_t word)
{
	/* Who sees that it is over sees what came of it. */
	PUBLISH(brief_company, &v->brief->company, word);
	syscall(SYS_futex, &v->brief->company, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* --- may it be -------------------------------------------------------------------------- */

static bool has_several(const struct version *v)
{
	for (uint32_t i = 0; i < version_slots(v); i++) {
		const struct slot *s = &v->area->slot[i];

		if (s->owner && s->pid != v->server && thread_state(s->pid, (pid_t)s->owner))
			return true;
	}
	return false;
}

/* The kernel tells what was created, but not what for. */
static bool has_timers(pid_t pid)
{
	char name[64];
	FILE *f;
	bool any;

	snprintf(name, sizeof(name), "/proc/%d/timers", pid);
	f = fopen(name, "re");
	any = f && fgetc(f) != EOF;
	if (f)
		fclose(f);
	return any;
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

static const char *barred(struct monitor *m, const struct maps *maps)
{
	const struct version *v = leading(m);
	const char *why = NULL;

	if (m->options->role != ROLE_SOLO || m->trace)
		return "it is traced, and cannot be followed";
	if (m->options->rollback)
		return "it was started with --rollback and no follower";
	if (has_several(v))
		return "it has several processes, and began with no follower and no --spare";
	if (v->area->filters)
		return "it has a filter of its own (seccomp)";
	if (has_timers(v->server))
		return "it has timers (timer_create) that it made when nobody followed";
	for (size_t i = 0; i < maps->n && !why; i++)
		why = map_barred(v->server, &maps->map[i]);
	return why;
}

/* --- its code --------------------------------------------------------------------------- */

static bool is_loader(const struct map *m)
{
	const char *base = strrchr(m->path, '/');

	return base && !strncmp(base + 1, "ld-linux", 8);
}

/* A static program has its locks in itself. */
static enum hook_file hooks_of(const struct maps *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		if (maps->map[i].exec && maps->map[i].inode && is_loader(&maps->map[i]))
			return HOOK_LIBRARY;
	return HOOK_STATIC;
}

/* Not ours: the inside, and what still lies on the shelf. */
static bool is_of_file(const struct map *m)
{
	return m->exec && m->inode && !m->shared && strncmp(m->path, "/memfd:mve-", 11);
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

	if ((is_loader(m) || bits & MAPPED_LOCAL) && s->locals < BOOT_LOCALS)
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

/* --- while it stands -------------------------------------------------------------------- */

static int places_read(const struct request *r, int memory, uint64_t place[AREA_THREADS])
{
	return memory_read(memory, r->args[2], place, AREA_THREADS * sizeof(*place));
}

static int code_change(struct monitor *m, const struct request *r, struct company_start *s)
{
	static uint64_t place[AREA_THREADS];
	struct board_room room = { r->args[3], LIBRARY_BOARDS, r->call[0] };
	int memory = memory_open(r->tid), result;
	struct maps maps = { 0 };

	if (memory < 0)
		return memory;
	result = board_room_fits(&room) ? places_read(r, memory, place) : -EINVAL;
	if (!result)
		result = maps_read(r->pid, &maps);
	if (!result && stands_within(r->pid, &maps, place, AREA_THREADS))
		result = -EAGAIN;
	/* A program that we began has the inside's. */
	if (!result && m->options->attach)
		result = vdso_lead(memory, process_vdso(r->pid),
				   r->call[2] - inside_image()->boot, place, AREA_THREADS);
	if (!result)
		code_ready(m, r->pid, memory, &maps, &room, s);
	/* What has been hooked stays so, whatever comes of it. */
	if (asker_give(r, r->call[1], &room.used, sizeof(room.used)) && !result)
		result = -EFAULT;
	maps_free(&maps);
	memory_close(memory);
	return result;
}

static int start_send(const struct monitor *m, int socket, struct company_start *s)
{
	const struct realm *r = &m->realm[0];
	int fd[VERSIONS], result;

	s->chunks = m->conduct->chunks;
	s->sections = m->conduct->sections;
	s->version = m->leader;
	for (uint32_t v = 0; v < s->sections; v++)
		fd[v] = v == m->leader ? r->section_fd[v] : r->section_read_fd[v];
	result = descriptors_send(socket, &m->conduct_fd, 1, s, sizeof(*s));
	return result ? result : descriptors_send(socket, fd, s->sections, "", 1);
}

static int64_t begin_serve(struct monitor *m, const struct request *r)
{
	struct company_start s = { 0 };
	int socket = asker_socket(r->pid, (int)r->args[1]), result;

	if (socket < 0)
		return socket;
	result = streams_make(m);
	if (!result)
		realm_first(m, r->pid);
	if (!result)
		result = code_change(m, r, &s);
	if (!result)
		result = start_send(m, socket, &s);
	close(socket);
	return result;
}

int64_t company_serve(struct version *v, const struct request *r)
{
	struct monitor *m = v->monitor;

	if (making.m != m || making.done || v->index != m->leader || r->pid != v->server)
		return -EINVAL;
	if (r->args[0] == COMPANY_BEGIN)
		return m->conduct ? -EINVAL : begin_serve(m, r);
	making.done = true;
	making.result = r->args[1] ? -EAGAIN : 0;
	if (making.result && (int64_t)r->args[1] > -4096 && (int64_t)r->args[1] < 0)
		making.result = (int)r->args[1];
	return 0;
}

static int take_wait(struct monitor *m)
{
	uint64_t begin = now_us();

	while (!making.done && now_us() - begin < TAKE_US) {
		serve_all(m);
		usleep(LOOK_US);
	}
	return making.done ? making.result : -EAGAIN;
}

/* Who has taken the streams and has not said so is not asked again: it is in company, or dead. */
static int company_make(struct monitor *m)
{
	struct version *leader = leading(m);
	int result = -EAGAIN;

	making = (typeof(making)){ .m = m };
	if (leader_stands(m, leader, STAND_US)) {
		company_word_set(leader, COMPANY_TAKE);
		result = take_wait(m);
	}
	if (result && m->conduct)
		streams_unmake(m);
	making.m = NULL;
	company_word_set(leader, COMPANY_NONE);
	if (!result)
		spill_begin(m);
	return result;
}

/* --- one is wanted ---------------------------------------------------------------------- */

static const char *company_why(int result)
{
	if (result == -EAGAIN)
		return "its threads do not come to stand where they can be told of";
	return result == -ENOMEM ? "there is no memory for it" : strerror(-result);
}

const char *company_want(struct monitor *m, uint64_t *stood_us, bool *passes)
{
	struct version *leader = leading(m);
	struct maps maps = { 0 };
	uint64_t begin;
	const char *why;
	int result;

	MUST(!m->conduct && !making.m);
	if (maps_read(leader->server, &maps)) {
		maps_free(&maps);
		return "its memory cannot be read";
	}
	why = barred(m, &maps);
	*passes = !why && !planned(leader->server, &maps);
	maps_free(&maps);
	if (*passes)
		return "its files are being looked at";
	result = why ? 0 : rows_make_late(m);
	if (why || result)
		return why ? why : strerror(-result);
	begin = now_us();
	result = company_make(m);
	*stood_us += now_us() - begin;
	*passes = result == -EAGAIN;
	say_log("twin", "%s: the leader comes to have followers: %s, after %lu us",
		m->session.name, strerror(-result), now_us() - begin);
	return result ? company_why(result) : NULL;
}
