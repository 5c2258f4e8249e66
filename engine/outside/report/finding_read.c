/*
 * Reading what sanitizers write.  Each of their reports begins with a line that names
 * tool and kind:
 *
 *	==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x...
 *	==7==ERROR: LeakSanitizer: detected memory leaks
 *	==7==WARNING: MemorySanitizer: use-of-uninitialized-value
 *	WARNING: ThreadSanitizer: data race (pid=7)
 *	kv.c:12:3: runtime error: signed integer overflow: 2147483647 + 1 cannot be ...
 *
 * and then has stacks, each under a line of words, a frame a line:
 *
 *	    #0 0x55d in hex_byte /src/request.c:12:3 (httpd+0x11d)
 *	    #0 hex_byte request.c:12 (httpd+0x11d)		ThreadSanitizer's
 *
 * The fields of a finding: tool, kind, function, place (of the first frame that is the
 * program's), stacks (title, frames: function, place), text.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "engine/outside/report/finding.h"

#define STACKS_MAX	16
#define FRAMES_MAX	64
#define WORD_SIZE	200

struct reading {
	json_t *all;
	json_t *finding;	/* that the lines belong to; NULL: none yet */
	json_t *stacks, *frames;
	const char *begin;	/* where its text begins */
	char title[WORD_SIZE];
	int frame;		/* of the stack, the last */
};

/* Bytes that are no UTF-8 would not be JSON. */
static json_t *plain(const char *at, size_t len)
{
	char *copy = malloc(len + 1);
	json_t *j;

	for (size_t i = 0; copy && i < len; i++)
		copy[i] = (char)((unsigned char)at[i] < 0x80 ? at[i] : '?');
	j = json_stringn(copy ? copy : "", copy ? len : 0);
	free(copy);
	return j;
}

static void word_copy(char to[WORD_SIZE], const char *from, size_t len)
{
	snprintf(to, WORD_SIZE, "%.*s", (int)len, from);
}

/* --- the line that begins one ----------------------------------------------------- */

static const char *find_in(const char *line, size_t len, const char *words)
{
	return memmem(line, len, words, strlen(words));
}

/* "AddressSanitizer: heap-buffer-overflow on ..."; a kind ends where the address begins. */
static bool head_of_tool(const char *line, size_t len, char tool[WORD_SIZE], char kind[WORD_SIZE])
{
	static const char *const ends[] = { " on address", " on unknown", " on 0x", " (pid=", " 0x",
					    " in ", " (", NULL };
	const char *at = find_in(line, len, "ERROR: "), *colon, *end = line + len;

	if (!at)
		at = find_in(line, len, "WARNING: ");
	if (!at)
		return false;
	at = strchr(at, ' ') + 1;
	colon = find_in(at, (size_t)(end - at), "Sanitizer: ");
	if (!colon)
		return false;
	colon += 9;
	word_copy(tool, at, (size_t)(colon - at));
	at = colon + 2;
	for (int i = 0; ends[i]; i++) {
		const char *stop = find_in(at, (size_t)(end - at), ends[i]);

		end = stop ? stop : end;
	}
	if (end > at && end[-1] == ':')
		end--;
	word_copy(kind, at, (size_t)(end - at));
	return true;
}

/* "kv.c:12:3: runtime error: signed integer overflow: ..." */
static bool head_of_undefined(const char *line, size_t len, char place[WORD_SIZE],
			      char kind[WORD_SIZE])
{
	const char *at = find_in(line, len, ": runtime error: "), *end = line + len, *colon;

	if (!at)
		return false;
	word_copy(place, line, (size_t)(at - line));
	at += 17;
	colon = memchr(at, ':', (size_t)(end - at));
	word_copy(kind, at, (size_t)((colon ? colon : end) - at));
	return true;
}

static void finding_end(struct reading *r, const char *end)
{
	if (r->finding)
		json_object_set_new(r->finding, "text", plain(r->begin, (size_t)(end - r->begin)));
	r->finding = NULL;
}

static void finding_begin(struct reading *r, const char *line, const char *tool, const char *kind,
			  const char *place)
{
	const char *end = line;

	/* A line of '=' belongs to what comes behind it. */
	if (end - r->begin > 1 && end[-1] == '\n' && end[-2] == '=')
		for (end--; end > r->begin && end[-1] == '=';)
			end--;
	finding_end(r, r->finding ? end : line);
	r->begin = line;
	r->frames = NULL;
	r->title[0] = 0;
	r->stacks = json_array();
	r->finding = json_pack("{s:o, s:o, s:s, s:o, s:o}", "tool", plain(tool, strlen(tool)),
			       "kind", plain(kind, strlen(kind)), "function", "", "place",
			       plain(place, strlen(place)), "stacks", r->stacks);
	json_array_append_new(r->all, r->finding);
}

/* --- stacks --------------------------------------------------------------------------- */

