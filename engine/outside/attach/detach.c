/*
 * Leaving a server that goes on.  All threads of its processes stand.  Those that are in C code
 * of ours are let go on, with a knock, until they stand at the end of their calls (rounds); if
 * one does not come there, all is as it was.  Then the code is the program's again, for a place
 * of its own must be whole before a thread is sent there: from here on there is no way back,
 * and nothing that waits.  Each thread leaves the gate; none is armed any more; signals are the
 * program's; and last what was mapped goes.
 *
 * Killed in between, we leave a server that is held in part, or not, and has more mapped than
 * it needs: what comes to us still finds what it comes to.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/abi/area.h"
#include "engine/abi/brief.h"
#include "engine/abi/knock.h"
#include "engine/abi/thread.h"
#include "engine/core/must.h"
#include "engine/outside/attach/alone.h"
#include "engine/outside/attach/attach.h"
#include "engine/outside/attach/attach_parts.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/kernel/shared.h"
#include "engine/outside/late/past.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/serve.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/plan/plan.h"
#include "engine/outside/session/memory.h"
#include "engine/outside/start/exec.h"
#include "engine/outside/start/image.h"
#include "engine/outside/takeover/takeover.h"
#include "engine/outside/takeover/takeover_parts.h"

#define STOP_MS		500
#define ROUNDS_MS	1500	/* how long threads in C code of ours are waited for */
#define ROUND_US	300	/* they run at first, then longer: a processor may be far */
#define ROUND_MOST_US	40000
#define HANDLER_US	5000	/* how long a handler of ours may take */
#define KNOCK_ROUNDS	4	/* one that comes while a signal waits is for nothing */
#define AGAIN		20	/* looks for a moment when no handler is under way */
#define AGAIN_US	5000
#define EXEC_MS		2000	/* how long programs that are being started are waited for */
#define EXEC_LOOK_US	200
#define STEPS_MAX	64	/* instructions of a board */

/* What a process says of what is in it: about itself alone. */
struct host {
	struct boot boot;
	uint64_t own_taken;
};

/* --- who, and what is in it -------------------------------------------------------------- */

/* What its memory says of who they are a process of it may have written. */
static int ours_add(struct guests *g)
{
	const struct version *v = g->version;
	DIR *proc = opendir("/proc");
	const struct dirent *e;
	int result = proc ? 0 : -errno;

	while (!result && (e = readdir(proc))) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid > 0 && process_began(pid) >= v->began && version_owns(v, pid, pid))
			result = guest_add(g, pid);
	}
	if (proc)
		closedir(proc);
	return result ? result : g->n ? 0 : -ESRCH;
}

static bool is_made(const struct map *m)
{
	return shared_is_ours(m->dev, m->inode);
}

static uint64_t image_find(const struct maps *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		if (!maps->map[i].offset && map_is_insides(&maps->map[i]) && is_made(&maps->map[i]))
			return maps->map[i].start;
	return 0;
}

static int host_read(struct guest *g, struct host *h)
{
	const struct inside_image *im = inside_image();
	struct maps maps = { 0 };
	int result = maps_read(g->pid, &maps);

	g->base = result ? 0 : image_find(&maps);
	maps_free(&maps);
	if (!result && !g->base)
		result = -ENOENT;
	if (!result)
		result = memory_read(g->memory, g->base + im->boot, &h->boot, sizeof(h->boot));
	if (!result)
		result = memory_read(g->memory, g->base + im->own_taken, &h->own_taken,
				     sizeof(h->own_taken));
	if (!result && h->boot.magic != BOOT_MAGIC)
		result = -EPROTO;
	return !result && h->boot.rooms > BOOT_ROOMS ? -EOVERFLOW : result;
}

static bool is_within(uint64_t at, uint64_t from, uint64_t len)
{
	return at >= from && at - from < len;
}

/* Code of ours, or a board: what lies where none is was left by a session before. */
static bool is_ours(const struct guest *g, const struct host *h, uint64_t at)
{
	bool ours = is_within(at, g->base, inside_image()->memory_len) ||
		    is_within(at, h->boot.boards, h->boot.boards_used);

	for (uint64_t i = 0; i < h->boot.rooms; i++)
		ours |= is_within(at, h->boot.room[i].at, h->boot.room[i].used);
	return ours;
}

