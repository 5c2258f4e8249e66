/*
 * Files that change and are mapped: memfds, files that a program has open for writing or
 * has unlinked, and those that it reads and may write again.  A follower has none of them
 * open, and their path, where there is one, leads to what the leader has made of them by
 * now.  So the leader tells with each mapping of a descriptor (EVENT_FILE) what stands
 * behind it, and the content, unless followers find the same there (behind.c).  The
 * follower makes a *mirror* of it, a memfd of its own: what it maps shared it shares with
 * its children as the leader's twins do, and what it writes, truncates or allocates by
 * calls afterwards is done to the mirror as well.  Content that is told again is put into
 * the mirror, unless some process of the follower may write there by memory: it may be ahead.
 *
 * A mirror is found again by what the leader says of the file (device and number), by
 * descriptors that were opened by the same path, and by those copied from them.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/falloc.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/stat.h>

#include "engine/core/away.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/fd/behind.h"
#include "engine/inside/fd/files.h"
#include "engine/inside/fd/mirror.h"
#include "engine/inside/fd/places.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/latch.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/event.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/order/passable.h"
#include "engine/inside/order/wait.h"
#include "engine/inside/replay/follow.h"
#include "engine/inside/sample/scope.h"
#include "engine/inside/takeover/takers.h"

#define BUFFER		2048
/* Limit (files): bytes of a mapped file that is sent to followers.  Beyond: they open it. */
#define TOLD_MAX	(16ull << 20)
#define RING_SHARE	4	/* and of the ring at most this part */
#define SEEK_SET_	0
#define SEEK_CUR_	1
#define SEEK_DATA_	3
#define SEEK_HOLE_	4
#define KIND_MASK	0xff
#define APPENDS		0x100
#define READS		0x200		/* it is open for reading only */
#define ADDRESS_MASK	(~0xfffull)	/* and where it is mapped */
#define MEMFD_CLOEXEC	1
#define MEMFD_MODE	0777		/* as it is made */
_Static_assert(!(KIND_MASK & (APPENDS | READS)) && !(ADDRESS_MASK & (KIND_MASK | APPENDS | READS)),
	       "one word says all four");

/* --- the leader ----------------------------------------------------------------------- */

static uint64_t told_limit(void)
{
	uint64_t part = (uint64_t)chunks_in_memory(streams.conduct) * CHUNK_SIZE / RING_SHARE;

	return part < TOLD_MAX ? part : TOLD_MAX;
}

static void extent_tell(struct thread *t, long fd, struct file_extent x)
{
	uint8_t buffer[BUFFER];

	payload_tell(t, &x, sizeof(x));
	while (x.len) {
		uint64_t want = x.len < BUFFER ? x.len : BUFFER;
		long n = OWN4(__NR_pread64, fd, buffer, want, x.at);

		if (n <= 0) {	/* it was cut short meanwhile */
			bytes_zero(buffer, want);
			n = (long)want;
		}
		payload_tell(t, buffer, (size_t)n);
		x.at += (uint64_t)n;
		x.len -= (uint64_t)n;
	}
}

/*
 * Read by the program's own descriptor, which is mapped and so can be read, but for one that
 * wants aligned memory.
 */
static void content_tell(struct thread *t, long fd, uint64_t size)
{
	bool aligned = OWN3(__NR_fcntl, fd, F_GETFL, 0) & O_DIRECT;
	long by = aligned ? behind_reopened(t, fd) : fd;
	struct stretches s = { .thread = t, .fd = fd, .size = size };
	struct file_extent end = { size, 0 };

	MUST(fd >= 0);
	while (s.from < size) {
		behind_stretches(&s);
		for (uint32_t i = 0; i < s.n; i++)
			extent_tell(t, by, s.x[i]);
	}
	payload_tell(t, &end, sizeof(end));
	if (aligned && by >= 0)
		OWN1(__NR_close, by);
}

static uint64_t bits_of(long fd)
{
	long flags = OWN3(__NR_fcntl, fd, F_GETFL, 0);

	return (flags & O_APPEND ? APPENDS : 0) | ((flags & O_ACCMODE) == O_RDONLY ? READS : 0);
}

