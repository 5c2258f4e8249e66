/*
 * The memory that is mapped into a fresh program: one piece for the image, boards and the
 * first block, and what is shared, by descriptors that come over a socket pair.  Few stops:
 * what need not wait for another's result is asked for at one go (remote_batch).
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
#include "engine/outside/start/image.h"
#include "engine/outside/start/inject_parts.h"

/* --- area and streams, by descriptor ---------------------------------------- */

/* The area, the brief, the image; with followers also the monitor's page, and each section. */
#define FDS		(4 + VERSIONS)

static int fds_send(int socket, const int *fd, unsigned n)
{
	char control[CMSG_SPACE(FDS * sizeof(int))] = { 0 }, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(c), fd, n * sizeof(int));
	return sendmsg(socket, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Sends our fds to the tracee's socket `theirs` by way of a copy of it. */
static int fds_send_to(pid_t pid, int theirs, const int *fd, unsigned n)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int ours = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, theirs, 0);
	int result = ours < 0 ? -errno : fds_send(ours, fd, n);

	if (pidfd >= 0)
		close(pidfd);
	if (ours >= 0)
		close(ours);
	return result;
}

/* What recvmsg needs in the tracee, at a scratch address. */
struct receive {
	struct msghdr m;
	struct iovec iov;
	char control[CMSG_SPACE(FDS * sizeof(int))];
	char byte[8];
};

static int fds_receive(struct injection *in, int socket, int *fd, unsigned n)
{
	uint64_t at = in->block;
	struct receive rc = { 0 };
	long result;

	rc.iov.iov_base = (void *)(at + offsetof(struct receive, byte));
	rc.iov.iov_len = 1;
	rc.m.msg_iov = (void *)(at + offsetof(struct receive, iov));
	rc.m.msg_iovlen = 1;
	rc.m.msg_control = (void *)(at + offsetof(struct receive, control));
	rc.m.msg_controllen = CMSG_SPACE(n * sizeof(int));
	result = memory_write(in->r.memory, at, &rc, sizeof(rc));
	if (!result)
		result = REMOTE(&in->r, SYS_recvmsg, (uint64_t)socket, at, 0);
	if (failed(result))
		return (int)result;
	memory_read(in->r.memory, at, &rc, sizeof(rc));
	if (rc.m.msg_controllen < CMSG_LEN(n * sizeof(int)))
		return -EMFILE;
	memcpy(fd, CMSG_DATA((struct cmsghdr *)rc.control), n * sizeof(int));
	return 0;
}

static int fd_map(struct injection *in, int fd, uint64_t at, uint64_t len, int prot,
		  uint64_t *out)
{
	uint64_t flags = MAP_SHARED | MAP_NORESERVE | (at ? MAP_FIXED : 0);
	long result = REMOTE(&in->r, SYS_mmap, at, len, (uint64_t)prot, flags, (uint64_t)fd, 0);

	*out = (uint64_t)result;
	return failed(result) ? (int)result : 0;
}

/* The monitor's page, and over what lies behind it the sections. */
static int streams_map(struct injection *in, const int *fd)
{
	const struct inject_want *w = in->want;
	uint64_t len = section_offset(w->chunks, w->versions), size = section_size(w->chunks), at;
	int result = fd_map(in, fd[0], 0, len, PROT_READ, &in->streams);

	for (uint32_t v = 0; v < w->versions && !result; v++)
		result = fd_map(in, fd[1 + v], in->streams + section_offset(w->chunks, v), size,
				v == w->version ? PROT_READ | PROT_WRITE : PROT_READ, &at);
	/* A core file is about the program. */
	REMOTE(&in->r, SYS_madvise, in->streams, len, MADV_DONTDUMP);
	return result;
}

static unsigned fds_of(const struct inject_want *w, int *fd)
{
	fd[0] = w->area_fd;
	fd[1] = w->brief_fd;
	fd[2] = inside_image_fd();
	if (!w->chunks)
		return 3;
	fd[3] = w->conduct_fd;
	memcpy(fd + 4, w->section_fd, w->versions * sizeof(*fd));
	return 4 + w->versions;
}

static int batch(struct injection *in, const struct batch_call *call, unsigned n, long *result)
{
	return remote_batch(&in->r, in->boards, in->block + BLOCK_SCRATCH, call, n, result);
}

