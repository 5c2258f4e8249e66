/*
 * The spiller as the monitor sees it: its file, its beginning, its end.
 *
 * Whatever becomes of it, the leader goes on: the ring's memory is then all the ring there is,
 * and a follower whose next chunks are in the file is lost to the session (host_chunk).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/magic.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "engine/core/away.h"
#include "engine/core/host.h"
#include "engine/core/must.h"
#include "engine/outside/log/aside.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/spill/spill.h"
#include "engine/outside/spill/spiller.h"

static struct spiller ours = { .fd = -1, .socket = -1 };

/* In the monitor nobody waits for a chunk. */
bool host_chunk(const struct reader *r)
{
	MUST(r->index < LANES);
	return false;
}

static bool is_memory(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) < 0 || fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
}

/* A file without a name in the folder; -EMEDIUMTYPE: that lies in memory. */
static int file_in(const char *folder)
{
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	if (!is_memory(fd))
		return fd;
	close(fd);
	return -EMEDIUMTYPE;
}

static const char *file_why(int result)
{
	return result == -EMEDIUMTYPE ? "it lies in memory" : strerror(-result);
}

int spill_open(struct monitor *m)
{
	const char *folder = m->options->record ? m->options->record : "/var/tmp";
	int fd;

	if (!m->options->log_max)
		return 0;
	fd = file_in(folder);
	ours.fd = fd;
	if (fd >= 0)
		return 0;
	say_error("--when-full drop or block needs no disk", "cannot spill to %s: %s", folder,
		  file_why(fd));
	return EXIT_SYSTEM;
}

static void over(struct monitor *m, const char *why)
{
	if (ours.socket >= 0)
		close(ours.socket);
	ours.socket = -1;
	m->conduct->spills = 0;
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

	keep[n++] = &s->fd;
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
	close(ours.fd);
	ours.fd = -1;
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

void spill_serve(struct monitor *m)
{
	struct spiller_word word;
	ssize_t n;

	while (ours.socket >= 0 &&
	       (n = recv(ours.socket, &word, sizeof(word), MSG_DONTWAIT)) >= 0) {
		word.text[SPILLER_WHY - 1] = 0;
		if (n < (ssize_t)sizeof(word) || word.over)
			over(m, n ? word.text : "its process was killed");
		else
			say_error("it is tried again each second; until then it is as without one",
				  "%s: %s", m->session.name, word.text);
	}
	spill_poll(m);
}

void spill_end(struct monitor *m)
{
	MUST(m);
	if (ours.socket >= 0)
		close(ours.socket);
	ours.socket = -1;
}

void spill_forget(const struct monitor *m, uint32_t realm, uint32_t version)
{
	const struct conduct *c = m->conduct;
	uint64_t at = sizeof(struct section) + (uint64_t)chunks_in_memory(c) * CHUNK_SIZE;

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