/* --- threads in C code of ours ------------------------------------------------------------- */

/* One that has just been made has its parent's block, until it takes its own. */
static bool is_its_block(const struct guest *g, const struct stander *s)
{
	int32_t tid = 0;

	return !memory_read(g->memory, s->block + inside_image()->tid_at, &tid, sizeof(tid)) &&
	       tid == s->tid;
}

static bool is_busy(const struct guest *g, const struct stander *s)
{
	uint8_t busy = 1;

	return !is_its_block(g, s) || is_within(s->regs.rsp, s->block, BLOCK_BYTES) ||
	       memory_read(g->memory, s->block + T_BUSY, &busy, 1) || busy;
}

/* It stands at the end of its call: its registers are those of the program. */
static bool has_come(const struct guest *g, struct stander *s)
{
	struct attach_back b;

	if (memory_read(g->memory, s->block + ATTACH_BACK, &b, sizeof(b)) ||
	    b.stands != (uint64_t)s->tid)
		return false;
	s->came = true;
	s->regs.rax = b.rax, s->regs.rbx = b.rbx, s->regs.rcx = b.rcx, s->regs.rdx = b.rdx;
	s->regs.rsi = b.rsi, s->regs.rdi = b.rdi, s->regs.rbp = b.rbp, s->regs.rsp = b.rsp;
	s->regs.r8 = b.r8, s->regs.r9 = b.r9, s->regs.r10 = b.r10, s->regs.r11 = b.r11;
	s->regs.r12 = b.r12, s->regs.r13 = b.r13, s->regs.r14 = b.r14, s->regs.r15 = b.r15;
	s->regs.eflags = b.flags, s->regs.rip = b.rip;
	s->mask = b.mask;
	return true;
}

/* One that has come has done so in C code. */
static bool is_under_way(const struct guest *g, const struct host *h, struct stander *s)
{
	if (s->came)
		return false;
	if (is_busy(g, s))
		return !has_come(g, s);
	return h->boot.streams && alone_passes(g, s->regs.rip);
}

/*
 * How many have yet to come.  So has one that a signal of ours waits for: a mark that it has
 * met, or a knock, would end the program.
 */
static unsigned busy_count(struct guest *g, const struct host *h)
{
	unsigned busy = 0;

	for (unsigned i = 0; i < g->crowd.n; i++) {
		struct stander *s = &g->crowd.stander[i];

		s->block = s->regs.gs_base ? s->regs.gs_base : s->block;
		s->busy = (stander_waits(&g->crowd, s->tid) & HIDDEN) || is_under_way(g, h, s);
		busy += s->busy;
	}
	return busy;
}

static int leaving_say(struct guest *g, uint32_t leaving)
{
	return guest_word(g, offsetof(struct boot, leaving), leaving);
}

/*
 * A handler of ours that has just begun is run to its end: one who gets signal after signal
 * would be met in one again and again.  True: it has left it.
 */
static bool handler_left(struct guest *g, unsigned who)
{
	struct stander *s = &g->crowd.stander[who];
	uint64_t until_us = now_us() + HANDLER_US;
	bool within = is_within(s->regs.rsp, s->block + BLOCK_STACK, BLOCK_BYTES - BLOCK_STACK);
	bool began = within;

	while (within && !crowd_step_call(&g->crowd, who, until_us))
		within = is_within(s->regs.rsp, s->block + BLOCK_STACK, BLOCK_BYTES - BLOCK_STACK);
	return began && !within;
}