#define MAP_CALL(at, len, prot, flags, fd) \
	{ SYS_mmap, { at, len, prot, flags, (uint64_t)(fd), 0 } }

/* The area, the brief, and the image's code in its place. */
static int area_map(struct injection *in, const int *fd)
{
	const struct batch_call call[] = {
		MAP_CALL(0, sizeof(struct area), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_NORESERVE, fd[0]),
		MAP_CALL(0, sizeof(struct brief), PROT_READ, MAP_SHARED | MAP_NORESERVE, fd[1]),
		MAP_CALL(in->base, inside_image()->data, PROT_READ | PROT_EXEC,
			 MAP_PRIVATE | MAP_FIXED, fd[2]),
	};
	long got[3];
	int result = batch(in, call, 3, got);

	for (int i = 0; i < 3 && !result; i++)
		result = failed(got[i]) ? (int)got[i] : 0;
	in->area = (uint64_t)got[0];
	in->boot.brief = (uint64_t)got[1];
	return result;
}

static int fds_close(struct injection *in, const int *fd, unsigned n, const int pair[2])
{
	struct batch_call call[FDS + 2];
	long got[FDS + 2];

	for (unsigned i = 0; i < n + 2; i++)
		call[i] = (struct batch_call){ SYS_close, { (uint64_t)(i < n ? fd[i] : pair[i - n]) } };
	return batch(in, call, n + 2, got);
}

static int shared_map_by(struct injection *in, const int pair[2])
{
	int ours[FDS], fd[FDS], closed;
	unsigned n = fds_of(in->want, ours);
	int result = ours[2] < 0 ? ours[2] : fds_send_to(in->r.pid, pair[1], ours, n);

	if (!result)
		result = fds_receive(in, pair[0], fd, n);
	if (result) {
		fds_close(in, NULL, 0, pair);
		return result;
	}
	result = area_map(in, fd);
	if (!result && in->want->chunks)
		result = streams_map(in, fd + 3);
	closed = fds_close(in, fd, n, pair);
	return result ? result : closed;
}

/*
 * What is ours lies in one piece, which is first all code: no memory that can be written
 * is ever made code, which a program may have forbidden itself.
 */
int image_map(struct injection *in)
{
	const struct inside_image *im = inside_image();
	uint64_t len = im->memory_len + LIBRARY_BOARDS + BLOCK_BYTES;
	long at = REMOTE(&in->r, SYS_mmap, 0, len, PROT_READ | PROT_EXEC, ANON, (uint64_t)-1, 0);

	if (failed(at))
		return (int)at;
	in->base = (uint64_t)at;
	in->boards = in->base + im->memory_len;
	in->block = in->boards + LIBRARY_BOARDS;
	return 0;
}

/* The image's data, and the block; and the way for the descriptors. */
static int room_ready(struct injection *in)
{
	const struct inside_image *im = inside_image();
	const uint64_t writable = PROT_READ | PROT_WRITE;
	const struct batch_call call[] = {
		{ SYS_mprotect, { in->block, BLOCK_BYTES, writable } },
		{ SYS_mprotect, { in->base + im->data, im->memory_len - im->data, writable } },
		{ SYS_socketpair, { AF_UNIX, SOCK_DGRAM, 0, in->block } },
	};
	long got[3];
	int result = batch(in, call, 3, got);

	for (int i = 0; i < 3 && !result; i++)
		result = failed(got[i]) ? (int)got[i] : 0;
	if (result)
		return result;
	return memory_write(in->r.memory, in->base + im->data, im->bytes + im->data,
			    im->file_len - im->data);
}

/* A server may live under a low limit of descriptors: lift it meanwhile. */
static void files_lift(pid_t pid, struct rlimit *was)
{
	struct rlimit more;

	if (prlimit(pid, RLIMIT_NOFILE, NULL, was) < 0)
		return;
	more = *was;
	more.rlim_cur = more.rlim_max;
	prlimit(pid, RLIMIT_NOFILE, &more, NULL);
}

int shared_map(struct injection *in)
{
	struct rlimit was = { 0, 0 };
	int pair[2], result;

	files_lift(in->r.pid, &was);
	result = room_ready(in);
	if (!result) {
		memory_read(in->r.memory, in->block, pair, sizeof(pair));
		result = shared_map_by(in, pair);
	}
	prlimit(in->r.pid, RLIMIT_NOFILE, &was, NULL);
	return result;
}
