/*
 * What the inside asks of the monitor: each slot that asks is looked at, and its request
 * served by its kind.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/abi/table.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/follow/failed.h"
#include "engine/outside/follow/query.h"
#include "engine/outside/follow/runtime.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/kernel/asker.h"
#include "engine/outside/late/company.h"
#include "engine/outside/late/twin.h"
#include "engine/outside/monitor/realms.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/patch/beside.h"
#include "engine/outside/patch/board.h"
#include "engine/outside/patch/planner.h"
#include "engine/outside/monitor/serve.h"
#include "engine/outside/pack/used.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/trace.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/patch/hook.h"
#include "engine/outside/plan/plan.h"
#include "engine/outside/report/findings.h"
#include "engine/outside/rollback/rollbacks.h"
#include "engine/outside/rewind/rewind.h"
#include "engine/outside/session/reach.h"
#include "engine/outside/stages/stages.h"
#include "engine/outside/start/exec.h"
#include "engine/outside/start/inject.h"
#include "engine/outside/takeover/take.h"
#include "engine/outside/takeover/takeover.h"

/* An allocator's locks and clocks are about addresses, which twins do not share. */
static bool is_allocator(const char *path)
{
	static const char *const names[] = { "libjemalloc", "libtcmalloc", "libmimalloc" };
	const char *base = strrchr(path, '/');

	for (size_t i = 0; base && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(base + 1, names[i], strlen(names[i])))
			return true;
	return false;
}

uint64_t library_look(struct mapped_answer *a, pid_t pid, const struct map *m)
{
	uint64_t bits = is_allocator(m->path) ? MAPPED_LOCAL : 0;

	if (runtime_is_library(m->path))
		bits = MAPPED_RUNTIME;
	else if (runtime_is_libc(m->path))
		bits = MAPPED_LIBC;
	if (bits)
		a->unwind = runtime_unwind(pid, m);
	a->sigaction = bits & MAPPED_RUNTIME ? runtime_sigaction(pid, m) : 0;
	return bits;
}

bool version_is_urgent(const struct version *v)
{
	const struct move *mv = &v->monitor->move;

	return takeover_any(v->monitor) && mv->state != MOVE_IS_wanted &&
	       (v == mv->from || v == mv->to);
}

static bool is_code(const struct map *m, uint64_t start, uint64_t end)
{
	return m->exec && m->start < end && m->end > start;
}

/* Not of what the file is, but of what we could not do with it. */
static void unplanned_say(struct version *v, const struct map *m, int error)
{
	if ((error == -ETIME || error == -ENOMEM || error == -EIO || error == -EBUSY) &&
	    version_may_say(v))
		say_error("its calls are held without being patched, which is slower",
			  "%s/%s: cannot plan a file: %s: %s", v->monitor->session.name, v->name,
			  m->path, error == -ETIME ? "it takes too long" : strerror(-error));
}

/* New code of a process, and what becomes of it. */
struct mapping {
	struct version *v;
	const struct request *r;
	int memory;
	struct board_room room;
	struct patch_sum sum;
	struct shelf_view shelf;
	struct mapped_answer answer;
	uint64_t bits;
};

/* The plans of what is code there; true: who asks is to wait for one of them. */
static bool plans_get(const struct mapping *g, const struct maps *maps, struct plan **plan)
{
	const struct request *r = g->r;
	const struct monitor *monitor = g->v->monitor;
	bool later = false;

	for (size_t i = 0; i < maps->n; i++) {
		const struct map *m = &maps->map[i];
		int error = 0;

		if (!is_code(m, r->args[0], r->args[0] + r->args[1]))
			continue;
		if (monitor->conduct)
			later |= !hook_planned(r->tid, m, HOOK_LIBRARY);
		if (monitor->options->tier == TIER_PATCH)
			error = patch_plan(r->tid, g->memory, m, &plan[i]);
		later |= error == -EAGAIN;
		if (error)
			unplanned_say(g->v, m, error);
	}
	/* Longer than a planner may take: it has an end, whose word is the answer. */
	return later && !version_is_urgent(g->v) && hold(g->v, r, PLAN_WAIT_MS);
}

