/*
 * Requests of a leader that are taken back (mve run --rollback).  The thread that has failed asks
 * first, and stands still: its stack is read then.  When it has gone back it says so, and its
 * request lies in its memory again as it came.  Both make a report, as a sanitizer's finding does;
 * one that fails at the same place is counted.
 *
 * What the program says of itself (addresses, words) is bounded, read once, and only shown.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/abi/rollback.h"
#include "engine/core/must.h"
#include "engine/outside/kernel/asker.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/serve.h"
#include "engine/outside/report/finding.h"
#include "engine/outside/report/findings.h"
#include "engine/outside/report/report.h"
#include "engine/outside/rollback/rollbacks.h"
#include "engine/outside/session/memory.h"

/*
 * Limit (reports): places of a session where requests failed, whose stack is read once. Beyond:
 * ways to a place that is known are not told apart, and a new one's is read anew each time.
 */
#define PLACES_MAX	64
/*
 * Limit (reports): bytes of a request that was taken back. Beyond: its first ones are kept.
 */
#define REQUEST_MAX	(64u << 10)
#define WORDS_SIZE	160

/* A place where requests failed; the stack pointer tells ways to it apart. */
struct place {
	uint64_t at, stack, sig;
	uint32_t version;
	json_t *finding;
};

struct rollbacks {
	struct place place[PLACES_MAX];
	unsigned places, now;	/* the row that failed last is now - 1; 0: none */
};

static struct rollbacks *rollbacks(struct monitor *m)
{
	if (!m->rollbacks)
		m->rollbacks = calloc(1, sizeof(*m->rollbacks));
	MUST(m->rollbacks);
	return m->rollbacks;
}

