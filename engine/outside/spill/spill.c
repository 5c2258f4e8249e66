/*
 * The spiller as the monitor sees it: its folder, its beginning, its end.
 *
 * Where the user has said nothing the ring is spilled if the folder can have a file of ours on
 * a disk with room enough; that is looked at when streams are made, so a server alone pays for
 * none of it.  What is against it is said, and in the status.
 *
 * Whatever becomes of it, the leader goes on: the ring's memory is then all the ring there is,
 * and a follower whose next chunks are in the file is lost to the session (host_chunk).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/core/away.h"
#include "engine/core/host.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/log/aside.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/spill/disk.h"
#include "engine/outside/spill/spill.h"
#include "engine/outside/spill/spiller.h"

static struct spiller ours = { .folder = -1, .socket = -1 };

static const char is_damaged[] = "what it had still to read is damaged on the disk";

static struct {
	uint32_t chunks;		/* that have no memory */
	const char *folder;
	char why_not[SPILLER_WHY];	/* nothing is spilled; "": it is, or nobody wants it */
} chosen;

/* In the monitor nobody waits for a chunk. */
bool host_chunk(const struct reader *r)
{
	MUST(r->index < LANES);
	return false;
}

/* --- whether, and how much ------------------------------------------------------------ */

static bool is_limited(pid_t pid, int resource, uint64_t bytes)
{
	struct rlimit most = { RLIM_INFINITY, RLIM_INFINITY };

	prlimit(pid, resource, NULL, &most);
	return most.rlim_cur < bytes;
}

/* What the streams are mapped from, and where, is larger then. */
static const char *limit_why(const struct monitor *m, uint64_t log_max)
{
	if (is_limited(0, RLIMIT_FSIZE, m->options->ring_bytes + log_max + (1u << 24)))
		return "the limit of the file size is too small for it (ulimit -f)";
	if (is_limited(0, RLIMIT_AS, RLIM_INFINITY) ||
	    is_limited(m->options->attach, RLIMIT_AS, RLIM_INFINITY))
		return "the address space is limited (ulimit -v)";
	return NULL;
}

/* Its share of the disk, at most; less than a ring is worth nothing. */
static const char *share_why(const struct monitor *m, int file, uint64_t *log_max)
{
	uint64_t share = disk_share(file);

	MUST(*log_max && m->options->ring_bytes);
	if (*log_max > share)
		*log_max = share;
	return share < m->options->ring_bytes ? "too little is free there" :
	       limit_why(m, *log_max);
}

