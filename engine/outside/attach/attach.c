/*
 * A session around a server that runs.  All of its processes are asked whether they may be
 * (may.c), their files are planned, and only then do they stand: all threads of all, by
 * ptrace.  Into each is put what a fresh program is given (start/inject.c), by calls made in
 * the name of its first thread; each thread is sent through the steps of the inside by which it
 * gets its block (guest.c); the signals' actions become ours; and last the code is patched.
 *
 * In this order nothing comes to us before there is one to come to: whenever we are killed,
 * the server goes on, held by what is in place already, or as it was.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/attach/attach.h"
#include "engine/outside/attach/attach_parts.h"
#include "engine/outside/attach/guest.h"
#include "engine/outside/attach/may.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/late/past.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/patch/patch.h"
#include "engine/outside/session/memory.h"
#include "engine/outside/start/exec.h"
#include "engine/outside/start/image.h"
#include "engine/outside/takeover/takeover.h"

#define STOP_MS		500	/* a thread that waits for a disk stands when it has it */

/* --- whom ------------------------------------------------------------------------------- */

/* Its files are planned while it runs. */
static void plan_all(pid_t pid)
{
	struct maps maps = { 0 };

	inject_planned(pid, false, &maps);
	maps_free(&maps);
}

static bool refuse_result(struct attach_done *done, const char *what, int result)
{
	snprintf(done->why, sizeof(done->why), "%s: %s", what,
		 result == -ETIME ? "a thread does not stand" : strerror(-result));
	done->hint = result == -ETIME ? "it waits for a disk, or the machine is busy: try again" :
		     "mve doctor shows what this machine lacks";
	return false;
}

/* --- one of them -------------------------------------------------------------------------- */

static int blocks_take(struct guest *g)
{
	int result = 0;

	for (unsigned i = 0; i < g->crowd.n && !result; i++) {
		struct attach_row row;

		result = guest_table_read(g, &row, offsetof(struct attach, thread) +
					  i * sizeof(row), sizeof(row));
		if (!result && !row.block)
			result = -ENOMEM;
		g->crowd.stander[i].block = row.block;
	}
	return result;
}

/* Our signals get through from here on: no code asks for them yet. */
static int masks_open(struct guest *g)
{
	int result = 0;

	for (unsigned i = 0; i < g->crowd.n && !result; i++) {
		struct stander *s = &g->crowd.stander[i];

		result = stander_set(s, &s->regs, s->mask & ~HIDDEN);
	}
	return result;
}

static int threads_begin(struct guest *g, struct injection *in)
{
	int result;

	g->base = in->base;
	g->crowd.stander[0].block = in->block;
	result = guest_step(g, 0, ATTACH_BEGIN);
	if (!result)
		result = blocks_take(g);
	if (!result)
		result = guest_steps(g, ATTACH_THREAD);
	if (!result)
		result = masks_open(g);
	return result ? result : guest_step(g, 0, ATTACH_ACTIONS);
}

/* Pages with bytes that nothing explains are watched; else the kernel is to look. */
static int seal_begin(struct guest *g, struct injection *in)
{
	uint32_t guards = in->boot.sealed == SEAL_WHOLE ? in->sum.guards : 0, unwatched = 0;
	int result = guest_table_write(g, &guards, offsetof(struct attach, guards),
				       sizeof(guards));

	if (!result)
		result = guest_table_write(g, in->sum.guard, offsetof(struct attach, guard),
					   sizeof(in->sum.guard));
	if (!result && guards)
		result = guest_step(g, 0, ATTACH_WATCH);
	if (!result)
		result = guest_table_read(g, &unwatched, offsetof(struct attach, unwatched),
					  sizeof(unwatched));
	if (!result && unwatched) {
		in->boot.sealed = in->want->row->sealed = SEAL_BROKEN;
		result = inject_boot(in);
	}
	guest_table_end(g);
	return result || in->boot.sealed == SEAL_WHOLE ? result : guest_steps(g, ATTACH_ARM);
}

static int code_begin(struct guest *g, struct injection *in)
{
	struct places p;
	int result = places_find(g, &in->maps, &p);

	in->sum.stood = p.at;
	in->sum.stoods = p.n;
	for (size_t i = 0; i < in->maps.n && !result; i++)
		if (in->maps.map[i].exec)
			result = patch_keep(g->pid, g->memory, &in->maps.map[i]);
	if (!result)
		result = inject_patch(in);
	free(p.at);
	return result ? result : seal_begin(g, in);
}

/*
 * Who stands before a call comes to the gate with it at once: by the mark that now stands there
 * it would come by a signal, and behind one the kernel does not know how long it has slept.
 */
static int calls_go_on(struct guest *g)
{
	int result = 0;

	for (unsigned i = 0; i < g->crowd.n && !result; i++) {
		struct stander *s = &g->crowd.stander[i];
		struct user_regs_struct regs = s->regs;

		if (!s->again)
			continue;
		regs.rcx = regs.rip + CALL_LEN;
		regs.rip = g->base + inside_image()->gate_net;
		result = stander_set(s, &regs, s->mask);
	}
	return result;
}

static int guest_begin(struct guest *g, struct version *v)
{
	struct injection *in = calloc(1, sizeof(*in));
	struct maps none = { 0 };
	struct inject_want want;
	int result;

	MUST(in && g->crowd.n);
	want = exec_want(v);
	want.maps = &none;
	in->want = &want;
	result = guest_open(g, &in->r);
	if (!result) {
		result = guest_table(g);
		if (!result)
			result = inject_running(in);
		if (!result)
			result = threads_begin(g, in);
		if (!result)
			result = code_begin(g, in);
		if (!result)
			result = guest_word(g, offsetof(struct boot, between), 0);
		guest_close(g);
		if (!result)
			result = calls_go_on(g);
	}
	if (!result)
		exec_attached(v, g->pid, want.row->inside);
	maps_free(&in->maps);
	free(in);
	return result;
}