/* Words of the program's, or of its inside's. */
static void words_read(const struct request *r, uint64_t at, char words[WORDS_SIZE])
{
	long n = at ? memory_peek(r->tid, at, words, WORDS_SIZE - 1) : 0;

	words[n > 0 ? n : 0] = 0;
	for (char *c = words; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
	if (!*words)
		strcpy(words, "it does not say why");
}

/* --- where it failed -------------------------------------------------------------------- */

static const char *string_of(const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text ? text : "";
}

/* "v1.c:113", or a place of a module */
static json_t *frame_place(const json_t *f)
{
	const char *file = string_of(f, "file");

	if (*file)
		return json_sprintf("%s:%lld", file,
				    (long long)json_integer_value(json_object_get(f, "line")));
	return json_sprintf("%s %s", string_of(f, "module"), string_of(f, "address"));
}

static json_t *frames_make(const json_t *stack, char *text, size_t size)
{
	json_t *frames = json_array(), *f;
	size_t i, n = strlen(text);

	json_array_foreach(stack, i, f) {
		json_t *place = frame_place(f);

		if (n < size)
			n += (size_t)snprintf(text + n, size - n, "  #%zu %s %s\n", i,
					      string_of(f, "function"), json_string_value(place));
		json_array_append_new(frames, json_pack("{s:s, s:o}", "function",
							string_of(f, "function"), "place", place));
	}
	return frames;
}

/* As finding_read.c makes them of a sanitizer's words. */
static json_t *finding_make(const struct request *r, const json_t *stack)
{
	const json_t *own = stack_frame_own(stack);
	json_t *place = own ? frame_place(own) : json_string(""), *frames;
	static char text[16 << 10];

	snprintf(text, sizeof(text), "%s at address 0x%lx\n", signal_word(r->args[1]), r->args[2]);
	frames = frames_make(stack, text, sizeof(text));
	return json_pack("{s:s, s:o, s:s, s:o, s:s, s:[{s:o}]}", "tool", "rollback", "kind",
			 json_sprintf("%s, taken back,", signal_word(r->args[1])), "function",
			 own ? string_of(own, "function") : "", "place", place, "text", text,
			 "stacks", "frames", frames);
}

/* The server waits while a stack is read, and how deep it stands a client may choose: when all
 * places are taken any way to the same one will do. */
static struct place *place_find(struct rollbacks *b, const struct place *like)
{
	struct place *other = NULL;

	for (unsigned i = 0; i < b->places; i++) {
		struct place *p = &b->place[i];

		if (p->at != like->at || p->sig != like->sig || p->version != like->version)
			continue;
		if (p->stack == like->stack)
			return p;
		other = p;
	}
	return b->places == PLACES_MAX ? other : NULL;
}

/* The last row is written over where there is no room. */
static struct place *place_add(struct rollbacks *b, const struct place *like)
{
	struct place *p;

	if (b->places < PLACES_MAX)
		b->places++;
	p = &b->place[b->places - 1];
	json_decref(p->finding);
	*p = *like;
	return p;
}

static int64_t asked_serve(struct version *v, const struct request *r)
{
	const struct slot *s = &v->area->slot[r->slot];
	struct rollbacks *b = rollbacks(v->monitor);
	struct place like = { s->place, s->stack, r->args[1], v->index, NULL }, *p;
	struct stack_start start = { .place = s->place, .stack = s->stack, .exact = r->args[2] };
	json_t *stack;

	memcpy(start.saved, s->saved, sizeof(start.saved));
	p = place_find(b, &like);
	if (!p) {
		stack = stack_read(r->pid, &start);
		like.finding = finding_make(r, stack);
		json_decref(stack);
		p = place_add(b, &like);
	}
	b->now = (unsigned)(p - b->place) + 1;
	return 1;
}

/* --- what came of it -------------------------------------------------------------------- */

static void request_read(const struct request *r, struct finding_request *q)
{
	struct rollback c;
	size_t len;
	long n;

	*q = (struct finding_request){ .fd = -1 };
	if (memory_peek(r->tid, r->args[1], &c, sizeof(c)) != sizeof(c) ||
	    c.sign != ROLLBACK_SIGN)
		return;
	len = c.size < REQUEST_MAX ? c.size : REQUEST_MAX;
	q->bytes = malloc(len ? len : 1);
	n = q->bytes ? memory_peek(r->tid, c.bytes, q->bytes, len) : 0;
	q->len = n > 0 ? (size_t)n : 0;
	q->fd = c.fd;
	q->whole = q->len == c.size;
}

static int64_t done_serve(struct version *v, const struct request *r)
{
	struct rollbacks *b = rollbacks(v->monitor);
	struct finding_request q;

	v->backs++;
	if (!b->now)
		return 0;
	request_read(r, &q);
	findings_add(v, r->slot, b->place[b->now - 1].finding, &q);
	free(q.bytes);
	b->now = 0;
	return 0;
}

static int64_t not_serve(struct version *v, const struct request *r)
{
	char words[WORDS_SIZE];

	words_read(r, r->args[2], words);
	v->backs_not++;
	if (version_may_say(v))
		say_error(NULL, "%s/%s: a failure is not taken back: %s",
			  v->monitor->session.name, v->name, words);
	return 0;
}

static int64_t never_serve(struct version *v, const struct request *r)
{
	char words[WORDS_SIZE];

	words_read(r, r->args[2], words);
	if (version_may_say(v))
		say_error("from here on it dies of what fails", "%s/%s: pid %d takes no request "
			  "back any more: %s", v->monitor->session.name, v->name, r->pid, words);
	return 0;
}

int64_t rollback_serve(struct version *v, const struct request *r)
{
	MUST(r->slot < AREA_THREADS);
	switch (r->args[0]) {
	case ROLLBACK_ASK:
		return asked_serve(v, r);
	case ROLLBACK_DONE:
		return done_serve(v, r);
	case ROLLBACK_NOT:
		return not_serve(v, r);
	case ROLLBACK_BEGUN:
		v->monitor->rollback_begun = true;
		return 0;
	case ROLLBACK_KNOWN:
		v->backs_known++;
		return 0;
	case ROLLBACK_NEVER:
		return never_serve(v, r);
	default:
		return -EINVAL;
	}
}

void rollbacks_close(struct monitor *m)
{
	if (m->options->rollback && !m->rollback_programs)
		say_error("build it with mve-cc (docs/checkpoints.md)", "%s: no program of it has "
			  "checkpoints: no request could be taken back", m->session.name);
	else if (m->options->rollback && !m->rollback_begun)
		say_error("a request begins when something comes on a connection that the program "
			  "itself has accepted (docs/checkpoints.md)", "%s: no request has begun: "
			  "none could be taken back", m->session.name);
}