static void plans_free(struct plan **plan, size_t n)
{
	for (size_t i = 0; i < n; i++)
		plan_free(plan[i]);
	free(plan);
}

/* It is all that was mapped, and neither hooks are written there nor is it ever undone. */
static struct shelf_view *shelf_of(struct mapping *g, const struct map *m)
{
	uint64_t start = g->r->args[0], len = (g->r->args[1] + 4095) & ~4095ull;
	bool plain = !g->v->monitor->conduct && !g->v->monitor->options->attach;

	return m->start == start && m->end == start + len && plain ? &g->shelf : NULL;
}

static void map_serve(struct mapping *g, const struct map *m, struct plan *plan)
{
	struct monitor *monitor = g->v->monitor;
	pid_t tid = g->r->tid;

	if (plan && monitor->options->attach)
		patch_keep(tid, g->memory, m);
	if (plan)
		patch_planned(tid, g->memory, m, plan, &g->room, &g->sum, shelf_of(g, m));
	else
		g->sum.unclean |= monitor->options->tier == TIER_PATCH;
	if (!monitor->conduct)
		return;
	hook_map(tid, g->memory, m, HOOK_LIBRARY, &g->room);
	g->bits |= library_look(&g->answer, tid, m);
	g->v->runtime |= (g->bits & MAPPED_RUNTIME) != 0;
	if (g->answer.sigaction)
		monitor->conduct->puts_off |= 1u << g->v->index;
}

/* False: the answer comes later. */
static bool maps_serve(struct mapping *g)
{
	uint64_t start = g->r->args[0], end = start + g->r->args[1];
	struct plan **plan;
	struct maps maps;
	bool later;

	if (maps_read_part(g->r->tid, start, end, &maps))
		return true;
	plan = calloc(maps.n + 1, sizeof(struct plan *));
	MUST(plan);
	later = plans_get(g, &maps, plan);
	for (size_t i = 0; !later && i < maps.n; i++)
		if (is_code(&maps.map[i], start, end))
			map_serve(g, &maps.map[i], plan[i]);
	plans_free(plan, maps.n);
	maps_free(&maps);
	return !later;
}

/* The boards' new cursor. */
static int64_t mapping_end(struct mapping *g)
{
	const struct patch_sum *sum = &g->sum;

	MUST(sum->guards <= SLOT_GUARDS);

	exec_count(g->v, g->r->args[4], sum);
	MUST(g->shelf.moves <= 1);
	g->answer.moves = g->shelf.moves;
	g->answer.move = g->shelf.move[0];
	g->answer.shelf_moved = g->shelf.moved;
	g->answer.guards = sum->guards;
	memcpy(g->answer.guard, sum->guard, sizeof(g->answer.guard));
	if (asker_give(g->r, g->r->call[0], &g->answer, sizeof(g->answer)) || sum->unclean ||
	    sum->vsyscall)
		g->bits |= MAPPED_UNCLEAN;
	return (int64_t)(g->room.used | g->bits);
}

/* Patches what a process has just mapped; the boards' new cursor or -errno. */
static int64_t mapped_serve(struct version *v, const struct request *r)
{
	struct mapping g = { .v = v, .r = r, .memory = memory_open(r->tid),
			     .room = { r->args[3], LIBRARY_BOARDS, r->args[2] },
			     .shelf = { .len = r->call[1], .moved = r->call[2] },
			     .sum = { .twins = v->monitor->conduct } };
	int64_t reply;

	if (g.memory < 0)
		return g.memory;
	reply = !board_room_fits(&g.room) ? -EINVAL :
		maps_serve(&g) ? mapping_end(&g) : REPLY_LATER;
	memory_close(g.memory);
	return reply;
}