/* Those that are in C code go on for a while. */
static int busy_run(struct guest *g, unsigned round, uint64_t until_us)
{
	uint64_t run_us = round < 16 ? (uint64_t)ROUND_US << round / 2 : ROUND_MOST_US;
	struct crowd *c = &g->crowd;
	int result = 0;

	for (unsigned i = 0; i < c->n; i++)
		if (c->stander[i].busy && !handler_left(g, i)) {
			if (round % KNOCK_ROUNDS == 0)
				thread_knock(g->pid, c->stander[i].tid);
			crowd_let(c, i);
		}
	crowd_pass(c, now_us() + (run_us < ROUND_MOST_US ? run_us : ROUND_MOST_US));
	for (unsigned i = c->n; i-- && !result;)
		if (c->stander[i].runs)
			result = crowd_catch(c, i, until_us);
	return result ? result : crowd_look(c, until_us);
}

static const char *pending_word(const struct guest *g, const struct stander *s)
{
	uint8_t pending = 0;

	memory_read(g->memory, s->block + T_PENDING, &pending, 1);
	return pending ? "one is held" : "none is held";
}

static void busy_say(const struct guest *g)
{
	for (unsigned i = 0; i < g->crowd.n; i++) {
		const struct stander *s = &g->crowd.stander[i];

		if (s->busy)
			say_log("attach", "%d: thread %d does not come: at %#lx of the inside, rax "
				"%ld, signals %#lx, %s", g->pid, s->tid,
				(unsigned long)(s->regs.rip - g->base), (long)s->regs.rax,
				stander_waits(&g->crowd, s->tid), pending_word(g, s));
	}
}

/* 0: all threads are where they can leave from. */
static int rounds(struct monitor *m, struct guests *g, const struct host *host)
{
	uint64_t until_us = now_us() + ROUNDS_MS * 1000;
	unsigned busy = 1, round = 0;
	int result = 0;

	for (; busy && !result; round++) {
		busy = 0;
		for (unsigned i = 0; i < g->n && !result; i++) {
			unsigned of_one = busy_count(&g->guest[i], &host[i]);

			busy += of_one;
			if (of_one)
				result = leaving_say(&g->guest[i], 1);
			if (of_one && !result)
				result = busy_run(&g->guest[i], round,
						  until_us + STOP_MS * 1000);
		}
		serve_requests(m);	/* one may wait for an answer */
		if (!result && busy && now_us() > until_us)
			result = -EBUSY;
	}
	for (unsigned i = 0; result && i < g->n; i++)
		busy_say(&g->guest[i]);
	return result;
}

/* --- out of the gate ---------------------------------------------------------------------- */

static int regs_leave(struct guest *g, unsigned who)
{
	struct user_regs_struct *r = &g->crowd.stander[who].regs;
	struct attach_regs a = { r->r8, r->r9, r->r10, r->r11, r->r12, r->r13, r->r14, r->r15,
				 r->rdi, r->rsi, r->rbp, r->rbx, r->rdx, r->rax, r->rcx, r->rsp,
				 r->rip, r->eflags };
	int result = guest_table_write(g, &a, offsetof(struct attach, regs), sizeof(a));

	if (!result)
		result = guest_step(g, who, DETACH_LEAVE);
	if (!result)
		result = guest_table_read(g, &a, offsetof(struct attach, regs), sizeof(a));
	if (result)
		return result;
	r->r8 = a.r8, r->r9 = a.r9, r->r10 = a.r10, r->r11 = a.r11;
	r->r12 = a.r12, r->r13 = a.r13, r->r14 = a.r14, r->r15 = a.r15;
	r->rdi = a.rdi, r->rsi = a.rsi, r->rbp = a.rbp, r->rbx = a.rbx;
	r->rdx = a.rdx, r->rax = a.rax, r->rcx = a.rcx, r->rsp = a.rsp;
	r->rip = a.rip, r->eflags = a.flags;
	return stander_set(&g->crowd.stander[who], r, g->crowd.stander[who].mask);
}

/* In the midst of a board: an instruction of it is run. */
static int stander_leave(struct guest *g, const struct host *h, unsigned who)
{
	struct stander *s = &g->crowd.stander[who];
	int result = 0;

	for (int i = 0; i < STEPS_MAX && !result && is_ours(g, h, s->regs.rip); i++) {
		result = regs_leave(g, who);
		if (!result && is_ours(g, h, s->regs.rip))
			result = crowd_step(&g->crowd, who);
	}
	return result ? result : is_ours(g, h, s->regs.rip) ? -EBUSY : 0;
}

