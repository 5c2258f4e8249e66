/*
 * The memory that is mapped into a fresh program: one piece for the image, boards and the
 * first block, and what is shared, by descriptors that come over a socket pair.  It stands
 * still twice: when the pair is there, and when everything is mapped (remote_batch.c).
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/abi/brief.h"
#include "engine/abi/ring.h"
#include "engine/core/must.h"
#include "engine/outside/kernel/shared.h"
#include "engine/outside/patch/shelf.h"
#include "engine/outside/start/auxv.h"
#include "engine/outside/start/image.h"
#include "engine/outside/start/inject_parts.h"

/* --- area and streams, by descriptor ---------------------------------------- */

/*
 * The area, the brief, the image; with followers also the monitor's page, and each section,
 * and without them the shelf.
 */
#define FDS		(4 + VERSIONS)
enum { FD_AREA, FD_BRIEF, FD_IMAGE, FD_CONDUCT, FD_SHELF = FD_CONDUCT, FD_SECTION };

#define FAR_BELOW	(96ull << 30)	/* what is ours: farther than what the inside maps */
#define STREAMS_NEAR	(1ull << 30)	/* larger ones lie there, too: libraries are to be near
					   what is ours, for their calls jump there */

/* Sends our fds to the tracee's socket `theirs` by way of a copy of it. */
static int fds_send_to(pid_t pid, int theirs, const int *fd, unsigned n)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int ours = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, theirs, 0);
	int result = ours < 0 ? -errno : descriptors_send(ours, fd, n, "", 1);

	if (pidfd >= 0)
		close(pidfd);
	if (ours >= 0)
		close(ours);
	return result;
}

/* What the calls below point to, in the tracee. */
struct pointed {
	int pair[2];
	struct msghdr m;
	struct iovec iov;
	char byte[8];
	struct cmsghdr c;
	int fd[FDS + 1];
	struct prctl_mm_map layout;
};

_Static_assert(sizeof(struct pointed) <= BATCH_DATA, "it has room");

static uint64_t pointed_at(const struct injection *in, size_t offset)
{
	return batch_data(&in->r) + offset;
}

#define AT(in, member)	pointed_at(in, offsetof(struct pointed, member))

/* A descriptor that does not arrive is none: what would be mapped of it fails. */
static int pointed_write(struct injection *in, unsigned fds)
{
	struct pointed p = {
		.m = { .msg_iov = (void *)AT(in, iov), .msg_iovlen = 1,
		       .msg_control = (void *)AT(in, c),
		       .msg_controllen = CMSG_SPACE(fds * sizeof(int)) },
		.iov = { (void *)AT(in, byte), 1 },
		.pair = { -1, -1 },
		.layout = in->told.whole,
	};

	memset(p.fd, 0xff, sizeof(p.fd));
	return memory_write(in->r.memory, batch_data(&in->r), &p, sizeof(p));
}

/* A program that may be left again: its code is to be its file's then, and no shelf's. */
static unsigned fds_of(const struct injection *in, int *fd)
{
	const struct inject_want *w = in->want;

	fd[FD_AREA] = w->area_fd;
	fd[FD_BRIEF] = w->brief_fd;
	fd[FD_IMAGE] = inside_image_fd();
	if (!w->chunks) {
		fd[FD_SHELF] = w->leaves ? -1 : shelf_fd();
		return fd[FD_SHELF] < 0 ? FD_SHELF : FD_SHELF + 1;
	}
	MUST(w->versions <= VERSIONS && w->version < w->versions);
	fd[FD_CONDUCT] = w->conduct_fd;
	memcpy(fd + FD_SECTION, w->section_fd, w->versions * sizeof(*fd));
	return FD_SECTION + w->versions;
}

/* --- what is called in the program's name ------------------------------------- */

/* The calls whose results we look at, by their places. */
enum { CALL_ROOM, CALL_BLOCK, CALL_DATA, CALL_PAIR, CALL_STOP, CALL_RECEIVE, CALL_AREA, CALL_BRIEF,
       CALL_IMAGE, CALL_AUXV, CALL_STREAMS, CALL_SHELF = CALL_STREAMS };

/* All of them, and each descriptor's close, with the pair's. */
_Static_assert(CALL_STREAMS + 1 + VERSIONS + 1 + 1 + FDS + 2 <= BATCH_MAX, "they have room");

static void call_add(struct injection *in, struct batch_call c)
{
	MUST(in->calls < BATCH_MAX);
	in->call[in->calls++] = c;
}

