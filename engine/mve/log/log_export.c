/*
 * mve log DIR connections, and mve log DIR export: who talked to the server, and what was said.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/mve/log/log.h"
#include "engine/mve/log/ordered.h"
#include "engine/mve/log/pcap.h"
#include "engine/mve/show.h"
#include "engine/outside/kernel/folder.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/print/text_json.h"

struct exporter {
	const struct log_want *want;
	struct conns *conns;
	struct pcap pcap;
	json_t *list;		/* of connections */
	uint64_t last_ns;
	uint64_t conns_told, last_conn;
};

static bool wanted(const struct log_want *w, const struct conn *c)
{
	return (!w->conn || w->conn == c->number) && (!w->pid || w->pid == c->pid);
}

static void last_note(struct exporter *x, const struct conn *c)
{
	x->last_conn = c->number > x->last_conn ? c->number : x->last_conn;
}

static void event_take(void *ctx, const struct told *t, bool over)
{
	struct exporter *x = ctx;

	x->last_ns = t->time_ns > x->last_ns ? t->time_ns : x->last_ns;
	conns_take(x->conns, t, over);
}

/* False: said that it is not whole. */
static bool conns_each(struct exporter *x, struct frames *f, const struct conns_user *user)
{
	bool whole;

	x->conns = conns_new(user);
	whole = events_ordered(f, event_take, NULL, x);
	conns_free(x->conns, x->last_ns);
	if (!whole)
		say_error("all before it is taken", "%s: not whole: %s", x->want->path, f->why);
	return whole;
}

/* --- connections ---------------------------------------------------------------------- */

static void conn_list(void *ctx, struct conn *c)
{
	char own[ADDRESS_TEXT], peer[ADDRESS_TEXT];
	struct exporter *x = ctx;

	last_note(x, c);
	if (!wanted(x->want, c) || c->ended_ns < x->want->from_ns || c->began_ns >= x->want->to_ns)
		return;
	json_array_append_new(x->list, json_pack(
		"{s:I, s:s, s:s, s:s, s:i, s:b, s:f, s:f, s:I, s:I}", "connection",
		(json_int_t)c->number, "kind", c->datagrams ? "datagrams" : "stream", "peer",
		address_text(&c->peer, peer), "own", address_text(&c->own, own), "pid", c->pid,
		"accepted", c->came, "began", (double)c->began_ns / 1e9, "ended",
		(double)c->ended_ns / 1e9, "taken", (json_int_t)c->taken, "given",
		(json_int_t)c->given));
}

static int earlier(const void *a, const void *b)
{
	long long x = show_number(*(json_t *const *)a, "connection");
	long long y = show_number(*(json_t *const *)b, "connection");

	return x < y ? -1 : x > y;
}

/* They are told as they end, and shown as they began. */
static json_t *conns_sorted(json_t *list)
{
	size_t n = json_array_size(list);
	json_t **row = calloc(n + 1, sizeof(*row)), *sorted = json_array();

	MUST(row && sorted);
	for (size_t i = 0; i < n; i++)
		row[i] = json_array_get(list, i);
	qsort(row, n, sizeof(*row), earlier);
	for (size_t i = 0; i < n; i++)
		json_array_append(sorted, row[i]);
	free(row);
	json_decref(list);
	return sorted;
}

static void conns_print(const json_t *list)
{
	const json_t *c;
	char when[LOG_CLOCK];
	size_t i;

	printf("%6s  %-15s %9s  %-24s %-22s %7s %12s %12s\n", "number", "began", "seconds", "peer",
	       "server", "pid", "taken", "given");
	json_array_foreach(list, i, c) {
		double began = json_real_value(json_object_get(c, "began"));
		double ended = json_real_value(json_object_get(c, "ended"));

		log_clock((uint64_t)(began * 1e6) * 1000, when);
		printf("%6lld  %-15s %9.3f  %-24s %-22s %7lld %12lld %12lld\n",
		       show_number(c, "connection"), when, ended - began, show_text(c, "peer"),
		       show_text(c, "own"), show_number(c, "pid"), show_number(c, "taken"),
		       show_number(c, "given"));
	}
}

/* Which of the descriptors that it had are connections no call has told. */
static void late_say(const struct log_want *w)
{
	if (w->program.head.image)
		say_error("mve log DIR show has their calls",
			  "%s: of a server that ran: connections from before it was recorded "
			  "are not among these", w->path);
}

