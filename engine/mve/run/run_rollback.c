/*
 * --rollback, --reply and --refuse-known on the command line of mve run.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/abi/rollback.h"
#include "engine/abi/table.h"
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

/* Of --mark; the others say only where a seam is. */
static const struct { const char *name; uint32_t brings; } bringing[] = {
	{ "read", BRINGS_READ }, { "readv", BRINGS_READV },
	{ "recvfrom", BRINGS_RECVFROM }, { "recvmsg", BRINGS_RECVMSG },
};

static uint32_t marks_bring(const struct seams *s)
{
	uint32_t brings = 0;

	for (uint32_t i = 0; i < s->calls; i++)
		for (unsigned k = 0; k < sizeof(bringing) / sizeof(bringing[0]); k++)
			if (s->call[i] == call_number(bringing[k].name))
				brings |= bringing[k].brings;
	return brings;
}

static int marks_take(struct run_options *o)
{
	o->brings = marks_bring(&o->seams);
	if (o->brings || !options_seams(o) || o->followers || o->sampling.stateless)
		return 0;
	say_error("a request is taken back to the call that brought it: --mark read, readv, "
		  "recvfrom (as recv) or recvmsg",
		  "--rollback with a --mark that brings no request");
	return EXIT_USE;
}

int rollback_complete(struct run_options *o)
{
	if (o->rollback)
		return marks_take(o);
	if (!o->reply && !o->refuse_known)
		return 0;
	say_error("--rollback takes requests back", "%s without --rollback",
		  o->reply ? "--reply" : "--refuse-known");
	return EXIT_USE;
}
