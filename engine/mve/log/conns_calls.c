/*
 * Connections: what calls do to sockets, and what goes over them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "engine/abi/table.h"
#include "engine/core/must.h"
#include "engine/mve/log/conns_parts.h"

/* --- addresses ------------------------------------------------------------------------ */

/* Who accepts need not ask who it is; no port is 0. */
bool address_known(const struct address *a)
{
	return a->port || (a->family != AF_INET && a->family != AF_INET6);
}

const char *address_text(const struct address *a, char text[ADDRESS_TEXT])
{
	char ip[INET6_ADDRSTRLEN] = "";

	if (!address_known(a))
		return strcpy(text, "unknown");
	if (a->family == AF_INET || a->family == AF_INET6)
		inet_ntop(a->family, a->ip, ip, sizeof(ip));
	snprintf(text, ADDRESS_TEXT, a->family == AF_INET6 ? "[%s]:%u" :
		 a->family == AF_INET ? "%s:%u" : a->family == AF_UNIX ? "unix" : "?", ip, a->port);
	return text;
}

static void address_read(struct address *a, const struct part *p)
{
	const struct sockaddr_in6 *six;
	struct sockaddr_storage s = { 0 };
	const struct sockaddr_in *in = (const struct sockaddr_in *)&s;

	memcpy(&s, p->bytes, p->have < sizeof(s) ? p->have : sizeof(s));
	*a = (struct address){ .family = s.ss_family };
	six = (const struct sockaddr_in6 *)&s;
	if (s.ss_family == AF_INET) {
		a->port = ntohs(in->sin_port);
		memcpy(a->ip, &in->sin_addr, sizeof(in->sin_addr));
	} else if (s.ss_family == AF_INET6) {
		a->port = ntohs(six->sin6_port);
		memcpy(a->ip, &six->sin6_addr, sizeof(six->sin6_addr));
	}
}

/* The address among a call's arguments, or of one of its messages; false: there is none. */
static bool address_take(const struct view *v, uint32_t item, struct address *a)
{
	for (unsigned i = 0; i < v->parts; i++) {
		const struct part *p = &v->part[i];
		bool is = p->kind == PART_NAME ||
			  (p->kind == PART_WHOLE && v->row->args[p->arg].what == LAYOUT_sockaddr &&
			   v->row->args[p->arg].kind == KIND_MEM);

		if (!is || p->item != item || p->have < sizeof(sa_family_t))
			continue;
		address_read(a, p);
		return true;
	}
	return false;
}

/* --- sockets ---------------------------------------------------------------------------- */

static struct conn *conn_begin(struct conns *all, const struct process *p, struct socket *s,
			       bool came)
{
	struct conn *c = calloc(1, sizeof(*c));

	MUST(c && !s->conn);
	*c = (struct conn){ .number = ++all->number, .own = s->own, .peer = s->peer,
			    .pid = p->pid, .came = came, .datagrams = s->datagrams,
			    .began_ns = all->now_ns };
	s->conn = c;
	return c;
}

static struct socket *socket_new(struct conns *all, struct process *p, int64_t fd, bool cloexec)
{
	struct socket *s = calloc(1, sizeof(*s));

	MUST(s && fd >= 0);
	s->refs = 1;		/* the caller's: it may not be put anywhere */
	descriptor_put(all, p, (uint64_t)fd, s, cloexec);
	return s;
}

static void socket_take(struct conns *all, struct process *p, const struct view *v)
{
	struct socket *s;

	descriptor_close(all, p, (uint64_t)v->result);
	if (v->args[0] != AF_INET && v->args[0] != AF_INET6 && v->args[0] != AF_UNIX)
		return;
	s = socket_new(all, p, v->result, v->args[1] & SOCK_CLOEXEC);
	s->datagrams = (v->args[1] & 0xf) == SOCK_DGRAM;
	s->own.family = s->peer.family = (uint16_t)v->args[0];
	socket_drop(all, s);
}

