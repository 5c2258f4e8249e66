/*
 * A recording on disk: read back as it was written, and whatever becomes of the file what is
 * read is what was written up to there, or nothing.  Each test is made with one as it is, and
 * with one that is compressed.  RUNS: of the last test.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/outside/bytes/crc32c.h"
#include "engine/outside/log/events.h"
#include "engine/outside/log/writer.h"
#include "engine/outside/report/view.h"

#define RUNS_USUAL	20000
#define BYTES_MOST	(1u << 16)
#define EVENTS		40
#define FRAMES_EACH	3	/* of a batch */

static char folder[64], name[96];
static uint8_t whole[BYTES_MOST], now[BYTES_MOST];
static size_t size;
static uint8_t said[BYTES_MOST];	/* its frames, as they were before any compressing */
static size_t said_size;

/* --- one that is whole --------------------------------------------------------------- */

static uint32_t head_fill(uint8_t *at)
{
	static const char words[] = "/bin/server\0/srv\0" "6.1\0server\0-p\0HOME=/\0LANG=C";
	struct log_head h = { .chunks = 32, .sections = VERSIONS, .argc = 2, .envc = 2,
			      .words = sizeof(words), .pid = 7 };

	memcpy(at, &h, sizeof(h));
	memcpy(at + sizeof(h), words, sizeof(words));
	return (uint32_t)(sizeof(h) + sizeof(words));
}

/* read(2) of so many bytes, an openat with its path, and so on in turn. */
static uint32_t event_fill(uint8_t *at, uint32_t i)
{
	static const uint16_t calls[] = { SYS_read, SYS_openat, SYS_sendmsg, SYS_execve,
					  SYS_getcwd, SYS_epoll_wait };
	uint32_t len = i * 37 % 300, n;
	struct event e = { .size = (uint16_t)(len + 4), .kind = i % 9 == 8 ? EVENT_SIGNAL : EVENT_CALL,
			   .call = calls[i % 6], .result = len, .seq = i };

	memset(at, 0, CELL_SIZE * extent_cells(e.extent));
	memcpy(at, &e, sizeof(e));
	memcpy(at + sizeof(e), &len, sizeof(len));
	for (n = 0; n < len; n++)
		at[sizeof(e) + 4 + n] = (uint8_t)(i + n);
	return extent_cells(e.extent);
}

static struct batch batch;

static void batch_put(struct log_writer *w)
{
	for (unsigned i = 0; i < batch.parts; i++) {
		cr_assert(said_size + batch.part[i].iov_len <= sizeof(said));
		memcpy(said + said_size, batch.part[i].iov_base, batch.part[i].iov_len);
		said_size += batch.part[i].iov_len;
	}
	batch_write(w, &batch);
	batch_wait(w, &batch);
	cr_assert(!batch.error);
	batch_empty(&batch);
}

/* A few of them make a batch; what they hold stays where it is. */
static void frame_put(struct log_writer *w, enum log_kind kind, uint64_t at, const void *bytes,
		      uint32_t len)
{
	struct log_frame *f = batch_add(w, &batch, kind, bytes, len);

	f->life = kind == LOG_HEAD || kind == LOG_END ? 0 : 1;
	f->at = at;
	f->pid = f->tid = 7;
	batch_seal(f, bytes);
	if (batch.frames == FRAMES_EACH)
		batch_put(w);
}

static void recording_make(int level)
{
	static uint8_t bytes[BYTES_MOST];
	struct log_writer w;
	uint8_t *next = bytes;
	uint64_t at = 0;
	int fd;

	strcpy(folder, "/dev/shm/mve-recording-XXXXXX");
	cr_assert(mkdtemp(folder));
	snprintf(name, sizeof(name), "%s/000000.log", folder);
	cr_assert(!log_writer_open(&w, folder));
	log_writer_begin(&w, level, &(struct record_bounds){ 0 });
	said_size = 0;
	frame_put(&w, LOG_HEAD, 0, bytes, head_fill(bytes));
	next += 4096;
	frame_put(&w, LOG_OPEN, 0, NULL, 0);
	for (uint32_t i = 0; i < EVENTS; i++) {
		uint32_t cells = event_fill(next, i);

		frame_put(&w, LOG_CELLS, at, next, cells * CELL_SIZE);
		next += cells * CELL_SIZE;
		at += cells;
	}
	frame_put(&w, LOG_CLOSED, at, NULL, 0);
	frame_put(&w, LOG_END, 0, "over", 4);
	batch_put(&w);
	cr_assert(!log_writer_close(&w));
	fd = open(name, O_RDONLY);
	size = (size_t)read(fd, whole, sizeof(whole));
	close(fd);
	cr_assert(size > 2048 && size < sizeof(whole) && (size < said_size) == (level > 0));
}