static struct batch_call map_of(struct injection *in, unsigned fd, uint64_t len, int prot)
{
	return (struct batch_call){ SYS_mmap, true, 6,
		{ 0, len, (uint64_t)prot, MAP_SHARED | MAP_NORESERVE,
		  AT(in, fd) + fd * sizeof(int), 0 }, { [4] = OF_WORD } };
}

/*
 * What is ours lies in one piece, which is first all code: no memory that can be written
 * is ever made code, which a program may have forbidden itself.
 */
static void room_calls(struct injection *in)
{
	const struct inside_image *im = inside_image();
	uint64_t block = im->memory_len + LIBRARY_BOARDS, writable = PROT_READ | PROT_WRITE;

	_Static_assert(!(LIBRARY_BOARDS % 4096) && !(BLOCK_BYTES % 4096), "whole pages");
	MUST(in->calls == CALL_ROOM);
	call_add(in, (struct batch_call){ SYS_mmap, true, 6,
		 { 0, block + BLOCK_BYTES, PROT_READ | PROT_EXEC, ANON, (uint64_t)-1, 0 }, { 0 } });
	call_add(in, (struct batch_call){ SYS_mprotect, true, 3, { block, BLOCK_BYTES, writable },
					  { OF_RESULT + CALL_ROOM } });
	call_add(in, (struct batch_call){ SYS_mprotect, true, 3,
		 { im->data, im->memory_len - im->data, writable }, { OF_RESULT + CALL_ROOM } });
	call_add(in, (struct batch_call){ SYS_socketpair, true, 4,
		 { AF_UNIX, SOCK_DGRAM, 0, AT(in, pair) }, { 0 } });
}

/* The area, the brief, and the image's code in its place. */
static void shared_calls(struct injection *in)
{
	struct batch_call image = map_of(in, FD_IMAGE, inside_image()->data, PROT_READ | PROT_EXEC);

	MUST(in->calls == CALL_RECEIVE);
	call_add(in, (struct batch_call){ SYS_recvmsg, true, 3, { AT(in, pair), AT(in, m), 0 },
					  { OF_WORD } });
	call_add(in, map_of(in, FD_AREA, AREA_ROOM, PROT_READ | PROT_WRITE));
	call_add(in, map_of(in, FD_BRIEF, BRIEF_ROOM, PROT_READ));
	image.of[0] = OF_RESULT + CALL_ROOM;
	image.arg[3] = MAP_PRIVATE | MAP_FIXED;
	call_add(in, image);
	call_add(in, in->auxv_call);
}

/* Out of the way; it is code from the first, as what is ours is. */
static void shelf_calls(struct injection *in)
{
	struct batch_call shelf = map_of(in, FD_SHELF, SHELF_BYTES, PROT_READ | PROT_EXEC);

	MUST(in->calls == CALL_SHELF && !in->want->chunks);
	shelf.must = false;
	shelf.arg[0] = -FAR_BELOW;
	shelf.of[0] = OF_RESULT + CALL_ROOM;
	shelf.arg[3] = MAP_PRIVATE | MAP_NORESERVE;
	call_add(in, shelf);
}

/* The monitor's page, and over what lies behind it the sections. */
static void streams_calls(struct injection *in)
{
	const struct inject_want *w = in->want;
	uint64_t len = section_offset(w->chunks, w->versions), size = section_size(w->chunks);
	uint64_t span = w->span > len ? w->span : len;

	struct batch_call conduct = map_of(in, FD_CONDUCT, span, PROT_READ);

	MUST(in->calls == CALL_STREAMS);
	if (span > STREAMS_NEAR) {
		conduct.arg[0] = -(FAR_BELOW + span);
		conduct.of[0] = OF_RESULT + CALL_ROOM;
	}
	call_add(in, conduct);
	for (uint32_t v = 0; v < w->versions; v++) {
		struct batch_call c = map_of(in, FD_SECTION + v, size, v == w->version ?
					     PROT_READ | PROT_WRITE : PROT_READ);

		c.arg[0] = section_offset(w->chunks, v);
		c.arg[3] |= MAP_FIXED;
		c.of[0] = OF_RESULT + CALL_STREAMS;
		call_add(in, c);
	}
	/* A core file is about the program. */
	call_add(in, (struct batch_call){ SYS_madvise, false, 3, { 0, len, MADV_DONTDUMP },
					  { OF_RESULT + CALL_STREAMS } });
}

