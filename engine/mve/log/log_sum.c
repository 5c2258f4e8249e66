/*
 * mve log DIR: what is in a recording, in figures; and whether it is whole.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/abi/table.h"
#include "engine/core/must.h"
#include "engine/mve/log/log.h"
#include "engine/mve/show.h"
#include "engine/outside/foam/foam.h"
#include "engine/outside/log/replay.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/pack/packed.h"
#include "engine/outside/print/plain.h"
#include "engine/outside/print/text_json.h"

#define SHOWN	12	/* calls by name, in text */

struct sum {
	uint64_t frames, events, calls, bytes, connections, threads, processes;
	uint64_t first_ns, last_ns;
	uint64_t kind[EVENT_KINDS], count[CALL_MAX], payload[CALL_MAX];
	int32_t *pid;		/* those that were seen */
	size_t room;
	char why[FRAMES_WHY];	/* it ended */
};

/* What an event beside a call tells. */
static const char *const kinds[EVENT_KINDS] = {
	[EVENT_SIGNAL] = "signals", [EVENT_LOCK] = "locks taken", [EVENT_EXEC] = "programs begun",
	[EVENT_FILE] = "files mapped", [EVENT_SEAM] = "seams", [EVENT_MOVED] = "changes of rights",
	[EVENT_BACK] = "requests taken back", [EVENT_EDGE] = "orders",
	[EVENT_BATON] = "turns to work",
};

static void process_see(struct sum *s, int32_t pid)
{
	for (size_t i = s->processes; i--;)
		if (s->pid[i] == pid)
			return;
	if (s->processes == s->room) {
		s->room = s->room ? s->room * 2 : 64;
		s->pid = realloc(s->pid, s->room * sizeof(*s->pid));
		MUST(s->pid);
	}
	s->pid[s->processes++] = pid;
}

static void event_count(void *ctx, const struct told *t)
{
	uint32_t nr = t->event->call;
	struct sum *s = ctx;

	s->events++;
	s->bytes += t->len;
	s->last_ns = t->time_ns > s->last_ns ? t->time_ns : s->last_ns;
	if (t->pid)
		process_see(s, t->pid);
	if (t->event->kind < EVENT_KINDS)
		s->kind[t->event->kind]++;
	if (t->event->kind != EVENT_CALL || nr >= CALL_MAX)
		return;
	s->calls++;
	s->count[nr]++;
	s->payload[nr] += t->len;
	s->connections += (nr == CALL_accept || nr == CALL_accept4) && t->event->result >= 0;
}

static void frame_count(void *ctx, const struct log_frame *frame)
{
	struct sum *s = ctx;

	s->threads += frame->kind == LOG_CLOSED;
	if (frame->kind == LOG_END)
		snprintf(s->why, sizeof(s->why), "%.*s", (int)frame->size,
			 (const char *)frame_payload(frame));
}

static const struct sum *sorting;

static int more(const void *a, const void *b)
{
	uint64_t x = sorting->count[*(const int *)a], y = sorting->count[*(const int *)b];

	return x < y ? 1 : x > y ? -1 : *(const int *)a - *(const int *)b;
}

static json_t *calls_json(const struct sum *s)
{
	json_t *list = json_array();
	int nr[CALL_MAX], n = 0;

	for (int i = 0; i < CALL_MAX; i++)
		if (s->count[i])
			nr[n++] = i;
	sorting = s;
	qsort(nr, (size_t)n, sizeof(nr[0]), more);
	for (int i = 0; i < n; i++) {
		const struct call_desc *row = call_find(nr[i]);
		char name[40];

		if (row)
			snprintf(name, sizeof(name), "%.32s", row->name);
		else
			snprintf(name, sizeof(name), "call %d", nr[i]);
		json_array_append_new(list, json_pack("{s:s, s:I, s:I}", "name", name, "calls",
						      (json_int_t)s->count[nr[i]], "bytes",
						      (json_int_t)s->payload[nr[i]]));
	}
	return list;
}