/* A site that proved hot is patched; the room that its board took. */
static int64_t hot_serve(struct version *v, const struct request *r)
{
	struct board_room room = { r->args[1], r->args[2] >> 32, (uint32_t)r->args[2] };
	struct patch_sum sum = { .patched = 1 };
	int memory = memory_open(r->tid), result;

	if (memory < 0)
		return memory;
	result = board_room_fits(&room) ? patch_site(r->tid, memory, r->args[0], &room) : -EINVAL;
	memory_close(memory);
	if (result == -EAGAIN && !version_is_urgent(v) && hold(v, r, PLAN_WAIT_MS))
		return REPLY_LATER;
	if (result)
		return result;
	exec_count(v, r->args[4], &sum);
	v->image[r->args[4] % AREA_IMAGES].sites_trapped--;
	return (int64_t)room.used;
}

#define WORDS_MAX	64	/* at one time */
#define WORD_MS		10000	/* and one more each */

bool version_may_say(struct version *v)
{
	uint64_t now = now_ms(), over = (now - v->words_ms) / WORD_MS;

	if (over) {
		v->words -= over < v->words ? (unsigned)over : v->words;
		v->words_ms = now;
	}
	if (v->words > WORDS_MAX)
		return false;
	if (v->words++ == WORDS_MAX)
		say_error(NULL, "%s/%s: says too much: more of it is not shown for a while",
			  v->monitor->session.name, v->name);
	return v->words <= WORDS_MAX;
}

static void refused_say(struct version *v, const struct request *r)
{
	static const char *const what[][2] = {
		[REFUSED_INT80] = { "a 32-bit system call (int 0x80) was refused",
				    "the program sees ENOSYS; use its 64-bit interface" },
		[REFUSED_GS] = { "setting the GS base was refused", "mve keeps its state there" },
		[REFUSED_IO_URING] = { "io_uring was refused",
				       "the program sees ENOSYS, as on older kernels" },
		[REFUSED_AIO] = { "io_setup was refused in a session with followers",
				  "the program sees ENOSYS, and does without" },
		[REFUSED_DISPATCH] = { "syscall user dispatch was refused", "mve stands on it" },
	};
	uint64_t n = r->args[0];

	_Static_assert(sizeof(what) / sizeof(what[0]) == REFUSALS, "a word for each");

	if (n && n < REFUSALS && version_may_say(v))
		say_error(what[n][1], "%s: pid %d at 0x%lx", what[n][0], r->pid, r->args[1]);
}

/* Once: each of its questions would be refused. */
static void closed_say(struct version *v, uint32_t slot)
{
	if (v->closed_said)
		return;
	v->closed_said = true;
	say_error("as root (CAP_SYS_PTRACE) mve may look into it",
		  "%s/%s: pid %d is not dumpable, as it asked: it runs, but no other version can "
		  "take over, and programs that it starts are not held",
		  v->monitor->session.name, v->name, (int)v->area->slot[slot].pid);
}

static void untold_say(const struct version *v, const struct request *r)
{
	const struct call_desc *d = call_find((long)r->args[1]);

	say_error(NULL, "%s/%s: %s with request 0x%lx is not known: what the leader got by it may "
		  "be missing here", v->monitor->session.name, v->name, d ? d->name : "a call",
		  r->args[2]);
}

/* What a version could not do as its leader. */
static void room_say(const struct version *v, const struct request *r)
{
	static const char *const what[ROOMS] = { [ROOM_TIMERS] = "timers",
		[ROOM_LOCKS] = "record locks", [ROOM_CHILDREN] = "children" };
	uint64_t n = r->args[1];

	say_error("those beyond it are not there when it leads", "%s/%s: process %d has more than "
		  "%lu %s", v->monitor->session.name, v->name, r->pid, r->args[2],
		  n < ROOMS ? what[n] : "things");
}

