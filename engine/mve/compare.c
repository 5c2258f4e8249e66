/*
 * mve compare: words of memory in which a follower and its leader differ, of one build and
 * layout.
 *
 * Nobody is stopped for it.  A follower is never before its leader: a word that its leader
 * has, before and behind the moment when the follower was looked at, must be the follower's
 * if that has come to where the leader was at first.  So what differs is looked at again,
 * and what changes meanwhile is no difference.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/mve/commands.h"
#include "engine/mve/named.h"
#include "engine/mve/show.h"
#include "engine/outside/control/control.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/session/memory.h"

#define WORDS_MOST	4096	/* that are looked at again */
#define SHOWN_MOST	20
#define LOOKS		3
#define PIECE		(256u << 10)
#define RANGE_MOST	(1ull << 30)	/* what is longer is mostly untouched */
#define COMES_MS	5000	/* for the follower to come to where the leader was */
#define LOOK_MS		20

static const char help_text[] =
	"usage: mve compare NAME FOLLOWER\n"
	"\n"
	"Compares memory of the server with a follower of the same build: the words\n"
	"that stand still and differ, by symbol and type. Nobody is stopped. Not looked\n"
	"at: the first stack, the loader's data, what processes share, ranges of more\n"
	"than a GiB. Exits with 1 where some differ.\n";

struct pair {
	pid_t leader, follower;
	const struct session *session;
	const char *name;	/* the follower's */
};

struct word {
	uint64_t at, leader, follower;
};

static struct word words[WORDS_MOST];
static unsigned count;
static bool more;		/* words than could be kept */

/* --- which ranges ---------------------------------------------------------------------- */

/* Ours: behind the inside's image, a block, or what it has mapped. */
static bool is_own(const struct pair *p, const struct maps *maps, size_t i)
{
	const struct map *m = &maps->map[i];
	uint64_t first = 0;

	for (size_t k = 0; k < maps->n; k++) {
		const struct map *in = &maps->map[k];

		if (map_is_insides(in) && m->start == in->end)
			return true;
	}
	return maps_own(maps, m) ||
	       (!m->path[0] && memory_peek(p->leader, m->start, &first, 8) == 8 &&
	       first == m->start);
}

/* What a first stack begins with, and the loader's own times, are each process'. */
static bool is_apart(const struct map *m)
{
	return !strcmp(m->path, "[stack]") || strstr(m->path, "/ld-linux");
}

static bool has_range(const struct maps *maps, const struct map *m)
{
	for (size_t i = 0; i < maps->n; i++)
		if (maps->map[i].start == m->start && maps->map[i].end == m->end)
			return maps->map[i].write && !maps->map[i].shared;
	return false;
}

static void piece_compare(const struct pair *p, uint64_t at, size_t len)
{
	static uint64_t one[PIECE / 8], other[PIECE / 8];
	long a = memory_peek(p->leader, at, one, len);
	long b = memory_peek(p->follower, at, other, len);

	MUST(len <= PIECE);
	for (long i = 0; i < a / 8 && i < b / 8; i++) {
		if (one[i] == other[i])
			continue;
		more |= count == WORDS_MOST;
		if (count < WORDS_MOST)
			words[count++] = (struct word){ .at = at + (uint64_t)i * 8 };
	}
}

static uint64_t ranges_compare(const struct pair *p)
{
	struct maps leader, follower;
	uint64_t bytes = 0;

	if (maps_read(p->leader, &leader))
		leader.n = 0;
	if (maps_read(p->follower, &follower))
		follower.n = 0;
	for (size_t i = 0; i < leader.n; i++) {
		const struct map *m = &leader.map[i];

		if (!m->write || m->shared || m->end - m->start > RANGE_MOST || is_apart(m) ||
		    !has_range(&follower, m) || is_own(p, &leader, i))
			continue;
		bytes += m->end - m->start;
		for (uint64_t at = m->start; at < m->end; at += PIECE)
			piece_compare(p, at, m->end - at < PIECE ? m->end - at : PIECE);
	}
	maps_free(&leader);
	maps_free(&follower);
	return bytes;
}

/* --- looking again ----------------------------------------------------------------------- */

