/*
 * What is asked of a recording: --record and what is said about it.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/mve/run/run_record.h"
#include "engine/mve/run/values.h"
#include "engine/outside/bytes/bale.h"
#include "engine/outside/monitor/say.h"

#define AGE_LEAST	1	/* seconds */
#define AGE_MOST	(3650 * 86400u)

int sync_take(struct run_options *o, const char *text)
{
	static const char *const words[] = { [SYNC_NONE] = "none", [SYNC_SECOND] = "second",
					     [SYNC_CALL] = "call" };
	int n = word_take("sync", text, words, 3);

	o->sync = n < 0 ? SYNC_NONE : (enum log_sync)n;
	return n < 0 ? EXIT_USE : 0;
}

int compress_take(struct run_options *o, const char *text)
{
	int64_t n = size_take("compress", text, 1, BALE_LEVELS, "a level of zstd: a number");

	o->compress = n < 0 ? 0 : (int)n;
	return n < 0 ? EXIT_USE : 0;
}

int max_size_take(struct run_options *o, const char *text)
{
	int64_t n = size_take("max-size", text, RECORD_LEAST, INT64_MAX / 2,
			      "bytes; or a number with K, M or G behind it");

	o->bounds.bytes = n < 0 ? 0 : (uint64_t)n;
	return n < 0 ? EXIT_USE : 0;
}

/* Seconds; 0 behind a message. */
static uint64_t age_take(const char *option, const char *text)
{
	static const char units[] = "smhd";
	static const uint64_t seconds[] = { 1, 60, 3600, 86400 };
	char *end;
	unsigned long n = strtoul(text, &end, 10);
	const char *unit = *end && !end[1] ? strchr(units, *end) : NULL;
	uint64_t age = unit ? n * seconds[unit - units] : n;

	if (text[0] >= '0' && text[0] <= '9' && (!*end || unit) && n <= AGE_MOST &&
	    age >= AGE_LEAST && age <= AGE_MOST)
		return age;
	say_error("seconds; or a number with s, m, h or d behind it",
		  "not a value of --%s: %s (%ds to 3650d)", option, text, AGE_LEAST);
	return 0;
}

int max_age_take(struct run_options *o, const char *text)
{
	o->bounds.age_ns = age_take("max-age", text) * 1000000000;
	return o->bounds.age_ns ? 0 : EXIT_USE;
}

int images_take(struct run_options *o, const char *text)
{
	o->images_ms = age_take("images", text) * 1000;
	return o->images_ms ? 0 : EXIT_USE;
}

int keep_take(struct run_options *o, const char *text)
{
	static const char *const words[] = { "first", "last" };
	int n = word_take("keep", text, words, 2);

	o->bounds.last = n > 0;
	return n < 0 ? EXIT_USE : 0;
}

/* What is said about a recording that there is not. */
static const char *about_none(const struct run_options *o)
{
	return o->sync != SYNC_NONE ? "--sync" : o->compress ? "--compress" :
	       o->bounds.bytes ? "--max-size" : o->bounds.age_ns ? "--max-age" :
	       o->bounds.last ? "--keep" : o->images_ms ? "--images" : NULL;
}

/* What a recording does not have: where it could begin later, or leave something out. */
int record_complete(const struct run_options *o)
{
	const char *why = o->sampling.stateless ? "--stateless" :
			  options_seams(o) ? "--mark" : NULL;
	const char *without = o->record ? NULL : about_none(o);

	if (o->record && why) {
		say_error("a recording has all connections from the start",
			  "%s and %s do not go together", o->ship ? "--ship" : "--record", why);
		return EXIT_USE;
	}
	if (without) {
		say_error("it is about a recording", "%s without --record", without);
		return EXIT_USE;
	}
	if (o->bounds.last && !o->bounds.bytes && !o->bounds.age_ns) {
		say_error("say how much: --max-size, --max-age", "--keep last keeps all");
		return EXIT_USE;
	}
	if (o->record && o->followers >= options_versions(o)) {
		say_error("start a second session for more",
			  "too many followers: at most %u with --record", options_versions(o) - 1);
		return EXIT_USE;
	}
	return 0;
}
