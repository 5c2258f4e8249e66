/*
 * --rollback, --reply and --refuse-known on the command line of mve run.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/mve/run/run_rollback.h"
#include "engine/outside/monitor/say.h"

int reply_take(struct run_options *o, const char *path)
{
	static char reply[REPLY_MAX + 1];
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(reply, 1, sizeof(reply), f) : 0;

	if (!f || ferror(f)) {
		say_error("give a file with the bytes of an answer",
			  "cannot read the reply: %s: %s", path, strerror(errno));
		if (f)
			fclose(f);
		return EXIT_USE;
	}
	fclose(f);
	if (!n || n > REPLY_MAX) {
		say_error("give a file with the bytes of an answer",
			  "not a reply: %s (1 to %u bytes)", path, REPLY_MAX);
		return EXIT_USE;
	}
	o->reply = reply;
	o->reply_size = (uint32_t)n;
	return 0;
}

int rollback_complete(const struct run_options *o)
{
	if (o->rollback || (!o->reply && !o->refuse_known))
		return 0;
	say_error("--rollback takes requests back", "%s without --rollback",
		  o->reply ? "--reply" : "--refuse-known");
	return EXIT_USE;
}
