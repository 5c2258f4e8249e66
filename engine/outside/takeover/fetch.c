/*
 * The descriptors of a process of the old leader, which stands: each is fetched by
 * pidfd_getfd, and sent on by the successor's own socket.  It is we who fetch, because a server
 * that has given up its rights may not look into another process.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "engine/abi/standing.h"
#include "engine/core/must.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/kernel/remote.h"
#include "engine/outside/session/descriptors.h"
#include "engine/outside/start/auxv.h"
#include "engine/outside/start/image.h"
#include "engine/outside/takeover/take.h"
#include "engine/outside/takeover/takeover_parts.h"
#include "engine/outside/takeover/taking.h"

#define KNOWN_MOST	4096	/* descriptors: a kilobyte of what is known of them */

/*
 * One twin at a time.  The first batch is fetched before anybody asks for it: while the
 * successor wakes up and reads on, we have nothing else to do.
 */
static struct fetch {
	struct taking k;
	int pidfd, info;	/* opened when one is needed; or -1 */
	dev_t pidfds;		/* the file system of pidfds; 0: they have none of their own */
	struct standing_fds known;
	bool told;		/* that, with what its only thread asked */
	uint32_t next;		/* number of `known`, where it knows all */
	DIR *list;		/* or NULL */
	int64_t n;		/* so far, or -errno */
	unsigned asked;		/* of those, by their fdinfo */
	bool all;
} fetch;

static void batch_drop(struct taking *k)
{
	descriptors_close(k->twin, k->fd, k->message.n);
	k->message.n = 0;
}

/*
 * What the kernel makes itself (epoll sets, signalfds, timers, ...) has no file type, but for
 * pidfds on newer kernels, which are of one file system.
 */
bool descriptor_plain(int fd, dev_t pidfds, struct stat *st)
{
	struct statx x;

	/* No file system is asked: it might not answer. */
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &x))
		return false;
	*st = (struct stat){ .st_dev = makedev(x.stx_dev_major, x.stx_dev_minor),
			     .st_ino = x.stx_ino, .st_mode = x.stx_mode };
	return st->st_mode & S_IFMT && st->st_dev != pidfds;
}

dev_t pidfds_of(int pidfd)
{
	struct stat st;

	return fstat(pidfd, &st) || !(st.st_mode & S_IFMT) ? 0 : st.st_dev;
}

static int folder_open(pid_t pid, const char *what)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Whether an execve closes it, by what fdinfo says, whose text is wanted of a pidfd. */
static uint16_t info_read(struct fetch *f, int number, char *text, size_t size)
{
	char name[16];
	const char *at;
	ssize_t n;
	int fd;

	if (f->info < 0)
		f->info = folder_open(f->k.twin, "fdinfo");
	snprintf(name, sizeof(name), "%d", number);
	fd = openat(f->info, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, size - 1);
	close(fd);
	text[n < 0 ? 0 : n] = 0;
	at = strstr(text, "flags:\t");
	return at && strtoul(at + 7, NULL, 8) & O_CLOEXEC ? TAKEN_CLOEXEC : 0;
}

static bool is_open(const struct fetch *f, int number)
{
	MUST((unsigned)number < STANDING_FDS);
	return f->known.word[number / 64].open >> number % 64 & 1;
}

static bool closes_on_exec(const struct fetch *f, int number)
{
	MUST((unsigned)number < STANDING_FDS);
	return f->known.word[number / 64].cloexec >> number % 64 & 1;
}

static int twin_handle(struct fetch *f)
{
	if (f->pidfd < 0) {
		f->pidfd = (int)syscall(SYS_pidfd_open, f->k.twin, 0);
		f->pidfds = pidfds_of(f->pidfd);
	}
	return f->pidfd;
}

/* The twin's, or what has been looked up of it; its fd -1: errno says why. */
static struct ahead_row descriptor_look(struct fetch *f, int number)
{
	struct ahead_row is;
	struct stat st = { 0 };