/* Behind the last there is none; where it is torn there is the one that we stand in. */
static unsigned segments_of(const struct frames *f)
{
	return f->segment - f->dropped + f->torn;
}

/* A replay runs with it: who was sent a recording looks at it. */
static json_t *env_json(const struct program *p)
{
	json_t *env = json_array();

	for (char **word = p->env; *word; word++)
		json_array_append_new(env, text_json(*word));
	return env;
}

static json_t *program_json(const struct program *p)
{
	json_t *argv = json_array();
	char id[2 * LOG_BUILD_ID + 1] = "";

	for (uint32_t i = 0; i < p->head.argc; i++)
		json_array_append_new(argv, text_json(p->argv[i]));
	for (uint32_t i = 0; i < p->head.build_id_size; i++)
		sprintf(id + 2 * i, "%02x", p->head.build_id[i]);
	return json_pack("{s:o, s:o, s:o, s:o, s:s, s:o, s:i, s:i, s:I}", "path",
			 text_json(p->path), "argv", argv, "env", env_json(p), "folder",
			 text_json(p->folder), "build_id", id, "kernel", text_json(p->kernel),
			 "uid",
			 p->head.uid, "pid", p->head.pid, "began", (json_int_t)p->head.began);
}

/* Where it can begin; or why it cannot be replayed. */
static json_t *replay_json(const struct log_want *w)
{
	char why[FOAM_WHY] = "";
	uint32_t segment = 0;
	bool can = replay_can(w->path, &segment, why);

	return can ? json_pack("{s:b, s:i}", "can", 1, "segment", (int)segment) :
	       json_pack("{s:b, s:o}", "can", 0, "why", text_json(why));
}

static json_t *kinds_json(const struct sum *s)
{
	json_t *j = json_object();

	for (int i = 0; i < EVENT_KINDS; i++)
		if (kinds[i])
			json_object_set_new(j, kinds[i], json_integer((json_int_t)s->kind[i]));
	return j;
}

static json_t *sum_json(const struct log_want *w, const struct frames *f, const struct sum *s)
{
	uint64_t ns = s->last_ns > s->first_ns ? s->last_ns - s->first_ns : 0;

	return json_pack("{s:o, s:o, s:I, s:i, s:i, s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:o, s:I, "
			 "s:o, s:b, s:o}",
			 "program", program_json(&w->program), "replay", replay_json(w),
			 "segments", (json_int_t)segments_of(f), "missing",
			 (int)frames_lost(f), "dropped", (int)(f->dropped - frames_lost(f)),
			 "bytes", (json_int_t)f->total, "seconds",
			 (double)ns / 1e9, "processes", (json_int_t)s->processes, "connections",
			 (json_int_t)s->connections, "events", (json_int_t)s->events, "calls",
			 (json_int_t)s->calls, "signals",
			 (json_int_t)s->kind[EVENT_SIGNAL], "kinds", kinds_json(s), "payload",
			 (json_int_t)s->bytes, "by_name", calls_json(s), "whole",
			 !frames_wrong(f), "ended", text_json(f->torn ? f->why : s->why));
}

/* With which it begins; NULL: with its program. */
static json_t *image_json(const struct log_want *w, const struct frames *f)
{
	uint32_t image = w->program.head.image;
	char why[FOAM_WHY] = "";
	struct foam *foam;
	json_t *j;

	if (!image)
		return NULL;
	foam = foam_open(f->folder, image - 1, f->recording, why, sizeof(why));
	if (!foam)
		return json_pack("{s:b, s:o}", "whole", 0, "why", text_json(why));
	j = json_pack("{s:b, s:I, s:I, s:i, s:i}", "whole", 1, "size",
		      (json_int_t)foam->head.size, "memory", (json_int_t)foam->head.bytes,
		      "mappings", (int)foam->head.maps, "threads", (int)foam_threads(foam));
	foam_close(foam);
	return j;
}