static const json_t *version_of(const json_t *status, const char *name, const char *role)
{
	const json_t *v, *list = json_object_get(status, "versions");
	size_t i;

	json_array_foreach(list, i, v)
		if ((!name || !strcmp(show_text(v, "name"), name)) &&
		    !strcmp(show_text(v, "role"), role))
			return v;
	return NULL;
}

/* The follower comes to where the leader was. */
static bool comes(const struct pair *p)
{
	for (unsigned ms = 0; ms < COMES_MS; ms += LOOK_MS) {
		json_t *status = control_ask(p->session, "status");
		const json_t *v = version_of(status, p->name, "follower");
		bool there = v && !show_number(v, "lag_cells");

		json_decref(status);
		if (!v)
			return false;
		usleep(LOOK_MS * 1000);
		if (there)
			return true;
	}
	return false;
}

static bool word_peek(pid_t pid, uint64_t at, uint64_t *to)
{
	return memory_peek(pid, at, to, 8) == 8;
}

/* Those that stand still, and differ as before; false: the follower does not come. */
static bool look_again(const struct pair *p, bool first)
{
	unsigned left = 0;
	uint64_t value;

	for (unsigned i = 0; i < count; i++)
		if (!word_peek(p->leader, words[i].at, &value) ||
		    (!first && value != words[i].leader))
			words[i].at = 0;
		else
			words[i].leader = value;
	if (!comes(p))
		return false;
	for (unsigned i = 0; i < count; i++) {
		struct word w = words[i];

		if (!w.at || !word_peek(p->follower, w.at, &value) || value == w.leader ||
		    (!first && value != w.follower))
			continue;
		w.follower = value;
		if (word_peek(p->leader, w.at, &value) && value == w.leader)
			words[left++] = w;
	}
	count = left;
	return true;
}

/* --- saying it --------------------------------------------------------------------------- */

static int words_show(const struct pair *p, uint64_t bytes)
{
	char name[256];

	for (unsigned i = 0; i < count && i < SHOWN_MOST; i++) {
		word_name(p->leader, words[i].at, name, sizeof(name));
		printf("0x%lx  leader %016lx  follower %016lx  %s\n", words[i].at,
		       words[i].leader, words[i].follower, name);
	}
	printf("%u word%s differ%s, of %lu KiB%s\n", count, count == 1 ? "" : "s",
	       count == 1 ? "s" : "", bytes >> 10, more ? "; not all were looked at again" : "");
	return count ? EXIT_NO : EXIT_OK;
}

static bool one_build(const struct pair *p)
{
	struct stat a, b;
	char path[2][40];

	snprintf(path[0], sizeof(path[0]), "/proc/%d/exe", p->leader);
	snprintf(path[1], sizeof(path[1]), "/proc/%d/exe", p->follower);
	return !stat(path[0], &a) && !stat(path[1], &b) && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static int compare(const struct pair *p)
{
	uint64_t bytes;

	if (!one_build(p)) {
		say_error("mve status shows both programs",
			  "%s: not of the server's build, or not to be looked at", p->name);
		return EXIT_SYSTEM;
	}
	bytes = ranges_compare(p);
	for (int i = 0; i < LOOKS; i++) {
		if (look_again(p, !i))
			continue;
		say_error("try again when the server is less busy",
			  "%s: it did not come to where the server was", p->name);
		return EXIT_SYSTEM;
	}
	return words_show(p, bytes);
}

int cmd_compare(int argc, char **argv)
{
	struct look l = look_take(argc, argv, "nf", help_text);
	struct session s;
	struct pair p = { .session = &s, .name = l.follower };
	int code = l.code ? l.code : look_session(&l, &s);
	const json_t *leader, *follower;
	json_t *status;

	if (code)
		return code;
	status = control_ask(&s, "status");
	leader = version_of(status, NULL, "leader");
	follower = version_of(status, l.follower, "follower");
	if (leader && follower) {
		p.leader = (pid_t)show_number(leader, "pid");
		p.follower = (pid_t)show_number(follower, "pid");
	}
	json_decref(status);
	if (p.leader > 0 && p.follower > 0)
		return compare(&p);
	say_error("mve status shows the followers", "%s: no follower of that name: %s", l.name,
		  l.follower);
	return EXIT_NO;
}