static void close_calls(struct injection *in, unsigned fds)
{
	call_add(in, (struct batch_call){ .nr = BATCH_FINALLY });
	for (unsigned i = 0; i < fds + 2; i++)
		call_add(in, (struct batch_call){ SYS_close, false, 1,
			 { i < 2 ? AT(in, pair) + i * sizeof(int) :
			   AT(in, fd) + (i - 2) * sizeof(int) }, { OF_WORD } });
}

/* The first call of them that failed, or 0. */
static int calls_failed(const long *result, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		if (failed(result[i]))
			return (int)result[i];
	return 0;
}

/* At the first stop: there is room, and a way for the descriptors. */
static int room_taken(struct injection *in, struct remote_batch *b, const int *fd, unsigned fds)
{
	const struct inside_image *im = inside_image();
	long got[CALL_STOP];
	int pair[2], result = remote_batch_results(b, got, CALL_STOP);

	if (!result)
		result = calls_failed(got, 0, CALL_STOP);
	if (result)
		return result;
	in->base = (uint64_t)got[CALL_ROOM];
	in->boards = in->base + im->memory_len;
	in->block = in->boards + LIBRARY_BOARDS;
	auxv_change(in);
	result = memory_write(in->r.memory, in->base + im->data, im->bytes + im->data,
			      im->file_len - im->data);
	if (!result)
		result = memory_read(in->r.memory, AT(in, pair), pair, sizeof(pair));
	return result ? result : fds_send_to(in->r.pid, pair[1], fd, fds);
}

static int shared_taken(struct injection *in, const struct remote_batch *b)
{
	unsigned last = in->want->chunks ? CALL_STREAMS + in->want->versions + 1 : CALL_IMAGE + 1;
	long got[BATCH_MAX];
	int result = remote_batch_results(b, got, in->calls);

	MUST(last <= in->calls);
	if (result)
		return result;
	in->auxv_result = got[CALL_AUXV];
	got[CALL_AUXV] = 0;
	in->area = (uint64_t)got[CALL_AREA];
	in->boot.brief = (uint64_t)got[CALL_BRIEF];
	if (in->want->chunks)
		in->streams = (uint64_t)got[CALL_STREAMS];
	else if (in->shelf.len && !failed(got[CALL_SHELF]))
		in->boot.shelf = (uint64_t)got[CALL_SHELF];
	else
		in->shelf.len = 0;
	result = calls_failed(got, CALL_RECEIVE, last);
	return result == -EBADF ? -EMFILE : result;	/* of those that did not arrive */
}

static int shared_map_by(struct injection *in)
{
	int fd[FDS], result;
	unsigned fds = fds_of(in, fd);
	struct remote_batch b;

	if (fd[FD_IMAGE] < 0)
		return fd[FD_IMAGE];
	in->auxv_call = auxv_call(&in->told, AT(in, layout), in->r.pid, in->auxv, in->auxv_len,
				  &in->moved);
	room_calls(in);
	call_add(in, (struct batch_call){ .nr = BATCH_STOP });
	shared_calls(in);
	if (in->want->chunks)
		streams_calls(in);
	else if (fds > FD_SHELF)
		shelf_calls(in);
	in->shelf.len = !in->want->chunks && fds > FD_SHELF ? SHELF_BYTES : 0;
	close_calls(in, fds);
	result = pointed_write(in, fds);
	if (!result)
		result = remote_batch_begin(&b, &in->r, in->call, in->calls);
	if (result)
		return result;
	result = room_taken(in, &b, fd, fds);
	if (!result)
		result = remote_batch_next(&b);
	if (!result)
		result = shared_taken(in, &b);
	remote_batch_end(&b);
	return result;
}

/* A server may live under a low limit of descriptors, or have forbidden itself any: lift it. */
int shared_map(struct injection *in)
{
	rlim_t least = process_table(in->r.pid) + FDS;
	struct rlimit was = { 0, 0 }, more;
	int result;

	prlimit(in->r.pid, RLIMIT_NOFILE, NULL, &was);
	more.rlim_cur = more.rlim_max = was.rlim_max > least ? was.rlim_max : least;
	if (prlimit(in->r.pid, RLIMIT_NOFILE, &more, NULL) < 0) {
		more.rlim_cur = more.rlim_max = was.rlim_max;
		prlimit(in->r.pid, RLIMIT_NOFILE, &more, NULL);
	}
	result = shared_map_by(in);
	prlimit(in->r.pid, RLIMIT_NOFILE, &was, NULL);
	return result;
}