/* The folder takes a file of ours; NULL, or why not.  `log_max`: where nobody has said. */
static const char *folder_why(struct monitor *m, uint64_t *log_max)
{
	const char *why = NULL;
	int file;

	chosen.folder = m->options->record ? m->options->record : "/var/tmp";
	if (ours.folder >= 0)
		close(ours.folder);
	ours.folder = open(chosen.folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	file = ours.folder < 0 ? -errno : disk_file(ours.folder);
	if (file < 0)
		return strerror(-file);
	if (disk_is_memory(file))
		why = "it lies in memory";
	else if (log_max)
		why = share_why(m, file, log_max);
	close(file);
	return why;
}

int spill_open(struct monitor *m)
{
	const char *why;

	if (m->options->spill != SPILL_MUST)
		return 0;
	why = folder_why(m, NULL);
	chosen.chunks = (uint32_t)(m->options->log_max / CHUNK_SIZE);
	if (!why)
		return 0;
	say_error("--when-full drop or block needs no disk", "cannot spill to %s: %s",
		  chosen.folder, why);
	return EXIT_SYSTEM;
}

void spill_choose(struct monitor *m)
{
	uint64_t log_max = LOG_MAX_UNASKED;
	char was[SPILLER_WHY];
	const char *why;

	if (m->options->spill != SPILL_MAY)
		return;
	MUST(!m->conduct && !m->options->replay);
	memcpy(was, chosen.why_not, sizeof(was));
	why = folder_why(m, &log_max);
	chosen.chunks = why ? 0 : (uint32_t)(log_max / CHUNK_SIZE);
	snprintf(chosen.why_not, sizeof(chosen.why_not), "%s%s%s", why ? chosen.folder : "",
		 why ? ": " : "", why ? why : "");
	/* Who could have no followers may be asked again. */
	if (!why || !strcmp(was, chosen.why_not))
		return;
	say_error("with --when-full drop that is so anyhow, with block the server waits for them",
		  "%s: followers that are a ring behind are dropped, for nothing is spilled to %s",
		  m->session.name, chosen.why_not);
}

uint32_t spill_chunks(void)
{
	MUST(chosen.chunks < CHUNKS_MAX);
	return chosen.chunks;
}

const char *spill_folder(void)
{
	return chosen.folder;
}

const char *spill_why_not(void)
{
	return chosen.why_not[0] ? chosen.why_not : NULL;
}

/* --- its process ---------------------------------------------------------------------- */

static void over(struct monitor *m, const char *why)
{
	if (ours.socket >= 0)
		close(ours.socket);
	ours.socket = -1;
	m->conduct->spills = 0;
	snprintf(chosen.why_not, sizeof(chosen.why_not), "%s", why);
	streams_changed(m);
	say_error(m->conduct->when_full == WHEN_FULL_BLOCK ?
		  "the server waits for followers that are a ring behind from now on" :
		  "followers that are a ring behind are dropped from now on",
		  "%s: nothing is spilled any more: %s", m->session.name, why);
}

static int files_keep(struct monitor *m, struct spiller *s)
{
	int *keep[VERSIONS + 2];
	unsigned n = 0;

	keep[n++] = &s->folder;
	keep[n++] = &s->socket;
	for (uint32_t v = 0; v < m->versions; v++) {
		s->section[v] = m->realm[0].section_fd[v];
		keep[n++] = &s->section[v];
	}
	descriptors_keep(keep, n);
	return 0;
}

void spill_begin(struct monitor *m)
{
	int pair[2];
	pid_t pid;

	if (!m->conduct || !m->conduct->away)
		return;
	ours.m = m;
	ours.shares = m->options->spill == SPILL_MAY;
	ours.seen = mmap(NULL, sizeof(*ours.seen), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (ours.seen == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
						  pair) < 0) {
		ours.seen = NULL;
		over(m, strerror(errno));
		return;
	}
	m->conduct->spills = 1;
	pid = fork();
	if (!pid) {
		ours.socket = pair[1];
		files_keep(m, &ours);
		spiller_run(&ours);
	}
	close(pair[1]);
	close(ours.folder);
	ours.folder = -1;
	ours.socket = pair[0];
	if (pid < 0)
		over(m, strerror(errno));
	else if (!spill_poll(m))
		over(m, "the monitor's loop has no room");
}

bool spill_poll(struct monitor *m)
{
	return ours.socket < 0 || monitor_poll(m, ours.socket, POLLIN, WAKE_SPILLER, 0);
}

/* It leads already, and reads what the one before has told: its threads say so, by no answer. */
static void leader_lost(struct monitor *m, const struct spiller_word *word)
{
	struct section *source = streams_part(m, word->source);
	uint32_t bit = 1u << word->reader;

	if (BOTH_BY(section_dropped, fetch_or, &source->dropped, bit) & bit)
		return;
	say_error(NULL, "%s/%s: %s", m->session.name, m->version[word->reader].name, is_damaged);
}

static void reader_lost(struct monitor *m, const struct spiller_word *word)
{
	MUST(word->reader < m->versions && word->source < m->versions);
	if (word->reader == m->leader)
		leader_lost(m, word);
	else if (m->conduct->following >> word->reader & 1)
		follower_drop(&m->version[word->reader], VERDICT_BROKEN, "%s",
			      is_damaged);
}

void spill_serve(struct monitor *m)
{
	struct spiller_word word;
	ssize_t n;

	while (ours.socket >= 0 &&
	       (n = recv(ours.socket, &word, sizeof(word), MSG_DONTWAIT)) >= 0) {
		word.text[SPILLER_WHY - 1] = 0;
		if (n < (ssize_t)sizeof(word) || word.over)
			over(m, n ? word.text : "its process was killed");
		else if (word.lost)
			reader_lost(m, &word);
		else
			say_error("it is tried again each second; until then it is as without one",
				  "%s: %s", m->session.name, word.text);
	}
	spill_poll(m);
}

void spill_end(struct monitor *m)
{
	if (ours.socket < 0)
		return;
	close(ours.socket);
	ours.socket = -1;
	/* It sleeps there, and sees that its socket is closed. */
	streams_changed(m);
}

void spill_forget(const struct monitor *m, uint32_t realm, uint32_t version)
{
	const struct conduct *c = m->conduct;
	uint64_t at = chunk_offset(chunks_in_memory(c));

	MUST(realm < m->realms && version < m->versions);
	if (c->away && fallocate(m->realm[realm].section_fd[version],
				 FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at,
				 (off_t)((uint64_t)c->away * CHUNK_SIZE)) < 0)
		say_log("spill", "memory of version %u is not given back: %s", version,
			strerror(errno));
}

const struct spilled *spill_seen(void)
{
	return ours.seen;
}