static struct conn *accept_take(struct conns *all, struct process *p, const struct view *v)
{
	const struct socket *listens = socket_at(p, v->args[0]);
	bool cloexec = v->nr == CALL_accept4 && v->args[3] & SOCK_CLOEXEC;
	struct address own = { 0 };
	struct socket *s;
	struct conn *c;

	if (listens)
		own = listens->own;
	s = socket_new(all, p, v->result, cloexec);
	s->own = own;
	s->peer.family = own.family;
	address_take(v, 0, &s->peer);
	c = conn_begin(all, p, s, true);
	socket_drop(all, s);
	return c;
}

/* bind, connect and the questions for names. */
static void name_take(struct conns *all, struct process *p, const struct view *v)
{
	struct socket *s = socket_at(p, v->args[0]);
	bool own = v->nr == CALL_bind || v->nr == CALL_getsockname;
	bool begun = !v->result || v->result == -EINPROGRESS;

	if (!s || !begun || !address_take(v, 0, own ? &s->own : &s->peer))
		return;
	if (v->nr == CALL_connect && !s->conn && !s->datagrams)
		conn_begin(all, p, s, false);
	if (s->conn) {
		s->conn->own = s->own;
		s->conn->peer = s->peer;
	}
}

static void copy_take(struct conns *all, struct process *p, const struct view *v)
{
	struct socket *s = socket_at(p, v->args[0]);
	bool cloexec = v->nr == CALL_dup3 ? v->args[2] & O_CLOEXEC :
		       v->nr == CALL_fcntl && v->args[1] == F_DUPFD_CLOEXEC;

	if (v->nr == CALL_dup2 && v->args[0] == v->args[1])
		return;
	if (s)
		descriptor_put(all, p, (uint64_t)v->result, s, cloexec);
	else
		descriptor_close(all, p, (uint64_t)v->result);
}

static void range_close(struct conns *all, struct process *p, const struct view *v)
{
	for (uint64_t fd = v->args[0]; fd <= v->args[1] && fd < p->size; fd++)
		if (v->args[2] & CLOSE_RANGE_CLOEXEC)
			p->held[fd].cloexec = true;
		else
			descriptor_close(all, p, fd);
}

static void flag_take(struct process *p, const struct view *v)
{
	struct held *h = held_at(p, v->args[0]);
	uint64_t cmd = v->args[1];

	if (h && v->nr == CALL_fcntl && cmd == F_SETFD)
		h->cloexec = v->args[2] & FD_CLOEXEC;
	if (h && v->nr == CALL_ioctl && (cmd == FIOCLEX || cmd == FIONCLEX))
		h->cloexec = cmd == FIOCLEX;
}

/* A call that made, changed or closed descriptors; the connection that it has made, if any. */
static struct conn *descriptors_take(struct conns *all, struct process *p, const struct view *v)
{
	if (v->nr == CALL_bind || v->nr == CALL_connect || v->nr == CALL_getsockname ||
	    v->nr == CALL_getpeername) {
		name_take(all, p, v);
		return NULL;
	}
	if (v->result < 0)
		return NULL;
	if (call_has(v->row, TRAIT_ACCEPTS))
		return accept_take(all, p, v);
	if (call_has(v->row, TRAIT_CLOSES))
		descriptor_close(all, p, v->args[0]);
	else if (call_has(v->row, TRAIT_CLOSES_RANGE))
		range_close(all, p, v);
	else if (v->nr == CALL_socket)
		socket_take(all, p, v);
	else if (call_has(v->row, TRAIT_COPIES))
		copy_take(all, p, v);
	else if (v->row->result == KIND_FD)
		descriptor_close(all, p, (uint64_t)v->result);
	else
		flag_take(p, v);
	return NULL;
}

/* --- bytes -------------------------------------------------------------------------------- */