/* A mapping of a descriptor was made; what mmap answered. */
void mirror_tell(struct thread *t, const uint64_t args[CALL_ARGS], int64_t result)
{
	int32_t fd = (int32_t)args[4];
	struct statx st = { 0 };
	enum file_kind kind = FILE_PATH;
	struct event *e;
	int64_t pos = 0;

	if (result >= 0 && !OWN6(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME,
				 &st, 0))
		kind = behind_kind(fd, &st, args[2], told_limit());
	if (kind == FILE_TOLD)
		pos = OWN3(__NR_lseek, fd, 0, SEEK_CUR_);
	e = lead_event(t, EVENT_FILE, __NR_mmap, result < 0 ? result : pos < 0 ? 0 : pos);
	e->arg[0] = (uint64_t)fd;
	e->arg[1] = file_device(&st);
	e->arg[2] = file_number(&st);
	e->arg[3] = st.stx_size;
	e->arg[4] = kind | (result < 0 ? 0 : (uint64_t)result & ADDRESS_MASK);
	if (kind == FILE_TOLD)
		e->arg[4] |= bits_of(fd);
	if (kind == FILE_TOLD)
		content_tell(t, fd, st.stx_size);
	lead_event_end(t);
	if (kind == FILE_TOLD && behind_is_written(fd, &st) && !is_stateless())
		places_begin(t, fd, &st);
}

/*
 * The loader has opened a file, which is each version's own affair.  But a library that was
 * just made may be the program's own, and gone at once: then followers have it from here.
 */
void mirror_tell_loaded(struct thread *t, long nr, int64_t fd)
{
	struct statx st = { 0 };
	struct event *e;

	if (OWN6(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st, 0) ||
	    !behind_is_made_here(&st) || (st.stx_mode & S_IFMT) != S_IFREG || !st.stx_size ||
	    st.stx_size > told_limit())
		return;
	e = lead_event(t, EVENT_FILE, nr, 0);
	e->arg[0] = (uint64_t)fd;
	e->arg[3] = st.stx_size;
	e->arg[4] = FILE_TOLD;
	content_tell(t, fd, st.stx_size);
	lead_event_end(t);
}

/* --- mirrors ------------------------------------------------------------ */

/*
 * Limit (files): files that are mapped shared for writing and open, of a
 * process. Beyond: a follower maps its own private copy of a further one.
 */
#define MIRRORS		48
#define UNUSED_MAX	(64ull << 20)	/* bytes of files that no descriptor leads to */
_Static_assert(MIRRORS < UINT16_MAX, "a file's row has its number, + 1");

static struct mirror {
	uint64_t dev, ino;	/* of the leader's file */
	uint64_t size;		/* as it was told first */
	uint64_t made;		/* the greater, the later; 0: free */
	int32_t fd;
	bool gone;		/* its path leads to another file, or it has none */
	struct file file;	/* how it was opened, if it was by a path */
} mirrors[MIRRORS];

uint64_t mirrors_made;

struct use { uint32_t mirror; bool used; };

static void use_look(long fd, struct file *row, void *what)
{
	struct use *u = what;

	(void)fd;
	u->used |= row->mirror == u->mirror + 1;
}

static bool is_used(uint32_t i)
{
	struct use u = { i, false };

	files_each(use_look, &u);
	return u.used;
}

/* A fork may come between: the row goes first. */
static void mirror_drop(struct mirror *m)
{
	MUST(m->made && m >= mirrors && m < mirrors + MIRRORS && m->fd >= 0);
	PUBLISH(mirror_made, &m->made, 0);
	OWN1(__NR_close, m->fd);
}

/* The oldest ones that only memory leads to give way; what is mapped stays mapped. */
static struct mirror *mirror_room(uint64_t size)
{
	for (;;) {
		struct mirror *oldest = NULL, *none = NULL;
		uint64_t unused = size;

		for (uint32_t i = 0; i < MIRRORS; i++) {
			struct mirror *m = &mirrors[i];

			if (!m->made)
				none = m;
			if (!m->made || is_used(i))
				continue;
			unused += m->size;
			if (!oldest || m->made < oldest->made)
				oldest = m;
		}
		if (!oldest || (none && unused <= UNUSED_MAX))
			return none;
		mirror_drop(oldest);
	}
}

static struct mirror *mirror_find(const struct event *e)
{
	for (uint32_t i = 0; i < MIRRORS; i++)
		if (mirrors[i].made && mirrors[i].dev == e->arg[1] && mirrors[i].ino == e->arg[2])
			return &mirrors[i];
	return NULL;
}

static struct mirror *mirror_of(const struct file *f)
{
	MUST(!f || f->mirror <= MIRRORS);
	return f && f->mirror && mirrors[f->mirror - 1].made ? &mirrors[f->mirror - 1] : NULL;
}