/* What stands in a frame's line, behind its number and address. */
static void frame_split(const char *at, const char *end, char function[WORD_SIZE],
			char place[WORD_SIZE])
{
	const char *module = NULL, *blank = NULL;
	int depth = 0;

	for (const char *p = at; p + 1 < end; p++)	/* " (httpd+0x11d)" */
		if (p[0] == ' ' && p[1] == '(' && memmem(p, (size_t)(end - p), "+0x", 3))
			module = p;
	for (const char *p = at; p < (module ? module : end); p++) {
		depth += (*p == '(') - (*p == ')');	/* f(int, char) const */
		if (*p == ' ' && !depth && !(p + 6 < end && !strncmp(p, " const", 6)))
			blank = p;
	}
	if (!blank || blank < at)
		blank = module ? module : end;
	word_copy(function, at, (size_t)(blank - at));
	at = blank < end && *blank == ' ' ? blank + 1 : blank;
	word_copy(place, at, (size_t)((module && module >= at ? module : end) - at));
}

static bool is_program(const char *function)
{
	static const char *const parts[] = { "interceptor_", "__asan", "__msan", "__tsan",
					     "__ubsan", "__lsan", "__sanitizer", "operator new",
					     "operator delete" };
	static const char *const libc[] = { "memcpy", "memmove", "memset", "malloc", "calloc",
					    "realloc", "free", "strlen" };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(function, parts[i]))
			return false;
	for (size_t i = 0; i < sizeof(libc) / sizeof(libc[0]); i++)
		if (!strcmp(function, libc[i]) || !strcmp(function + (*function == '_'), libc[i]))
			return false;
	return *function != 0;
}

static void frame_add(struct reading *r, const char *at, const char *end)
{
	char function[WORD_SIZE], place[WORD_SIZE];

	frame_split(at, end, function, place);
	json_array_append_new(r->frames, json_pack("{s:o, s:o}", "function",
						   plain(function, strlen(function)), "place",
						   plain(place, strlen(place))));
	if (!*json_string_value(json_object_get(r->finding, "function")) && is_program(function)) {
		json_object_set_new(r->finding, "function", plain(function, strlen(function)));
		json_object_set_new(r->finding, "place", plain(place, strlen(place)));
	}
}

/* "    #0 0x55d in f file:1", "    #0 f file:1"; false: it is none. */
static bool frame_read(struct reading *r, const char *line, const char *end)
{
	const char *at = line + strspn(line, " ");
	char *behind;
	long n;

	if (at == line || at >= end || *at != '#' || !isdigit((unsigned char)at[1]))
		return false;
	n = strtol(at + 1, &behind, 10);
	at = behind + strspn(behind, " ");
	if (!strncmp(at, "0x", 2)) {
		at += strcspn(at, " \n");
		at += strspn(at, " ");
		if (!strncmp(at, "in ", 3))
			at += 3;
	}
	if (!n || !r->frames || n <= r->frame) {
		if (json_array_size(r->stacks) == STACKS_MAX)
			return true;
		r->frames = json_array();
		json_array_append_new(r->stacks, json_pack("{s:o, s:o}", "title",
							   plain(r->title, strlen(r->title)),
							   "frames", r->frames));
	}
	r->frame = (int)n;
	if (at < end && json_array_size(r->frames) < FRAMES_MAX)
		frame_add(r, at, end);
	return true;
}

static void line_read(struct reading *r, const char *line, size_t len)
{
	char tool[WORD_SIZE], kind[WORD_SIZE];

	if (head_of_tool(line, len, tool, kind)) {
		finding_begin(r, line, tool, kind, "");
	} else if (head_of_undefined(line, len, tool, kind)) {
		finding_begin(r, line, "UndefinedBehaviorSanitizer", kind, tool);
	} else if (r->finding && !frame_read(r, line, line + len) && len) {
		line += strspn(line, " ");
		word_copy(r->title, line, strcspn(line, "\n"));
	}
}

json_t *finding_read(const char *text)
{
	struct reading r = { .all = json_array(), .begin = text };

	while (*text) {
		size_t len = strcspn(text, "\n");

		line_read(&r, text, len);
		text += len + (text[len] == '\n');
	}
	finding_end(&r, text);
	return r.all;
}

static uint64_t hash(uint64_t h, const json_t *j, const char *key)
{
	const char *at = json_string_value(json_object_get(j, key));

	for (; at && *at; at++)
		h = (h ^ (unsigned char)*at) * 0x100000001b3ull;
	return h * 31 + 1;
}

uint64_t finding_key(const json_t *finding)
{
	const json_t *stacks = json_object_get(finding, "stacks"), *frame;
	const json_t *frames = json_object_get(json_array_get(stacks, 0), "frames");
	uint64_t h = hash(hash(0xcbf29ce484222325ull, finding, "tool"), finding, "kind");
	size_t i;

	h = hash(h, finding, "place");
	json_array_foreach(frames, i, frame)
		h = hash(hash(h, frame, "function"), frame, "place");
	return h;
}

static const char *text_of(const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text ? text : "";
}

/* The address that a frame without a line has is not worth a word. */
bool finding_is_leak(const json_t *finding)
{
	return strstr(text_of(finding, "kind"), "memory leak");
}

void finding_summary(const json_t *finding, char *text, size_t size)
{
	const char *function = text_of(finding, "function"), *place = text_of(finding, "place");
	const char *base = strrchr(place, '/');

	base = base ? base + 1 : place;
	snprintf(text, size, "%s%s%s%s%s", text_of(finding, "kind"), *function ? " in " : "",
		 function, *base ? " at " : "", base);
}