static void image_print(const json_t *i)
{
	if (!i)
		return;
	if (json_is_true(json_object_get(i, "whole")))
		printf("image        of a server that ran: %lld bytes, %lld thread%s\n",
		       show_number(i, "size"), show_number(i, "threads"),
		       show_number(i, "threads") == 1 ? "" : "s");
	else
		printf("image        %s\n", show_text(i, "why"));
}

static void began_print(json_int_t began)
{
	time_t at = (time_t)began;
	char when[32] = "?";
	struct tm tm;

	if (localtime_r(&at, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	printf("began        %s", when);
}

static void calls_print(const json_t *list)
{
	const json_t *row;
	size_t i;

	printf("\n%-20s %12s %14s\n", "call", "calls", "bytes");
	json_array_foreach(list, i, row) {
		if (i == SHOWN) {
			printf("and %zu more\n", json_array_size(list) - i);
			return;
		}
		printf("%-20.20s %12lld %14lld\n", show_text(row, "name"),
		       show_number(row, "calls"), show_number(row, "bytes"));
	}
}

/* Segments that are not there. */
static void before_print(const json_t *j, const char *key)
{
	const json_t *replay = json_object_get(j, "replay");
	long long n = show_number(j, key);

	if (!n)
		return;
	printf("%-12s ", key);
	if (n == 1)
		printf("the segment before them: ");
	else
		printf("the %lld segments before them: ", n);
	if (json_is_true(json_object_get(replay, "can")))
		printf("it is replayed from " LOG_NAME " on\n",
		       (unsigned)show_number(replay, "segment"));
	else
		printf("it can be looked at, not replayed\n");
}

static void events_print(const json_t *j)
{
	const char *kind;
	json_t *n;

	printf("events       %lld: %lld calls", show_number(j, "events"),
	       show_number(j, "calls"));
	json_object_foreach(json_object_get(j, "kinds"), kind, n)
		if (json_integer_value(n))
			printf(", %lld %s", json_integer_value(n), kind);
	printf("; %lld bytes\n", show_number(j, "payload"));
}

static void sum_print(json_t *j)
{
	const json_t *p = json_object_get(plain_json(j, false), "program"), *word;
	size_t i;

	printf("program     ");
	json_array_foreach(json_object_get(p, "argv"), i, word)
		printf(" %s", json_string_value(word));
	printf("\nin           %s\n", show_text(p, "folder"));
	began_print(show_number(p, "began"));
	printf(", for %.1f s, by user %lld, under Linux %s\n",
	       json_real_value(json_object_get(j, "seconds")), show_number(p, "uid"),
	       show_text(p, "kernel"));
	printf("on disk      %lld bytes in %lld segment%s\n", show_number(j, "bytes"),
	       show_number(j, "segments"), show_number(j, "segments") == 1 ? "" : "s");
	before_print(j, "missing");
	before_print(j, "dropped");
	printf("ended        %s\n", show_text(j, "ended"));
	printf("processes    %lld\nconnections  %lld\n", show_number(j, "processes"),
	       show_number(j, "connections"));
	events_print(j);
	image_print(json_object_get(j, "image"));
	calls_print(json_object_get(j, "by_name"));
}

int log_sum(const struct log_want *w, struct frames *f)
{
	struct sum *s = calloc(1, sizeof(*s));
	json_t *j;

	MUST(s);
	strcpy(s->why, "not yet, or its recorder was killed");
	s->first_ns = f->dropped ? f->began_ns : (uint64_t)w->program.head.began * 1000000000;
	events_each(f, event_count, frame_count, s);
	j = sum_json(w, f, s);
	MUST(j);
	if (w->program.head.image)
		json_object_set_new(j, "image", image_json(w, f));
	free(s->pid);
	free(s);
	if (w->json)
		return show_json(j);
	sum_print(j);
	json_decref(j);
	return EXIT_OK;
}

/* --- whether it is whole ------------------------------------------------------------------ */

struct finding {
	bool whole, told;	/* all of it; the frames, and the images with which they begin */
	const char *why, *hint;	/* of what is told */
	json_t *damage;		/* of what is packed: texts */
	size_t packed;
	char gone[64];		/* an image with which a later segment begins, and is not there */
};

/* It has gone, or was not written (the session ended, the disk was full): all else is there. */
static void image_gone(const char *path, uint32_t segment, char gone[64])
{
	struct frames f;
	const struct log_frame *frame = frames_open_at(&f, path, segment) ? NULL : frames_next(&f);
	const struct log_head *h = frame ? frame_payload(frame) : NULL;
	char name[32];

	if (frame && frame->kind == LOG_HEAD && frame->size >= sizeof(*h) && h->image) {
		foam_name(name, h->image - 1, 0);
		if (faccessat(f.folder, name, F_OK, 0) < 0)
			snprintf(gone, 64, "its image %s is not there", name);
	}
	frames_close(&f);
}

static void whole_print(const struct frames *f, const struct finding *v)
{
	printf("%lu frames in %u segment%s", (unsigned long)(f->number - f->begins),
	       segments_of(f), segments_of(f) == 1 ? "" : "s");
	if (v->packed)
		printf(", %zu packed files and links", v->packed);
	printf(", all of them whole\n");
}

static void whole_say(const struct log_want *w, const struct frames *f,
			  const struct finding *v)
{
	const json_t *text;
	size_t i;

	if (v->whole)
		whole_print(f, v);
	if (v->gone[0])
		say_error("a replay begins before it", "%s: %s", w->path, v->gone);
	if (!v->told)
		say_error(v->hint, "%s: not whole: %s", w->path, v->why);
	json_array_foreach(v->damage, i, text)
		say_error(PACKED_HINT, "%s: not whole: %s", w->path, json_string_value(text));
}

static int whole_json(const struct frames *f, const struct finding *v)
{
	const char *why = v->told ? json_string_value(json_array_get(v->damage, 0)) : v->why;

	return show_json(json_pack("{s:b, s:o, s:I, s:I, s:I, s:O, s:o}", "whole", v->whole, "gone",
				   text_json(v->gone), "frames",
				   (json_int_t)(f->number - f->begins), "bytes",
				   (json_int_t)f->total, "packed", (json_int_t)v->packed,
				   "damage", v->damage, "why", text_json(why ? why : "")));
}

int log_verify(const struct log_want *w, struct frames *f)
{
	struct sum *s = calloc(1, sizeof(*s));
	json_t *image = image_json(w, f);
	const char *wrong = json_string_value(json_object_get(image, "why"));
	char damaged[FOAM_WHY] = "its folder cannot be read";
	struct finding v = { 0 };

	MUST(s);
	if (!wrong && !foam_all_whole(f->folder, f->recording, damaged, sizeof(damaged)))
		wrong = damaged;
	v.damage = packed_damage(f->folder, &v.packed);
	events_each(f, event_count, frame_count, s);
	for (uint32_t i = f->dropped; !wrong && !v.gone[0] && i < f->dropped + segments_of(f); i++)
		image_gone(w->path, i, v.gone);
	v.why = wrong ? wrong : frames_wrong(f);
	v.told = !v.why;
	v.whole = v.told && !json_array_size(v.damage);
	v.hint = wrong ? "it cannot be replayed" :
		 frames_lost(f) ? "what is left is true" : "it is true up to there";
	if (w->json)
		whole_json(f, &v);
	else
		whole_say(w, f, &v);
	json_decref(v.damage);
	json_decref(image);
	free(s->pid);
	free(s);
	return v.whole ? EXIT_OK : EXIT_NO;
}