/* --- all of it -------------------------------------------------------------------------------- */

/* It may have been changed. */
static bool is_programs(const struct map *m)
{
	return m->exec && !is_made(m);
}

/* Their plans say where; one that is no longer kept is made again, while the server serves. */
static bool is_planned(pid_t pid)
{
	struct maps maps = { 0 };
	bool planned = true;
	struct plan *p;

	maps_read(pid, &maps);
	for (size_t i = 0; i < maps.n; i++) {
		const struct map *m = &maps.map[i];
		int result = is_programs(m) && m->inode && !patch_kept(m) ?
			     patch_plan(pid, -1, m, &p) : -ENOENT;

		planned &= result != -EAGAIN;
		if (!result)
			plan_free(p);
	}
	maps_free(&maps);
	return planned;
}

static int code_end(struct guest *g)
{
	struct maps maps = { 0 };
	int result = maps_read(g->pid, &maps), one;

	for (size_t i = 0; i < maps.n; i++)
		if (is_programs(&maps.map[i]) &&
		    (one = patch_undo(g->pid, g->memory, &maps.map[i])))
			result = one;
	maps_free(&maps);
	return result;
}

/* Hidden signals that the program blocks are blocked again. */
static int masks_end(struct guest *g)
{
	int result = 0;

	for (unsigned i = 0; i < g->crowd.n && !result; i++) {
		struct stander *s = &g->crowd.stander[i];
		struct user_regs_struct regs = s->regs;
		struct attach_row row;

		result = guest_table_read(g, &row, offsetof(struct attach, thread) +
					  i * sizeof(row), sizeof(row));
		regs.gs_base = 0;
		if (!result)
			result = stander_set(s, &regs, s->mask | row.mask);
	}
	return result;
}

static void unmap(struct guest *g, uint64_t at, uint64_t len)
{
	if (at && len)
		REMOTE(g->remote, SYS_munmap, at, len);
}

static void memory_end(struct guest *g, const struct host *h)
{
	uint64_t image = inside_image()->memory_len, room = LIBRARY_BOARDS + BLOCK_BYTES;
	uint64_t own = (h->boot.text - OWN_BELOW) & ~0xfffull;

	for (uint64_t i = 0; i < h->boot.rooms; i++)
		unmap(g, h->boot.room[i].at, h->boot.room[i].len);
	unmap(g, h->boot.area, AREA_ROOM);
	unmap(g, h->boot.brief, BRIEF_ROOM);
	unmap(g, h->boot.shelf, h->boot.shelf_len);
	if (h->own_taken < OWN_BELOW)
		unmap(g, own - h->own_taken, h->own_taken);
	unmap(g, g->base, image + room);
}

/* Where a thread is, or behind the call that it is at. */
static bool is_rip(const struct guest *g, uint64_t at)
{
	for (unsigned i = 0; i < g->crowd.n; i++)
		if (at - g->crowd.stander[i].regs.rip <= CALL_LEN)
			return true;
	return false;
}

/*
 * A handler of the program's has interrupted a call, or a lock function was called by the lock
 * gate, and would come back to us.
 */
static bool is_awaited(struct guest *g, const struct host *h)
{
	struct maps maps = { 0 };
	struct places p = { 0 };
	bool awaited = true;

	if (!maps_read(g->pid, &maps) && !places_find(g, &maps, &p)) {
		awaited = h->boot.streams && alone_is_led(g);
		for (size_t i = 0; i < p.n && !awaited; i++) {
			awaited = is_ours(g, h, p.at[i]) && !is_rip(g, p.at[i]) &&
				  !(h->boot.streams && alone_is_stale(g, p.at[i]));
			if (awaited)
				say_log("attach", "%d: comes back to %#lx of the inside", g->pid,
					(unsigned long)(p.at[i] - g->base));
		}
	}
	maps_free(&maps);
	free(p.at);
	return awaited;
}

