/*
 * What is asked of a recording: --record and what is said about it.
 */
#include "engine/mve/run/run_record.h"
#include "engine/mve/run/values.h"
#include "engine/outside/bytes/bale.h"
#include "engine/outside/monitor/say.h"

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

/* What a recording does not have: where it could begin later, or leave something out. */
int record_complete(const struct run_options *o)
{
	const char *why = o->sampling.stateless ? "--stateless" :
			  options_seams(o) ? "--mark" : NULL;
	const char *without;

	if (o->record && why) {
		say_error("a recording has all connections from the start",
			  "--record and %s do not go together", why);
		return EXIT_USE;
	}
	without = o->record ? NULL : o->sync != SYNC_NONE ? "--sync" :
		  o->compress ? "--compress" : NULL;
	if (without) {
		say_error("it is about a recording", "%s without --record", without);
		return EXIT_USE;
	}
	if (o->record && o->followers >= options_versions(o)) {
		say_error("start a second session for more",
			  "too many followers: at most %u with --record", options_versions(o) - 1);
		return EXIT_USE;
	}
	return 0;
}