static struct mirror *mirror_make(const struct event *e)
{
	struct mirror *m = mirror_room(e->arg[3]);
	long fd = m ? OWN2(__NR_memfd_create, "mirror", MEMFD_CLOEXEC) : -EMFILE;

	if (fd >= 0)
		fd = number_high(fd);
	if (fd < 0)
		return NULL;
	MUST(latch_is_held(LATCH_mirrors) && !m->made && !mirror_find(e));
	m->dev = e->arg[1];
	m->ino = e->arg[2];
	m->size = e->arg[3];
	m->fd = (int32_t)fd;
	m->file.known = 0;
	m->gone = false;
	/* A fork may come before it, and then there is no such row. */
	PUBLISH(mirror_made, &m->made, ++mirrors_made);
	return m;
}

/* Nothing is written there by memory, that anybody knows: see mirror_shared. */
static bool is_calm(const struct mirror *m)
{
	struct statx st = { 0 };

	OWN6(__NR_statx, m->fd, "", AT_EMPTY_PATH, STATX_MODE, &st, 0);
	return !(st.stx_mode & S_ISVTX);
}

/* A mapping that writes is about to be made.  All processes that have it shall know. */
static void mirror_shared(const struct mirror *m, const struct thread *t)
{
	if (t->frame.rdx & PROT_WRITE && (t->frame.r10 & MAP_TYPE) != MAP_PRIVATE)
		OWN2(__NR_fchmod, m->fd, MEMFD_MODE | S_ISVTX);
}

/* The first byte from here on that is no zero, by pieces; or the end. */
static uint64_t zeros_end(const struct mirror *m, uint64_t from, uint64_t to)
{
	uint64_t piece[BUFFER / sizeof(uint64_t)];

	while (from < to) {
		long at = OWN3(__NR_lseek, m->fd, from, SEEK_DATA_), n;
		uint64_t any = 0;

		if (at < 0 || (uint64_t)at >= to)
			return to;
		bytes_zero(piece, sizeof(piece));
		from = (uint64_t)at;
		n = OWN4(__NR_pread64, m->fd, piece, to - from < BUFFER ? to - from : BUFFER, from);
		for (uint32_t i = 0; i < sizeof(piece) / sizeof(*piece); i++)
			any |= piece[i];
		if (n <= 0 || any)
			return from;
		from += (uint64_t)n;
	}
	return to;
}

/* To make a hole the kernel looks at each mapping of the file: only where there is none. */
static void zeros_between(const struct mirror *m, uint64_t from, uint64_t to)
{
	from = m ? zeros_end(m, from, to) : to;
	if (to > from)
		OWN4(__NR_fallocate, m->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from,
		     to - from);
}

/* The told content; NULL: it is passed over. */
static void content_read(struct reader *r, const struct mirror *m, uint64_t size)
{
	struct file_extent x;
	uint64_t done = 0;

	if (m)
		OWN2(__NR_ftruncate, m->fd, size);
	while (follow_payload(r, &x, sizeof(x)) && x.len && x.at + x.len <= size && x.at < size) {
		zeros_between(m, done, x.at);
		done = x.at + x.len;
		while (x.len) {
			const uint8_t *piece;
			size_t n = reader_piece(r, x.len, &piece);

			if (!n && !host_more(r))
				return;
			if (n && m)
				OWN4(__NR_pwrite64, m->fd, piece, n, x.at);
			x.at += n;
			x.len -= n;
		}
	}
	zeros_between(m, done, size);
}

static void link_same(long fd, struct file *row, void *what)
{
	const struct mirror *m = what;

	(void)fd;
	if (file_same_path(row, &m->file))
		row->mirror = (uint16_t)(m - mirrors + 1);
}

static struct mirror *mirror_told(struct reader *r, const struct event *e, int32_t fd)
{
	struct file *f = file_row_make(fd);
	struct mirror *m = mirror_find(e), *found = m;

	if (!m)
		m = mirror_make(e);
	content_read(r, found && !is_calm(found) ? NULL : m, e->arg[3]);
	if (!m)
		return NULL;
	if (f) {
		f->mirror = (uint16_t)(m - mirrors + 1);
		f->pos = e->result;
		f->appends = !!(e->arg[4] & APPENDS);
	}
	if (f && f->known && !m->file.known) {
		file_copy(&m->file, f);
		files_each(link_same, m);
	}
	return m;
}