static int host_end(struct guest *g, const struct host *h)
{
	int result = guest_steps(g, DETACH_DISARM);

	if (!result)
		result = guest_table(g);
	for (unsigned i = 0; i < g->crowd.n && !result; i++)
		if (!g->crowd.stander[i].came)
			result = stander_leave(g, h, i);
	if (!result)
		result = guest_step(g, 0, DETACH_ACTIONS);
	if (!result)
		result = guest_steps(g, DETACH_THREAD);
	if (!result)
		result = masks_end(g);
	if (!result)
		memory_end(g, h);
	return result;
}

/* From here on there is no way back. */
static int host_leave(struct guest *g, const struct host *h)
{
	int result = guest_word(g, offsetof(struct boot, between), 1);

	g->leaves = true;
	if (!result)
		result = code_end(g);
	return result ? result : host_end(g, h);
}

/* Nothing came to be of it but what is mapped. */
static int maps_drop(struct guest *g)
{
	struct maps maps = { 0 };
	int result = maps_read(g->pid, &maps);

	for (size_t i = 0; i < maps.n; i++)
		if (is_made(&maps.map[i]))
			unmap(g, maps.map[i].start, maps.map[i].end - maps.map[i].start);
	maps_free(&maps);
	return result;
}

int guest_leave(struct guest *g)
{
	struct remote remote;
	struct host host;
	int result = guest_open(g, &remote);

	if (result)
		return result;
	result = host_read(g, &host);
	if (!result)
		result = host_leave(g, &host);
	else if (result == -ENOENT || result == -EPROTO)
		result = maps_drop(g);
	guest_close(g);
	return result;
}

/* --- from the first look on --------------------------------------------------------------- */

static bool refuse_result(struct attach_done *done, int result)
{
	if (result == -EOVERFLOW)
		return attach_refuse(done, "its files lie too far apart", "mve stop ends it");
	if (result == -ENOEXEC)
		return attach_refuse(done, "it has executed a program that may call by the "
				     "vsyscall page, which a filter holds for good",
				     "try again when that has ended; mve stop ends all");
	if (result == -ELIBEXEC)
		return attach_refuse(done, "it has executed a program while it was followed",
				     "try again when that has ended; mve stop ends all");
	if (result == -ESRCH)
		return attach_refuse(done, "none of its processes is there", "mve ps shows it");
	if (result == -EIO)
		return attach_refuse(done, "a process could not be left whole", "it serves on");
	return attach_refuse(done, result == -EBUSY || result == -ETIME ?
			     "a thread is in a call that does not end" : strerror(-result),
			     "try again");
}

/* A process that has no room for calls cannot be left. */
static int all_open(struct guests *g, struct remote *remote, struct host *host)
{
	int result = 0;

	for (unsigned i = 0; i < g->n && !result; i++) {
		result = guest_open(&g->guest[i], &remote[i]);
		if (!result)
			result = host_read(&g->guest[i], &host[i]);
		if (!result && (!host[i].boot.attached || host[i].boot.filtered))
			result = host[i].boot.filtered ? -ENOEXEC : -ELIBEXEC;
	}
	return result;
}

static void all_close(struct guests *g)
{
	for (unsigned i = 0; i < g->n; i++)
		if (g->guest[i].memory >= 0)
			guest_close(&g->guest[i]);
}

static bool any_awaited(struct guests *g, const struct host *host)
{
	for (unsigned i = 0; i < g->n; i++)
		if (is_awaited(&g->guest[i], &host[i]))
			return true;
	return false;
}

/* All threads can leave; else all is as it was. */
static int all_come(struct monitor *m, struct guests *g, const struct host *host)
{
	int result = rounds(m, g, host);

	if (!result && any_awaited(g, host))
		result = -EAGAIN;
	for (unsigned i = 0; result && i < g->n; i++)
		leaving_say(&g->guest[i], 0);
	return result;
}

/*
 * There is no way back.  Each goes on as soon as it is left, whatever comes of the others; the
 * first that cannot be left whole is the answer.
 */
