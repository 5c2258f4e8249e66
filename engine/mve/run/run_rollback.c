/*
 * --rollback, --reply and --refuse-known on the command line of mve run.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/abi/rollback.h"
#include "engine/abi/table.h"
#include "engine/mve/run/run_rollback.h"
#include "engine/outside/monitor/say.h"

#define REPLY_HINT	"give a file with the bytes of an answer"

/* Below 0: errno says why.  It may be a link, but nothing that waits: ENODATA, it is no file. */
static ssize_t reply_read(const char *path, char *to, size_t size)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	ssize_t n = -1;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && !S_ISREG(st.st_mode))
		errno = ENODATA;
	else
		n = read(fd, to, size);
	close(fd);
	return n;
}

int reply_take(struct run_options *o, const char *path)
{
	static char reply[REPLY_MAX + 1];
	ssize_t n = reply_read(path, reply, sizeof(reply));

	if (n < 0) {
		say_error(REPLY_HINT, "cannot read the reply: %s: %s", path,
			  errno == ENODATA ? "it is no file" : strerror(errno));
		return EXIT_USE;
	}
	if (!n || (size_t)n > REPLY_MAX) {
		say_error(REPLY_HINT, "not a reply: %s (1 to %u bytes)", path, REPLY_MAX);
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
