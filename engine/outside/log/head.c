/*
 * What a recording knows of its program: all that a process of it inherits, so that a follower
 * can begin with the same another day.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/log/head.h"
#include "engine/outside/plan/plan_parts.h"
#include "engine/outside/start/start.h"

_Static_assert(LOG_LIMITS == RLIM_NLIMITS, "all limits");

/* Of a program's file; 0 bytes: it has none. */
static uint32_t build_id_read(int folder, const char *path, uint8_t id[LOG_BUILD_ID])
{
	int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct elf_view v;
	uint32_t size = 0;

	memset(id, 0, LOG_BUILD_ID);
	if (fd >= 0 && !elf_open_file(&v, fd, ELF_HEADERS)) {
		size = v.build_id_len < LOG_BUILD_ID ? v.build_id_len : LOG_BUILD_ID;
		memcpy(id, v.build_id, size);
		elf_close(&v);
	}
	if (fd >= 0)
		close(fd);
	return size;
}

bool program_is_other(const struct program *p)
{
	int folder = open(p->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct log_head *h = &p->head;
	uint8_t id[LOG_BUILD_ID];
	bool other = h->build_id_size && !faccessat(folder, p->path, F_OK, 0) &&
		     (build_id_read(folder, p->path, id) != h->build_id_size ||
		      memcmp(id, h->build_id, h->build_id_size));

	if (folder >= 0)
		close(folder);
	return other;
}

static void limits_take(struct log_head *h)
{
	for (int i = 0; i < LOG_LIMITS; i++) {
		struct rlimit r = { RLIM_INFINITY, RLIM_INFINITY };

		/* Ours are others. */
		if (i == RLIMIT_FSIZE)
			r = start_kept()->file_size;
		else if (i == RLIMIT_NOFILE)
			r = start_kept()->files;
		else
			getrlimit(i, &r);
		h->limit[i][0] = r.rlim_cur;
		h->limit[i][1] = r.rlim_max;
	}
}

static void signals_take(struct log_head *h)
{
	const struct start_keep *keep = start_kept();

	for (int sig = 1; sig <= 64; sig++) {
		uint64_t bit = 1ull << (sig - 1);
		struct sigaction now;

		if (sigaction(sig, NULL, &now))
			continue;
		for (size_t i = 0; i < keep->actions; i++)
			if (keep->sig[i] == sig)
				now = keep->action[i];
		h->ignored |= now.sa_handler == SIG_IGN ? bit : 0;
		h->blocked |= sigismember(&keep->mask, sig) == 1 ? bit : 0;
	}
}

static bool word_add(struct head_bytes *out, const char *word)
{
	size_t len = strlen(word) + 1;

	if (len > LOG_PAYLOAD_MAX - out->size)
		return false;
	memcpy(out->bytes + out->size, word, len);
	out->size += (uint32_t)len;
	return true;
}

static bool words_add(struct head_bytes *out, char *const *words, uint32_t *n)
{
	for (*n = 0; words[*n]; ++*n)
		if (!word_add(out, words[*n]))
			return false;
	return true;
}

static mode_t mask_now(void)
{
	mode_t mask = umask(077);

	umask(mask);
	return mask;
}

/* Of a process that runs, whose image has the rest. */
static void head_late(const struct version *v, struct log_head *h)
{
	process_limits(v->server, h->limit);
	h->mask = process_mask(v->server);
	h->image = 1;
}

static void head_fill(struct monitor *m, struct log_head *h)
{
	h->layout = m->layout;
	h->maps = m->conduct->maps;
	memcpy(h->secret, m->secret, sizeof(h->secret));
	limits_take(h);
	signals_take(h);
	h->began = time(NULL);
	h->pid = leading(m)->server;
	h->uid = getuid();
	h->gid = getgid();
	h->mask = mask_now();
	h->chunks = m->conduct->chunks;
	h->away = m->conduct->away;
	h->one_at_a_time = m->conduct->one_at_a_time;
	h->sections = m->conduct->sections;
	h->build_id_size = build_id_read(AT_FDCWD, leading(m)->path, h->build_id);
}

/* Where a program is, or its folder. */
static int link_read(pid_t pid, const char *what, char *out, size_t size)
{
	char name[64];
	ssize_t n;

	snprintf(name, sizeof(name), "/proc/%d/%s", pid, what);
	n = readlink(name, out, size - 1);
	out[n > 0 ? n : 0] = 0;
	return n > 0 ? 0 : -errno;
}

int head_make(struct monitor *m, bool late, struct head_bytes *out)
{
	char folder[PATH_MAX], exe[PATH_MAX];
	const char *path = late ? exe : leading(m)->path;
	struct utsname kernel;
	struct log_head h = { 0 };
	bool fits;

	MUST(m->conduct && (late || !m->leader));
	if ((late ? link_read(leading(m)->server, "cwd", folder, sizeof(folder)) :
		    !getcwd(folder, sizeof(folder))) || uname(&kernel) ||
	    (late && link_read(leading(m)->server, "exe", exe, sizeof(exe))))
		return -errno;
	out->bytes = calloc(1, LOG_PAYLOAD_MAX);
	out->size = sizeof(h);
	MUST(out->bytes);
	head_fill(m, &h);
	if (late)
		head_late(leading(m), &h);
	fits = word_add(out, path) && word_add(out, folder) &&
	       word_add(out, kernel.release) && words_add(out, leading(m)->argv, &h.argc) &&
	       words_add(out, environ, &h.envc);
	h.words = out->size - (uint32_t)sizeof(h);
	memcpy(out->bytes, &h, sizeof(h));
	if (fits)
		return 0;
	free(out->bytes);
	return -E2BIG;
}