static int all_leave(struct guests *g, const struct host *host, struct attach_done *done)
{
	int all = 0;

	for (unsigned i = 0; i < g->n; i++) {
		struct guest *one = &g->guest[i];
		int result = host_leave(one, &host[i]);

		if (result)
			say_error("it goes on, held in part", "cannot leave all of pid %d: %s",
				  one->pid, strerror(-result));
		all = all ? all : result;
		done->processes++;
		done->threads += one->crowd.n;
		guest_close(one);
		crowd_release(&one->crowd);
	}
	return all ? -EIO : 0;
}

/* All of them stand. */
static int stood_leave(struct monitor *m, struct guests *g, struct attach_done *done)
{
	struct remote *remote = calloc(g->n, sizeof(*remote));
	struct host *host = calloc(g->n, sizeof(*host));
	int result;

	MUST(remote && host);
	result = all_open(g, remote, host);
	if (!result)
		result = all_come(m, g, host);
	if (result == -ESRCH)
		result = -EAGAIN;	/* a child has ended meanwhile */
	if (!result)
		result = all_leave(g, host, done);
	all_close(g);
	free(remote);
	free(host);
	return result;
}

static int detach_once(struct monitor *m, struct guests *g, struct attach_done *done)
{
	uint64_t from;
	int result;

	*g = (struct guests){ .more = ours_add, .version = leading(m) };
	result = ours_add(g);
	for (unsigned i = 0; i < g->n && !result; i++)
		result = is_planned(g->guest[i].pid) ? 0 : -EAGAIN;
	from = now_us();	/* until here it serves */
	if (!result && m->conduct && !alone_begin(m))
		result = -EAGAIN;
	if (!result)
		result = guests_stop(g, now_us() + STOP_MS * 1000);
	if (!result) {
		result = stood_leave(m, g, done);
		guests_go(g);
	}
	done->stood_us = now_us() - from;
	return result;
}

/* Programs on their way through execve come to their beginning; false: one does not soon. */
static bool programs_begin(struct monitor *m)
{
	uint64_t until_us = now_us() + EXEC_MS * 1000;

	while (exec_any(m) && now_us() < until_us) {
		serve_all(m);
		exec_children(m);	/* planners may have come back */
		usleep(EXEC_LOOK_US);
	}
	return !exec_any(m);
}

/* -EAGAIN: there was no moment for it. */
static int detach_often(struct monitor *m, struct attach_done *done)
{
	struct guests *g = calloc(1, sizeof(*g));
	int result = -EAGAIN;

	MUST(g);
	for (int i = 0; i < AGAIN && result == -EAGAIN; i++) {
		if (!programs_begin(m))
			break;
		result = detach_once(m, g, done);
		past_stood(m, PAUSE_detach, done->stood_us);
		if (result == -EAGAIN) {
			usleep(AGAIN_US);
			exec_children(m);	/* planners may have come back */
		}
	}
	free(g);
	return result;
}

bool detach(struct monitor *m, struct attach_done *done)
{
	const char *why, *hint;
	int result;

	*done = (struct attach_done){ 0 };
	if (!m->options->attach)
		return attach_refuse(done, "mve run has begun it", "mve stop ends it");
	why = m->conduct ? alone_barred(m, &hint) : NULL;
	if (why)
		return attach_refuse(done, why, hint);
	result = detach_often(m, done);
	if (result && m->conduct)
		alone_end(m);
	if (result == -EAGAIN && exec_any(m))
		return attach_refuse(done, "a program is being started", "try again");
	if (result == -EAGAIN)
		return attach_refuse(done, "a signal handler that interrupted a call has not "
				     "returned, a thread waits for a lock since it was followed, "
				     "or its files are not planned yet", "try again");
	if (result)
		return refuse_result(done, result);
	m->detached = true;
	say_error(NULL, "%s: pid %d goes on without mve: %u process%s, %u thread%s, stood for "
		  "%.1f ms", m->session.name, leading(m)->server, done->processes,
		  done->processes > 1 ? "es" : "", done->threads, done->threads > 1 ? "s" : "",
		  (double)done->stood_us / 1000);
	return true;
}
