/*
 * Connections: what descriptors lead to, see conns.h.  Each process has a table of its sockets; a
 * socket is counted by the descriptors that lead to it, and its connection ends with the last.
 * Nothing of a recording is believed: what makes no sense leaves a connection without an end.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/abi/table.h"
#include "engine/core/must.h"
#include "engine/mve/log/conns_parts.h"

/* --- processes ---------------------------------------------------------------------- */

static void conn_end(struct conns *all, struct conn *c, uint64_t time_ns)
{
	MUST(!c->ended);
	c->ended = true;
	c->ended_ns = time_ns;
	if (all->user.ended)
		all->user.ended(all->user.ctx, c);
	free(c);
}

void socket_drop(struct conns *all, struct socket *s)
{
	MUST(s->refs);
	if (--s->refs)
		return;
	if (s->conn)
		conn_end(all, s->conn, all->now_ns);
	free(s);
}

struct held *held_at(const struct process *p, uint64_t fd)
{
	return p && fd < p->size && p->held[fd].socket ? &p->held[fd] : NULL;
}

struct socket *socket_at(const struct process *p, uint64_t fd)
{
	struct held *h = held_at(p, fd);

	return h ? h->socket : NULL;
}

void descriptor_close(struct conns *all, struct process *p, uint64_t fd)
{
	struct held *h = held_at(p, fd);
	struct socket *s = h ? h->socket : NULL;

	if (!s)
		return;
	h->socket = NULL;
	socket_drop(all, s);
}

void descriptor_put(struct conns *all, struct process *p, uint64_t fd, struct socket *s,
			   bool cloexec)
{
	s->refs++;
	descriptor_close(all, p, fd);
	if (fd >= DESCRIPTORS_MOST) {
		socket_drop(all, s);
		return;
	}
	if (fd >= p->size) {
		size_t size = (size_t)fd * 2 + 64;

		p->held = realloc(p->held, size * sizeof(*p->held));
		MUST(p->held);
		memset(p->held + p->size, 0, (size - p->size) * sizeof(*p->held));
		p->size = size;
	}
	p->held[fd] = (struct held){ s, cloexec };
}

static struct process *process_new(struct conns *all, const struct process *like)
{
	struct process *p = calloc(1, sizeof(*p));

	MUST(p);
	p->next = all->process;
	all->process = p;
	for (size_t fd = 0; like && fd < like->size; fd++)
		if (like->held[fd].socket)
			descriptor_put(all, p, fd, like->held[fd].socket, like->held[fd].cloexec);
	return p;
}

static void process_drop(struct conns *all, struct process *p)
{
	struct process **at = &all->process;

	MUST(p->refs);
	if (--p->refs)
		return;
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	for (size_t fd = 0; fd < p->size; fd++)
		descriptor_close(all, p, fd);
	free(p->held);
	free(p);
}

static void lane_set(struct conns *all, struct lane_of *l, struct process *p,
		     struct process *parent)
{
	struct lane_of was = *l;

	if (p)
		p->refs++;
	if (parent)
		parent->refs++;
	*l = (struct lane_of){ p, parent };
	if (was.process)
		process_drop(all, was.process);
	if (was.parent)
		process_drop(all, was.parent);
}

static struct process *process_find(const struct conns *all, int32_t pid)
{
	struct process *p = all->process;

	while (p && p->pid != pid)
		p = p->next;
	return p;
}

/* Whose lane it is: known from the call that made it, or by its pid. */
static struct process *process_of(struct conns *all, const struct told *t)
{
	struct lane_of *l = &all->lane[t->lane];
	struct process *p = l->process;

	MUST(t->lane < LANES);
	if (p && (p->pid == t->pid || !p->pid)) {
		p->pid = t->pid;
		return p;
	}
	p = process_find(all, t->pid);
	if (!p) {
		p = process_new(all, l->parent);	/* of a vfork, or the first one */
		p->pid = t->pid;
	}
	lane_set(all, l, p, NULL);
	return p;
}

/* A fork's child has what its parent has now; of others it is not known what they are. */
static void birth_take(struct conns *all, struct process *p, const struct event *e)
{
	struct lane_of *l = &all->lane[e->arg[0] % LANES];

	if (e->result <= 0 || e->arg[0] >= LANES)
		return;
	lane_set(all, l, e->arg[2] ? process_new(all, p) : NULL, e->arg[2] ? NULL : p);
}

static void exec_take(struct conns *all, struct process *p, int64_t outcome)
{
	for (size_t fd = 0; fd < p->size && outcome >= 0; fd++)
		if (p->held[fd].cloexec)
			descriptor_close(all, p, fd);
}

/* --- all of it ------------------------------------------------------------------------ */

struct conn *conns_take(struct conns *all, const struct told *t, bool over)
{
	struct process *p = over ? NULL : process_of(all, t);

	MUST(t->lane < LANES);
	all->now_ns = t->time_ns > all->now_ns ? t->time_ns : all->now_ns;
	all->about = (struct conn){ 0 };
	if (over)
		lane_set(all, &all->lane[t->lane], NULL, NULL);
	else if (t->event->kind == EVENT_EXEC)
		exec_take(all, p, t->event->result);
	else if (t->event->kind == EVENT_CALL && call_bears(call_find(t->event->call)))
		birth_take(all, p, t->event);
	else if (t->event->kind == EVENT_CALL)
		all->about = call_take(all, p, t);
	return all->about.number ? &all->about : NULL;
}

struct conns *conns_new(const struct conns_user *user)
{
	struct conns *all = calloc(1, sizeof(*all));

	MUST(all);
	all->user = *user;
	return all;
}

void conns_free(struct conns *all, uint64_t time_ns)
{
	all->now_ns = time_ns > all->now_ns ? time_ns : all->now_ns;
	for (unsigned i = 0; i < LANES; i++)
		lane_set(all, &all->lane[i], NULL, NULL);
	MUST(!all->process);
	free(all);
}