/* --- all -------------------------------------------------------------------------------- */

/* Of one that stands; a child that has come since the others were asked is asked here. */
static struct attach_no guest_may(const struct guest *g)
{
	struct attach_no no = { 0 };

	if (!g->asked)
		no = attach_may(g->pid);
	for (unsigned k = 0; k < g->crowd.n && !no.why; k++)
		no = attach_may_still(g->crowd.stander[k].tid);
	return no;
}

/* Calls can be made in its name. */
static int guest_try(struct guest *g)
{
	struct remote remote;
	int result = guest_open(g, &remote);

	if (!result)
		guest_close(g);
	return result;
}

static bool still_may(struct guests *g, struct attach_done *done)
{
	for (unsigned i = 0; i < g->n; i++) {
		struct attach_no no = guest_may(&g->guest[i]);
		int result = no.why ? 0 : guest_try(&g->guest[i]);

		if (no.why)
			return attach_refuse(done, no.why, no.hint);
		if (result)
			return refuse_result(done, "no call can be made in its name", result);
	}
	return true;
}

/* As far as they were begun; the last one is so in part, or not at all. */
static void all_undo(struct guests *g, unsigned begun)
{
	MUST(begun <= g->n);
	for (unsigned i = 0; i < begun; i++) {
		int result = guest_leave(&g->guest[i]);

		if (result)
			say_error("it goes on, held in part", "cannot leave all of pid %d: %s",
				  g->guest[i].pid, strerror(-result));
		crowd_release(&g->guest[i].crowd);
	}
}

static bool all_begin(struct guests *g, struct version *v, struct attach_done *done)
{
	int result = 0;

	if (!still_may(g, done))
		return false;
	for (unsigned i = 0; i < g->n && !result; i++) {
		result = guest_begin(&g->guest[i], v);
		done->threads += g->guest[i].crowd.n;
		done->processes++;
	}
	if (!result)
		return true;
	all_undo(g, done->processes);
	return refuse_result(done, "it cannot be held", result);
}

/* All that can be asked before is. */
static bool all_may(struct guests *g, struct attach_done *done)
{
	int result = guests_children(g);

	if (result)
		return refuse_result(done, "its children", result);
	for (unsigned i = 0; i < g->n; i++) {
		struct attach_no no = attach_may(g->guest[i].pid);

		if (i && no.why && !thread_has_memory(g->guest[i].pid, g->guest[i].pid)) {
			g->guest[i--] = g->guest[--g->n];	/* a child has ended */
			continue;
		}
		if (no.why)
			return attach_refuse(done, no.why, no.hint);
		plan_all(g->guest[i].pid);
		g->guest[i].asked = true;
	}
	return true;
}

static bool attach_tree(struct guests *g, struct version *v, struct attach_done *done)
{
	uint64_t from;
	bool all;
	int result;

	if (!all_may(g, done))
		return false;
	from = now_us();
	result = guests_stop(g, from + STOP_MS * 1000);
	if (result)
		return refuse_result(done, "it does not stand still", result);
	if (g->guest[0].pid != v->server) {
		guests_go(g);
		return attach_refuse(done, "it has ended", "its children go on");
	}
	all = all_begin(g, v, done);
	guests_go(g);
	done->stood_us = now_us() - from;
	return all;
}

static int attach_fail(pid_t pid, const struct attach_done *done)
{
	say_error(done->hint, "cannot attach to %d: %s", pid, done->why);
	return EXIT_NO;
}

bool attach_check(pid_t pid)
{
	struct attach_no no = attach_may(pid);
	struct attach_done done = { .hint = no.hint };

	if (no.why) {
		snprintf(done.why, sizeof(done.why), "%s", no.why);
		attach_fail(pid, &done);
	}
	return !no.why;
}

int attach_start(struct monitor *m)
{
	struct guests *g = calloc(1, sizeof(*g));
	struct version *v = &m->version[0];
	struct attach_done done = { 0 };
	bool attached;

	MUST(g && v->state == VERSION_STARTING && !m->conduct);
	patch_keeps();
	g->more = guests_children;
	guest_add(g, m->options->attach);
	v->server = m->options->attach;
	v->began = g->guest[0].began;
	attached = attach_tree(g, v, &done);
	free(g);
	if (!attached)
		return attach_fail(m->options->attach, &done);
	v->state = VERSION_LEADS;
	past_stood(m, PAUSE_attach, done.stood_us);
	m->session.server = v->server;
	m->session.server_began = v->began;
	session_note(m);
	say_error(NULL, "%s: holds pid %d: %u process%s, %u thread%s, stood for %.1f ms",
		  m->session.name, v->server, done.processes, done.processes > 1 ? "es" : "",
		  done.threads, done.threads > 1 ? "s" : "", (double)done.stood_us / 1000);
	return 0;
}

/* It is no child of ours: nobody says how it ended. */
int attach_result(struct monitor *m)
{
	if (m->detached)
		return EXIT_OK;
	say_error(NULL, "%s: pid %d has ended", m->session.name, leading(m)->server);
	/* As it was asked to, by mve stop. */
	return m->stopping ? EXIT_OK : EXIT_NO;
}