static void bytes_move(struct conns *all, const struct process *p, struct socket *s,
		       struct conn_bytes b)
{
	if (!s->conn && s->datagrams)
		conn_begin(all, p, s, false);
	b.conn = s->conn;
	if (!b.conn)
		return;
	b.time_ns = all->now_ns;
	b.peer = b.peer ? b.peer : &s->conn->peer;
	b.have = b.have < b.len ? b.have : b.len;
	*(b.given ? &b.conn->given : &b.conn->taken) += b.len;
	if (all->user.moved && (b.len || b.conn->datagrams))
		all->user.moved(all->user.ctx, &b);
	if (!b.len && !b.given && !b.conn->datagrams && all->user.peer_ended)
		all->user.peer_ended(all->user.ctx, b.conn, b.time_ns);
}

static bool is_content(const struct view *v, const struct part *p)
{
	const struct arg_desc *a = &v->row->args[p->arg];

	return p->kind == PART_BYTES || (p->kind == PART_WHOLE && a->kind == KIND_MEM &&
					 (a->what == LAYOUT_bytes || a->what == LAYOUT_iovec));
}

static bool is_peek(const struct view *v)
{
	for (unsigned i = 0; i < v->row->nargs; i++)
		if (v->row->args[i].what == XLAT_msg_flags && v->row->args[i].kind == KIND_FLAGS)
			return v->args[i] & MSG_PEEK;
	return false;
}

/* Of several messages the result counts them, and each is as long as it is. */
static void content_take(struct conns *all, const struct process *p, const struct view *v,
			 struct socket *s, bool given)
{
	bool many = v->nr == CALL_recvmmsg || v->nr == CALL_sendmmsg, any = false;

	for (unsigned i = 0; i < v->parts; i++) {
		const struct part *part = &v->part[i];
		struct address peer;

		if (!is_content(v, part) || (many && part->item >= v->result))
			continue;
		any = true;
		bytes_move(all, p, s, (struct conn_bytes){
			.given = given, .bytes = part->bytes, .have = part->have,
			.len = many ? part->len : (uint64_t)v->result,
			.peer = address_take(v, part->item, &peer) ? &peer : NULL });
	}
	/* From a file, or into one: the kernel alone has seen it. */
	if (!any && !many)
		bytes_move(all, p, s, (struct conn_bytes){ .given = given,
							   .len = (uint64_t)v->result });
}

static void bytes_take(struct conns *all, const struct process *p, const struct view *v)
{
	bool reads = call_has(v->row, TRAIT_READS), writes = call_has(v->row, TRAIT_WRITES);
	struct socket *s = socket_at(p, v->args[0]);

	if (v->result < 0 || !(reads || writes))
		return;
	if (s && !is_peek(v) && v->nr != CALL_tee)
		content_take(all, p, v, s, writes);
	s = v->nr == CALL_splice ? socket_at(p, v->args[2]) :
	    v->nr == CALL_tee ? socket_at(p, v->args[1]) : NULL;
	if (s)
		bytes_move(all, p, s, (struct conn_bytes){ .given = true,
							   .len = (uint64_t)v->result });
}

/* --- a call ------------------------------------------------------------------------------ */

static struct conn *conn_named(const struct process *p, const struct view *v)
{
	for (unsigned i = 0; i < v->row->nargs; i++) {
		const struct socket *s = v->row->args[i].kind == KIND_FD ? socket_at(p, v->args[i])
									  : NULL;

		if (s && s->conn)
			return s->conn;
	}
	return NULL;
}

struct conn call_take(struct conns *all, struct process *p, const struct told *t)
{
	struct conn about = { 0 };
	const struct conn *c;
	struct view v;

	view_event(&v, t->event, t->payload, t->len, NULL);
	if (!v.row)
		return about;
	bytes_take(all, p, &v);
	c = conn_named(p, &v);
	if (c)
		about = *c;		/* the call may be its end */
	c = descriptors_take(all, p, &v);
	return c ? *c : about;
}