/* --- mappings ----------------------------------------------------------- */

static const struct event *event_at(struct thread *t, unsigned n, struct reader *r)
{
	const struct event *e = n ? NULL : follow_event(t);

	if (n && !follow_behind(t, n, NULL, NULL))
		return NULL;
	*r = t->reader;
	e = reader_peek(r);
	for (unsigned i = 0; e && i < n; i++)
		e = reader_next(r);
	return e;
}

/* The event of the mapping, the n-th from here; NULL: the leader has made none. */
static const struct event *told_find(struct thread *t, int32_t fd, unsigned *n, struct reader *r)
{
	for (*n = 0; *n < AHEAD_EVENTS; ++*n) {
		const struct event *e = event_at(t, *n, r);

		if (!e || !event_passable(e))
			return NULL;
		if (!(t->ahead >> *n & 1) && e->kind == EVENT_FILE && e->call == __NR_mmap &&
		    (int32_t)e->arg[0] == fd)
			return e;
	}
	return NULL;
}

/* What the leader says of the mapping; of a file that is told, its mirror. */
int mirror_asked(struct thread *t, int32_t fd, int64_t *result, uint64_t *at, int32_t *mirror)
{
	struct reader copy, *r = &t->reader;
	const struct event *told;
	struct mirror *m = NULL;
	struct event e;
	unsigned n;

	*mirror = -1;
	told = told_find(t, fd, &n, &copy);
	if (!told)
		return t->following && !take_is_done() ? FILE_PATH : MIRROR_LEADS;
	e = *told;
	*at = e.arg[4] & ADDRESS_MASK;
	if (n) {
		copy.ahead = true;
		r = &copy;
	}
	if ((e.arg[4] & KIND_MASK) == FILE_TOLD) {
		latch_take(LATCH_mirrors);
		m = mirror_told(r, &e, fd);
		latch_give(LATCH_mirrors);
		if (m) {
			mirror_shared(m, t);
			*mirror = m->fd;
		} else {
			e.arg[4] = e.arg[4] & READS ? FILE_PATH : FILE_LARGE;
		}
	}
	if (n)
		t->ahead |= 1ull << n;
	else
		follow_take(t);
	*result = e.result;
	return (int)(e.arg[4] & KIND_MASK);
}

/* The event of the loader's open, so many from here; it stands there before the file is gone. */
static const struct event *loaded_find(struct thread *t, long nr, unsigned *n, struct reader *r)
{
	const struct event *e;

	*r = t->reader;
	e = reader_peek(r);
	for (*n = 0; e && *n < AHEAD_EVENTS; ++*n) {
		if (!(t->ahead >> *n & 1) && e->kind == EVENT_FILE && e->call == nr)
			return e;
		if (!event_passable(e))
			return NULL;
		e = reader_next(r);
	}
	return NULL;
}

/* The loader could not open what its twin has opened: our copy; -ENOENT: nor has that. */
long mirror_loaded(struct thread *t, long nr)
{
	struct mirror m = { .fd = -1 };
	const struct event *e;
	struct reader copy;
	unsigned n;

	e = loaded_find(t, nr, &n, &copy);
	if (!e)
		return -ENOENT;
	m.fd = (int32_t)OWN2(__NR_memfd_create, "loaded", MEMFD_CLOEXEC);
	copy.ahead = n != 0;
	reader_peek(&t->reader);
	content_read(n ? &copy : &t->reader, m.fd < 0 ? NULL : &m, e->arg[3]);
	if (n)
		t->ahead |= 1ull << n;
	else
		follow_take(t);
	return m.fd;
}

/* What the leader says of a descriptor beside its calls: an EVENT_FILE of no mapping. */
void mirror_placed(const struct event *e)
{
	struct file *f = file_row_make((int32_t)e->arg[0]);
	const struct mirror *m;

	if (!f || e->call != __NR_lseek)
		return;
	if (e->arg[4] == FILE_AT) {
		f->pos = e->result;
		f->placed = 1;
		return;
	}
	latch_take(LATCH_mirrors);
	m = mirror_find(e);
	if (m)
		f->mirror = f->same = (uint16_t)(m - mirrors + 1);
	latch_give(LATCH_mirrors);
}

/* --- calls on mirrored files -------------------------------------------- */