	if (f->told && ahead_descriptor(f->k.twin, number, &is))
		return is;
	is = (struct ahead_row){ .number = number, .kind = STATE_plain,
				 .fd = (int)syscall(SYS_pidfd_getfd, twin_handle(f), number, 0) };
	if (is.fd < 0)
		return is;
	if (!descriptor_plain(is.fd, f->pidfds, &st))
		is.kind = kind_of(is.fd);
	else
		is.locks = locks_lockable(&st);
	is.ino = st.st_ino;
	return is;
}

/* 1: there it is; 0: there is none; or -errno. */
static int fetch_one(struct monitor *m, struct fetch *f, int number)
{
	bool known = (uint32_t)number < f->known.looked && is_open(f, number);
	struct taken_message *to = &f->k.message;
	struct taken_descriptor *row = &to->descriptor[to->n];
	struct ahead_row is = descriptor_look(f, number);
	char info[256] = "";

	MUST(f->k.message.n < TAKEN_ROWS && number >= 0);

	if (is.fd < 0)	/* a folder's entry may be our own look at it */
		return errno == EBADF && !known ? 0 : -errno;
	if (is.locks)
		locks_meet(number, is.ino);
	*row = (struct taken_descriptor){ number, 0, is.kind };
	known = known && row->kind != STATE_pidfd;
	f->asked += !known;
	if (!known)
		row->flags = info_read(f, number, info, sizeof(info));
	else if (closes_on_exec(f, number))
		row->flags = TAKEN_CLOEXEC;
	f->k.fd[to->n] = is.fd;
	kind_look(m, &f->k, row, info);
	to->n++;
	return 1;
}

void fetch_drop(void)
{
	struct fetch *f = &fetch;

	if (!f->k.twin)
		return;
	descriptors_leave(f->k.twin, f->k.fd, f->k.message.n);
	f->k.message.n = 0;
	kinds_drop(&f->k);
	if (f->list)
		closedir(f->list);
	if (f->info >= 0)
		close(f->info);
	if (f->pidfd >= 0)
		close(f->pidfd);
	f->k.twin = 0;
}

void fetch_end(void)
{
	fetch_drop();
	ahead_end();
}

/* The next number that may be open; -1: that was all. */
static int number_next(struct fetch *f)
{
	const struct dirent *d;

	while (!f->list && f->next < f->known.looked)
		if (is_open(f, (int)f->next++))
			return (int)f->next - 1;
	while (f->list && (d = readdir(f->list)))
		if (d->d_name[0] != '.')
			return (int)strtol(d->d_name, NULL, 10);
	return -1;
}

/*
 * All that the kernel has listed has been fetched.  Of a process that is killed meanwhile it lists
 * nothing from there on, and does not say so: but its table is gone then.
 */
static void list_over(struct fetch *f)
{
	if (f->list && !process_table(f->k.twin))
		f->n = -ESRCH;
}

/* As many as go into a message. */
static void fetch_more(struct monitor *m, struct fetch *f)
{
	int result = 0, number;

	while (f->n >= 0 && f->k.message.n < TAKEN_ROWS && result >= 0) {
		number = number_next(f);
		f->all = number < 0;
		if (f->all) {
			list_over(f);
			break;
		}
		result = fetch_one(m, f, number);
		f->n = result < 0 ? result : f->n + result;
	}
	/* It may be for want of descriptors of our own, and all else that we look at needs some. */
	if (f->n < 0)
		batch_drop(&f->k);
}

/* The words of so many descriptors, and what stands before them. */
static size_t known_size(uint32_t fds)
{
	return offsetof(struct standing_fds, word) + (fds + 63) / 64 * sizeof(struct standing_word);
}

/*
 * What the twin has found of its own descriptors; nothing, if it is not all there.  A thread
 * reads it for us, which takes longer than all that most have: so it is read once, and again
 * where there is more.
 */