static void note_say(const struct version *v, const struct request *r)
{
	if (r->args[0] == NOTE_ROOM)
		room_say(v, r);
	if (r->args[0] == NOTE_TIMER)
		say_error(NULL, "%s/%s: timer %lu could not be made again: its signals will not "
			  "come", v->monitor->session.name, v->name, r->args[1]);
	if (r->args[0] == NOTE_UNTOLD)
		untold_say(v, r);
	if (r->args[0] == NOTE_SIGNALS)
		say_error("natively such signals wait, up to RLIMIT_SIGPENDING (ulimit -i)",
			  "%s/%s: %lu signals that came as it took over are lost",
			  v->monitor->session.name, v->name, r->args[1]);
	if (r->args[0] == NOTE_SHARED)
		say_error("a shared mapping of more than 16 MiB, or of a quarter of the ring, is a "
			  "private copy", "%s/%s: what is mapped of descriptor %lu may differ from "
			  "the leader's", v->monitor->session.name, v->name, r->args[1]);
	if (r->args[0] == NOTE_CONFINED)
		say_error("it may do more than its leader if it comes to lead",
			  "%s/%s: process %d is not confined by a Landlock rule set as its "
			  "leader's is", v->monitor->session.name, v->name, r->pid);
	if (r->args[0] == NOTE_LOCK)
		say_error(NULL, "%s/%s: another process has got the record lock of descriptor %lu",
			  v->monitor->session.name, v->name, r->args[1]);
}

/* Followers make theirs behind their leader. */
static void pids_note(const struct version *v)
{
	struct monitor *m = v->monitor;

	if (v->index != m->leader || m->pids_apart)
		return;
	m->pids_apart = true;
	if (m->conduct && m->conduct->following && !m->options->replay)
		say_error("what is compared is compared as ever", "%s: its server makes a pid "
			  "namespace: no follower leads while it has a process there",
			  m->session.name);
}

static int64_t request_serve(struct version *v, const struct request *r)
{
	switch (r->kind) {
	case REQ_EXEC:
		return exec_serve(v, r);
	case REQ_EXEC_FAILED:
		exec_failed(v->monitor, r->tid);
		return 0;
	case REQ_MAPPED:
		used_see(v->monitor, r->tid);
		return mapped_serve(v, r);
	case REQ_COMPANY:
		return company_serve(v, r);
	case REQ_SITE_HOT:
		return hot_serve(v, r);
	case REQ_TRACE_ENTER:
	case REQ_TRACE_EXIT:
	case REQ_TRACE_SIGNAL:
		return trace_request(v, r);
	case REQ_REFUSED:
		refused_say(v, r);
		return 0;
	case REQ_ROLLBACK:
		return rollback_serve(v, r);
	case REQ_FAILED:
		return failed_serve(v, r);
	case REQ_UPDATE:
		return stages_serve(v, r);
	case REQ_NOTE:
		say_log("note", "%s: %d: %lu %lu %lu", v->name, r->tid, r->args[0], r->args[1],
			r->args[2]);
		if (r->args[0] == NOTE_PIDS)
			pids_note(v);
		else if (version_may_say(v))
			note_say(v, r);
		return 0;
	default:
		return -ENOSYS;
	}
}

/*
 * Limit (followers): threads of a child that are looked at, where its parent asks whether it runs.
 * Beyond: they are taken to be asleep.
 */
#define RUNS_LOOKED	16

/* Of a process: that one of its threads does. */
static int64_t runs_serve(const struct version *v, const struct request *r)
{
	pid_t tid = (pid_t)r->args[0], pid = (pid_t)r->args[1];

	if (tid)
		return thread_wants(r->pid, tid);
	return version_owns(v, pid, pid) && process_runs(pid, RUNS_LOOKED) ? RUNS_CPU : RUNS_NOT;
}