static void recording_remove(void)
{
	unlink(name);
	rmdir(folder);
}

static void recording_put(const uint8_t *bytes, size_t len)
{
	int fd = open(name, O_WRONLY | O_TRUNC);

	cr_assert(write(fd, bytes, len) == (ssize_t)len);
	close(fd);
}

static void plain_make(void)
{
	recording_make(0);
}

static void bales_make(void)
{
	recording_make(3);
}

TestSuite(recording, .init = plain_make, .fini = recording_remove);
TestSuite(bales, .init = bales_make, .fini = recording_remove);

#define BOTH(name, ...)							\
	static void name##_test(void);					\
	Test(recording, name, ##__VA_ARGS__) { name##_test(); }		\
	Test(bales, name, ##__VA_ARGS__) { name##_test(); }		\
	static void name##_test(void)

/* --- what is read -------------------------------------------------------------------- */

struct seen {
	unsigned events, others;
	bool print;
	struct call_print line;
};

static void event_see(void *ctx, const struct told *t)
{
	struct seen *s = ctx;
	struct view v;

	s->events++;
	if (!s->print || t->event->kind != EVENT_CALL)
		return;
	view_event(&v, t->event, t->payload, t->len, NULL);
	print_view(&s->line, &v);
}

static void frame_see(void *ctx, const struct log_frame *frame)
{
	(void)frame;
	((struct seen *)ctx)->others++;
}

/* All of it; how it ended is in `f`, which is closed. */
static struct seen all_read(struct frames *f, bool print)
{
	struct seen s = { .print = print };

	if (!frames_open(f, folder)) {
		const struct log_frame *head = frames_next(f);
		struct program p;

		if (head && program_read(head, &p)) {
			events_each(f, event_see, frame_see, &s);
			free(p.argv);
			free(p.env);
		}
	}
	print_free(&s.line);
	return s;
}

BOTH(whole)
{
	const struct log_frame *head;
	struct program p;
	struct frames f;
	struct seen s;

	cr_assert(!frames_open(&f, folder));
	head = frames_next(&f);
	cr_assert(head && program_read(head, &p));
	cr_assert(!strcmp(p.path, "/bin/server") && !strcmp(p.folder, "/srv"));
	cr_assert(!strcmp(p.argv[1], "-p") && !p.argv[2] && !strcmp(p.env[1], "LANG=C"));
	s = (struct seen){ .print = true };
	cr_assert(events_each(&f, event_see, frame_see, &s));
	cr_assert(s.events == EVENTS && s.others == 3 && !f.torn && f.total == size);
	frames_close(&f);
}

Test(recording, checksum)
{
	/* The check value of CRC-32C. */
	cr_assert(crc32c(0, "123456789", 9) == 0xe3069283);
	cr_assert(crc32c(crc32c(0, "1234", 4), "56789", 5) == 0xe3069283);
}

BOTH(other_version)
{
	struct log_segment *s = (void *)now;
	struct frames f;

	memcpy(now, whole, size);
	s->version--;
	s->crc = segment_crc(s);
	recording_put(now, size);
	cr_assert(frames_open(&f, folder) && strstr(f.why, "another version of mve wrote it"));
	frames_close(&f);
}

/* As many frames as are whole, each as it was written. */
static void prefix_check(bool may_be_whole)
{
	const struct log_frame *frame;
	size_t at = 0;
	struct frames f;

	if (frames_open(&f, folder)) {
		cr_assert(f.why[0]);
		frames_close(&f);
		return;
	}
	while ((frame = frames_next(&f))) {
		cr_assert(!memcmp(frame, said + at, sizeof(*frame) + frame->size));
		at += log_frame_size(frame->size);
	}
	cr_assert(f.torn ? f.why[0] != 0 : at == said_size || may_be_whole);
	frames_close(&f);
}

BOTH(cut)
{
	for (size_t len = 0; len < size; len += len % 64 ? 7 : 1) {
		recording_put(whole, len);
		/* A cut between two frames is no damage: its end is missing. */
		prefix_check(len % CELL_SIZE == 0);
	}
}

BOTH(flipped)
{
	for (size_t at = 0; at < size; at++) {
		memcpy(now, whole, size);
		now[at] ^= (uint8_t)(1 << at % 8);
		recording_put(now, size);
		/* Of what fills the last cell of a frame nobody hears. */
		prefix_check(true);
	}
}

/* --- what somebody has made ---------------------------------------------------------- */

/* It grows, a byte at a time: a frame, or a bale's, come when it is whole, and not before. */
BOTH(grows)
{
	struct log_tail tail = { .settled = tail_place(0, sizeof(struct log_segment)) };
	const struct log_frame *h;
	size_t at = 0, was;
	struct frames f;

	recording_put(whole, size);
	cr_assert(!frames_open_tail(&f, open(folder, O_RDONLY | O_DIRECTORY), &tail));
	for (uint32_t n = sizeof(struct log_segment); n <= size; n++) {
		tail.settled = tail_place(0, n);
		for (was = at; (h = frames_next(&f)); at += log_frame_size(h->size))
			cr_assert(!memcmp(h, said + at, sizeof(*h) + h->size));
		cr_assert(at == was || size < said_size ||
			  at + sizeof(struct log_segment) == n);
		cr_assert(f.over == (n == size) && !f.torn);
	}
	cr_assert(at == said_size && !frames_next(&f));
	frames_close(&f);
}

/* Who writes it ends in the midst of a frame: that is the end, and it is said. */
BOTH(grows_no_more)
{
	struct log_tail tail = { .settled = tail_place(0, (uint32_t)size - 7) };
	struct frames f;

	recording_put(whole, size - 7);
	cr_assert(!frames_open_tail(&f, open(folder, O_RDONLY | O_DIRECTORY), &tail));
	while (frames_next(&f))
		;
	cr_assert(!f.over && !f.torn);
	tail.over = 1;
	cr_assert(!frames_next(&f) && f.over && f.torn);
	cr_expect(strstr(f.why, "cut short"), "%s", f.why);
	frames_close(&f);
}

static uint32_t dice_word;

static uint32_t dice(uint32_t n)
{
	dice_word = dice_word * 1664525 + 1013904223;
	return (dice_word >> 8) % n;
}

/* Checksums are no hindrance to who means ill. */
static void sums_mend(uint8_t *bytes, size_t len)
{
	struct log_segment *s = (void *)bytes;
	size_t at = sizeof(*s);

	s->crc = segment_crc(s);
	while (at + sizeof(struct log_frame) <= len) {
		struct log_frame *f = (void *)(bytes + at);

		if (f->size > len - at - sizeof(*f))
			return;
		f->crc = frame_crc(f, f + 1);
		at += log_frame_size(f->size);
	}
}

static void spoil(uint8_t *bytes, size_t len)
{
	static const uint32_t odd[] = { 0, 1, 63, 64, 65, 4096, 32704, 32768, 0x7fffffff,
					0x80000000, 0xffffffff };

	for (uint32_t n = 1 + dice(4); n--;) {
		size_t at = dice((uint32_t)len - 8);

		if (dice(2))
			bytes[at] = (uint8_t)dice(256);
		else
			memcpy(bytes + (at & ~3ul), &odd[dice(sizeof(odd) / sizeof(odd[0]))], 4);
	}
}

BOTH(made, .timeout = 3600)
{
	const char *runs = getenv("RUNS"), *seed = getenv("SEED");
	long n = runs ? atol(runs) : RUNS_USUAL;
	struct frames f;

	dice_word = seed ? (uint32_t)atol(seed) : (uint32_t)getpid();
	fprintf(stderr, "recording: SEED=%u\n", dice_word);
	for (long i = 0; i < n; i++) {
		size_t len = dice(4) ? size : dice((uint32_t)size);

		memcpy(now, whole, size);
		spoil(now, size);
		if (len >= sizeof(struct log_segment))
			sums_mend(now, len);
		recording_put(now, len);
		all_read(&f, true);
		frames_close(&f);
	}
}