static void known_read(struct fetch *f)
{
	uint64_t base = process_vdso(f->k.twin), at = base + inside_image()->standing;
	size_t size = known_size(KNOWN_MOST), more;

	if (!base || memory_peek(f->k.twin, at, &f->known, size) != (long)size)
		f->known.looked = 0;
	more = f->known.looked <= STANDING_FDS ? known_size(f->known.looked) : 0;
	if (f->known.valid != STANDING_VALID || !more ||
	    (more > size && memory_peek(f->k.twin, at, &f->known, more) != (long)more) ||
	    f->known.looked > STANDING_FDS)
		f->known.looked = 0;
}

/*
 * Its only thread has crashed, and told it with that.  Of several another may have stood before
 * that one did, and gone on.
 */
static bool known_told(const struct monitor *m, struct fetch *f, uint32_t threads)
{
	const struct request *r = threads == 1 ? held_crashed(m, f->k.twin) : NULL;
	uint64_t looked = r ? r->call[2 * STANDING_TOLD] : 0;

	if (!looked || looked > STANDING_TOLD * 64)
		return false;
	for (unsigned i = 0; i < STANDING_TOLD; i++) {
		f->known.word[i].open = r->call[2 * i];
		f->known.word[i].cloexec = r->call[2 * i + 1];
	}
	f->known.looked = (uint32_t)looked;
	return true;
}

/* Where it may have more than it has looked at, the kernel lists them. */
static bool list_open(const struct monitor *m, struct fetch *f)
{
	struct stood is = m->move.stood;
	struct thread_status s = { 0 };
	int fds;

	if (is.pid != f->k.twin) {
		thread_status(f->k.twin, f->k.twin, &s);
		is = (struct stood){ f->k.twin, s.table, s.threads };
	}
	f->told = known_told(m, f, is.threads);
	if (!f->told)
		known_read(f);
	MUST(f->known.looked <= STANDING_FDS);

	f->next = 0;
	f->list = NULL;
	if (f->known.looked && is.table - 1 < f->known.looked)
		return true;
	fds = folder_open(f->k.twin, "fd");
	f->list = fds < 0 ? NULL : fdopendir(fds);
	return f->list;
}

struct taking *fetch_begin(struct monitor *m, pid_t twin)
{
	struct fetch *f = &fetch;

	if (f->k.twin == twin)
		return &f->k;
	MUST(twin > 0);
	fetch_drop();
	f->k.twin = twin;
	f->pidfd = f->info = -1;
	f->n = list_open(m, f) ? 0 : -ESRCH;
	if (f->list)
		f->info = folder_open(twin, "fdinfo");
	if (f->list && f->info < 0)
		f->n = -ESRCH;
	f->all = false;
	f->asked = 0;
	f->k.message.n = f->k.epolls = f->k.moved = f->k.pidfds = 0;
	locks_forget();
	fetch_more(m, f);
	return &f->k;
}

static int batch_send(struct taking *k)
{
	k->message.kind = STATE_numbers;
	return k->message.n ? message_send(k, &k->message, sizeof(k->message.descriptor[0]), k->fd)
			    : 0;
}

/*
 * All of the twin's, as many messages as it takes.  Ours of the last are closed when all else has
 * been sent: a thread does it, and clients wait.
 */
int numbers_send(struct monitor *m, struct taking *k)
{
	struct fetch *f = &fetch;

	MUST(k == &f->k && k->twin);
	int result = f->n < 0 ? (int)f->n : 0;

	while (f->n >= 0 && !result && !f->all) {
		result = batch_send(k);
		batch_drop(k);
		fetch_more(m, f);
	}
	return result ? result : f->n < 0 ? (int)f->n : batch_send(k);
}

bool fetch_is_all(void)
{
	return fetch.k.twin && fetch.n >= 0 && fetch.all;
}

int64_t fetched(void)
{
	return fetch.n;
}

void fetch_ready(void)
{
	takeover_own(&fetch, sizeof(fetch));
}

unsigned fetch_asked(void)
{
	return fetch.asked;
}