/* Those that only sessions with followers know. */
static int64_t versions_serve(struct version *v, const struct request *r)
{
	switch (r->kind) {
	case REQ_VERDICT:
		return verdict_serve(v, r);
	case REQ_CRASHED:
		return crashed_serve(v, r);
	case REQ_EXIT:
		return exit_serve(v, r);
	case REQ_TAKE:
		return take_serve(v, r);
	case REQ_WIRE:
		return wire_serve(v, r);
	case REQ_REPORTED:
		return reported_serve(v, r);
	case REQ_RUNS:
		return runs_serve(v, r);
	case REQ_REALM:
		return realm_serve(v, r);
	case REQ_READ:
		return streams_process_read(v->monitor, v->index, (pid_t)r->args[0]);
	case REQ_QUERY:
		return query_serve(v, r);
	case REQ_KNOWN:
		return version_owns(v, (pid_t)r->args[0], (pid_t)r->args[0]);
	case REQ_IMAGE:
		return rewind_serve(v, r);
	case REQ_TWIN:
		return twin_serve(v, r);
	case REQ_MEANT:
		return meant_serve(v, r);
	case REQ_CALLER:
		return runtime_calls(r->pid, r->call[0], r->args[0], r->args[1], r->args[2]);
	default:
		return request_serve(v, r);
	}
}

/*
 * The bit goes first: who asks while we look sets it behind that.  It stays as long as the
 * thread has not gone on with its answer.
 */
static bool slot_asks(struct version *v, uint32_t slot)
{
	uint64_t *word = &v->area->asking[slot / 64], bit = 1ull << slot % 64;

	if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit))
		return false;
	CONSUME_BY(area_asking, fetch_and, word, ~bit);
	if (CONSUME(slot_asked, &v->area->slot[slot].asked) != RS_ASKED)
		return false;
	__atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
	return true;
}

static void slot_serve(struct version *v, uint32_t slot, unsigned *looks)
{
	struct monitor *m = v->monitor;
	uint64_t began = now_us();
	struct request r;
	int64_t reply;
	enum asker is;

	MUST(slot < AREA_THREADS);

	if (held_is(m, v, slot) || taker_waits(&m->move, v, slot))
		return;
	/* Of one that says that it has crashed, too, which is a hint and no more. */
	reach_hasten(takeover_any(m) || v->area->crash_ns);
	is = ahead_request(v, slot, &r) ? ASKER_IS : asker_find(v, slot, &r, looks);
	reach_hasten(false);
	m->vain_us += is != ASKER_IS ? now_us() - began : 0;
	switch (is) {
	case ASKER_IS:
		reply = m->conduct ? versions_serve(v, &r) : request_serve(v, &r);
		if (reply != REPLY_LATER)
			asker_answer(v, &r, reply);
		return;
	case ASKER_SOON:
		m->asked_soon = true;
		monitor_wake_after(m, 1);
		return;
	case ASKER_CLOSED:
		closed_say(v, slot);
		asker_refuse(v, slot);
		return;
	case ASKER_MIRED:
	case ASKER_NONE:
		return;
	}
}

#define ROUND_LOOKS	64	/* of a version: who fills its slots holds nobody else up */

/* The next round begins behind the slot that took the last look. */
static void version_serve(struct version *v)
{
	uint32_t high = version_slots(v), first = v->turn;
	unsigned looks = ROUND_LOOKS;

	MUST(high <= AREA_THREADS && v == &v->monitor->version[v->index]);

	for (uint32_t n = 0; n < high; n++) {
		uint32_t slot = (first + n) % high;
		bool had = looks;

		if (!slot_asks(v, slot))
			continue;
		slot_serve(v, slot, &looks);
		if (had && !looks)
			v->turn = slot + 1;
	}
}

/* Answers every request that stands in the areas. */
void serve_requests(struct monitor *m)
{
	for (unsigned n = 0; n < m->versions; n++)
		version_serve(&m->version[n]);
	held_served(m);
}