int log_conns(const struct log_want *w, struct frames *f)
{
	struct exporter x = { .want = w, .list = json_array() };
	struct conns_user user = { .ctx = &x, .ended = conn_list };
	bool whole = conns_each(&x, f, &user);

	x.list = conns_sorted(x.list);
	if (w->json) {
		show_json(x.list);
	} else {
		conns_print(x.list);
		json_decref(x.list);
	}
	late_say(w);
	return log_has(w, UINT64_MAX, x.last_conn) && whole ? EXIT_OK : EXIT_NO;
}

/* --- what was said ----------------------------------------------------------------------- */

static void bytes_export(void *ctx, const struct conn_bytes *b)
{
	struct exporter *x = ctx;

	if (wanted(x->want, b->conn) && log_in_time(x->want, b->time_ns))
		pcap_moved(&x->pcap, b);
}

static void peer_ended_export(void *ctx, struct conn *c, uint64_t time_ns)
{
	struct exporter *x = ctx;

	if (wanted(x->want, c) && log_in_time(x->want, time_ns))
		pcap_peer_ended(&x->pcap, c, time_ns);
}

/* One that is not in the time asked for has no packet of its end, either. */
static void ended_export(void *ctx, struct conn *c)
{
	struct exporter *x = ctx;
	bool is = c->user || (log_in_time(x->want, c->began_ns) &&
			      log_in_time(x->want, c->ended_ns));

	last_note(x, c);
	if (!wanted(x->want, c) || !is)
		return;
	x->conns_told++;
	pcap_ended(&x->pcap, c);
}

/* Where the open file lies is in the folder, or below it. */
static bool is_within(int fd, int folder)
{
	char file[PATH_MAX], part[PATH_MAX];
	size_t len;

	folder_path(fd, file, sizeof(file));
	folder_path(folder, part, sizeof(part));
	len = strlen(part);
	return len && !strncmp(file, part, len) && file[len] == '/';
}

/* Only its owner may read it, as with the recording: what is against that; NULL: nothing. */
static const char *file_fault(int fd, int folder)
{
	struct stat is;

	if (fstat(fd, &is) < 0)
		return strerror(errno);
	if (!S_ISREG(is.st_mode))
		return NULL;
	if (is.st_uid != geteuid() || is.st_mode & (S_IRWXG | S_IRWXO))
		return "it is there, and others may read it";
	if (is.st_size && is_within(fd, folder))
		return "it is the recording's";
	return ftruncate(fd, 0) < 0 ? strerror(errno) : NULL;
}

static int file_open(const char *path, int folder)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	const char *fault = fd < 0 ? strerror(errno) : file_fault(fd, folder);

	if (!fault)
		return fd;
	say_error("name a new file, in a folder where you may write",
		  "cannot write the packets: %s: %s", path, fault);
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool is_output(const char *path)
{
	return !strcmp(path, "-") || !strcmp(path, "/dev/stdout");
}

static FILE *file_create(const char *path, int folder)
{
	int fd = is_output(path) ? dup(STDOUT_FILENO) : file_open(path, folder);

	return fd < 0 ? NULL : fdopen(fd, "w");
}

static int packets_end(const struct exporter *x, bool whole)
{
	const char *path = x->want->pcap;

	if (ferror(x->pcap.file) | fclose(x->pcap.file)) {
		say_error("is the disk full?", "cannot write the packets: %s: %s", path,
			  strerror(errno));
		return EXIT_SYSTEM;
	}
	if (!is_output(path) && x->want->json)
		show_json(json_pack("{s:o, s:I, s:I}", "file", text_json(path), "packets",
				    (json_int_t)x->pcap.packets, "connections",
				    (json_int_t)x->conns_told));
	else if (!is_output(path))
		printf("%lu packet%s of %lu connection%s in %s\n",
		       (unsigned long)x->pcap.packets, x->pcap.packets == 1 ? "" : "s",
		       (unsigned long)x->conns_told, x->conns_told == 1 ? "" : "s", path);
	late_say(x->want);
	return whole ? EXIT_OK : EXIT_NO;
}

int log_export(const struct log_want *w, struct frames *f)
{
	struct exporter x = { .want = w };
	struct conns_user user = { .ctx = &x, .moved = bytes_export,
				   .peer_ended = peer_ended_export, .ended = ended_export };
	bool whole, has;
	FILE *file;

	if (!w->pcap) {
		say_error("mve log DIR export --pcap FILE", "it is not said where to");
		return EXIT_USE;
	}
	file = file_create(w->pcap, f->folder);
	if (!file)
		return EXIT_SYSTEM;
	pcap_begin(&x.pcap, file);
	whole = conns_each(&x, f, &user);
	has = log_has(w, UINT64_MAX, x.last_conn);
	if (has)
		return packets_end(&x, whole);
	fclose(file);
	if (!is_output(w->pcap))
		unlink(w->pcap);
	return EXIT_NO;
}