void mirror_opened(struct file *f, bool truncates)
{
	const struct mirror *m;

	for (uint32_t i = 0; i < MIRRORS; i++)
		if (mirrors[i].made && !mirrors[i].gone && file_same_path(f, &mirrors[i].file))
			f->mirror = (uint16_t)(i + 1);
	m = mirror_of(f);
	if (m && truncates)
		OWN2(__NR_ftruncate, m->fd, 0);
}

void mirror_cut(const struct file *f, int64_t size)
{
	for (uint32_t i = 0; i < MIRRORS; i++)
		if (mirrors[i].made && !mirrors[i].gone && file_same_path(f, &mirrors[i].file))
			OWN2(__NR_ftruncate, mirrors[i].fd, size);
}

void mirror_unlinked(const struct file *f)
{
	for (uint32_t i = 0; i < MIRRORS; i++)
		if (mirrors[i].made && file_same_path(f, &mirrors[i].file))
			mirrors[i].gone = true;
}

void mirror_lost(struct thread *t, long fd)
{
	static uint32_t said;

	if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
		request_ask(t, REQ_NOTE, NOTE_SHARED, (uint64_t)fd, 0);
}

static int64_t end_of(const struct mirror *m)
{
	struct statx st = { 0 };

	OWN6(__NR_statx, m->fd, "", AT_EMPTY_PATH, STATX_SIZE, &st, 0);
	return (int64_t)st.stx_size;
}

static void wrote(struct thread *t, const struct walk *w, const struct mirror *m, int64_t at)
{
	long nr = w->desc->nr, done;

	if (nr == __NR_write || nr == __NR_pwrite64)
		done = OWN4(__NR_pwrite64, m->fd, w->args[1], w->result, at);
	else
		done = OWN6(__NR_pwritev, m->fd, w->args[1], w->args[2], at, 0, 0);
	if (done < w->result)
		mirror_lost(t, (long)w->args[0]);
}

static void row_note(struct thread *t, const struct walk *w, struct file *f)
{
	const struct mirror *m = mirror_of(f);

	switch (w->desc->nr) {
	case __NR_read:
	case __NR_readv:
		f->pos += w->result;
		break;
	case __NR_lseek:
		f->pos = w->result;
		break;
	case __NR_write:
	case __NR_writev:
		if (m)
			wrote(t, w, m, f->appends && !f->placed ? end_of(m) : f->pos);
		f->pos += w->result;
		f->placed = 0;
		break;
	case __NR_pwrite64:
	case __NR_pwritev:
	case __NR_pwritev2:
		if (m)
			wrote(t, w, m, (int64_t)w->args[3]);
		break;
	case __NR_ftruncate:
		if (m)
			OWN2(__NR_ftruncate, m->fd, w->args[1]);
		break;
	case __NR_fallocate:
		if (m && OWN4(__NR_fallocate, m->fd, w->args[1], w->args[2], w->args[3]) < 0)
			mirror_lost(t, (long)w->args[0]);
		break;
	case __NR_sendfile:
	case __NR_vmsplice:
		if (m)
			mirror_lost(t, (long)w->args[0]);
		break;
	case __NR_splice:
	case __NR_copy_file_range:
		if (mirror_of(file_row((int32_t)w->args[2])))
			mirror_lost(t, (long)w->args[2]);
		break;
	}
}

/* A call was answered. */
void mirror_note(struct thread *t, const struct walk *w)
{
	struct file *f;

	if (w->result < 0 || w->desc->args[0].kind != KIND_FD)
		return;
	f = file_row((int32_t)w->args[0]);
	if (f)
		row_note(t, w, f);
}

/* --- taking over ---------------------------------------------------------------------- */

/* What is mapped is the mirror: so it is what the descriptor of a memfd leads to. */
static void row_take(long fd, struct file *row, void *what)
{
	const struct mirror *m = mirror_of(row);
	long flags = m && !row->known ? OWN3(__NR_fcntl, fd, F_GETFD, 0) : -EBADF;

	(void)what;
	row->mirror = 0;
	if (flags < 0)
		return;
	OWN2(__NR_fchmod, m->fd, MEMFD_MODE);
	OWN3(__NR_dup3, m->fd, fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
	OWN3(__NR_lseek, fd, row->pos, SEEK_SET_);
}

void mirrors_take(struct thread *t)
{
	(void)t;
	if (!mirrors_made)
		return;
	files_each(row_take, NULL);
	for (uint32_t i = 0; i < MIRRORS; i++)
		if (mirrors[i].made)
			mirror_drop(&mirrors[i]);
	mirrors_made = 0;
}
