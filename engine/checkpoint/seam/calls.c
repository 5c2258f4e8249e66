/*
 * What the program calls in the place of recv and the like (pass/known.def).  Those that bring
 * something on an accepted connection begin a request; those that cannot be taken back end it.
 *
 * What a call is to write is saved here, and not by the pass: mostly the request is over by then,
 * and nothing need be saved.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "engine/checkpoint/runtime/save.h"
#include "engine/checkpoint/runtime/stacks.h"
#include "engine/checkpoint/runtime/state.h"
#include "engine/checkpoint/seam/calls.h"
#include "engine/checkpoint/seam/seam.h"
#include "engine/checkpoint/ways/ways.h"

static const char sent[] = "it had sent something";
static const char accepts[] = "it had gone on to accept";
static const char closed[] = "it had closed a descriptor";
static const char changed[] = "it had changed what is waited for";

/* More messages at once the kernel does not send, and more parts it does not read. */
#define MESSAGES_MAX	1024
#define PARTS_MAX	1024

static __attribute__((noinline)) void save(const void *at, size_t size)
{
	if (!at || (uintptr_t)at - own_stack.low < own_stack.room)
		return;
	if (way->all)
		mve_checkpoint_touch(at, size);
	else
		mve_checkpoint_save_most(at, size);
}

/* The kernel is about to write there. */
void seam_written(const void *at, size_t size)
{
	if (state->epoch)
		save(at, size);
}

static void written_parts(const struct iovec *parts, size_t number)
{
	for (size_t n = 0; n < number && number <= PARTS_MAX; n++)
		seam_written(parts[n].iov_base, parts[n].iov_len);
}

/* A socket's address, with its size. */
static void written_name(const struct sockaddr *at, const socklen_t *size)
{
	if (size)
		seam_written(at, *size);
	seam_written(size, sizeof(*size));
}

/* The user has named the call; a file of the server's own, or a device, is no request all the
 * same. */
static int brings(int fd, enum rollback_brings call)
{
	struct stat what;

	return back->brings & call && !fstat(fd, &what) && !S_ISREG(what.st_mode) &&
	       !S_ISCHR(what.st_mode);
}

static int begins(int fd, enum rollback_brings call)
{
	return back->brings ? brings(fd, call) : is_connection(fd);
}

/* With MSG_TRUNC more is said to have come than there was room for. */
static ssize_t came(int fd, enum rollback_brings call, const struct iovec *parts, size_t number,
		    ssize_t got)
{
	size_t room = 0;

	if (got <= 0 || seam->each <= 0 || !begins(fd, call))
		return got;
	for (size_t n = 0; n < number && room < (size_t)got; n++)
		room += parts[n].iov_len;
	if (room > (size_t)got)
		room = got;
	seam->secret = 0;
	return room && seam_came(fd, parts, room, is_connection(fd)) ? -1 : got;
}

static ssize_t came_whole(int fd, enum rollback_brings call, void *bytes, size_t size, ssize_t got)
{
	const struct iovec part = { bytes, size };

	return seam->each > 0 ? came(fd, call, &part, 1, got) : got;
}

/* It is a library's: --mark names calls of the program's own. */
ssize_t seam_brought(int fd, const void *bytes, ssize_t got)
{
	const struct iovec part = { (void *)bytes, got > 0 ? got : 0 };

	if (got <= 0 || seam->each <= 0 || back->brings || !is_connection(fd))
		return got;
	seam->secret = 1;
	return seam_came(fd, &part, got, 1) ? -1 : got;
}

/* If something comes, a request that is open is over; if not, nothing is written.  (By mprotect
 * nothing could be.) */
static int is_next(int fd, enum rollback_brings call)
{
	return state->depth == 1 && !way->all && seam_is_open() && begins(fd, call);
}

static int accepted(int fd)
{
	if (fd >= 0 && fd < SEAM_FDS)
		__atomic_or_fetch(&seam->accepted[fd / 64], 1ul << fd % 64, __ATOMIC_RELAXED);
	return fd;
}

void seam_answers(int fd)
{
	seam_end(sent);
	held_answered(fd);
}

static void gone(int fd)
{
	held_answered(fd);
	if (!held_opened(fd))
		seam_end(closed);
	if (is_connection(fd))
		__atomic_and_fetch(&seam->accepted[fd / 64], ~(1ul << fd % 64), __ATOMIC_RELAXED);
}

/* What is written to a file or a terminal, or as standard output and error, is no answer. */
static void going(int fd)
{
	struct stat what;

	held_answered(fd);
	if (!back->open || ((fd == 1 || fd == 2) && !is_connection(fd)))
		return;
	if (is_connection(fd) || fstat(fd, &what) ||
	    !(S_ISREG(what.st_mode) || S_ISCHR(what.st_mode)))
		seam_end(sent);
}

int mve_seam_accept(int fd, struct sockaddr *from, socklen_t *size)
{
	seam_end(accepts);
	written_name(from, size);
	return accepted(accept(fd, from, size));
}

int mve_seam_accept4(int fd, struct sockaddr *from, socklen_t *size, int flags)
{
	seam_end(accepts);
	written_name(from, size);
	return accepted(accept4(fd, from, size, flags));
}

int mve_seam_close(int fd)
{
	gone(fd);
	return close(fd);
}

/* What else is closed so changes nothing that a request would miss: a file of its own, mostly. */
static void gone_if_connection(int fd)
{
	if (is_connection(fd))
		gone(fd);
}

int mve_seam_fclose(FILE *file)
{
	gone_if_connection(fileno(file));
	return fclose(file);
}

int mve_seam_close_range(unsigned first, unsigned last, int flags)
{
	if (!(flags & CLOSE_RANGE_CLOEXEC))
		for (unsigned fd = first; fd <= last && fd < SEAM_FDS; fd++)
			gone_if_connection((int)fd);
	return close_range(first, last, flags);
}

/* Another number of a connection is one, too. */
static int also(int from, int fd)
{
	return is_connection(from) ? accepted(fd) : fd;
}

int mve_seam_dup(int from)
{
	return also(from, dup(from));
}

int mve_seam_dup2(int from, int to)
{
	if (from != to)
		gone(to);
	return also(from, dup2(from, to));
}

int mve_seam_dup3(int from, int to, int flags)
{
	if (from != to)
		gone(to);
	return also(from, dup3(from, to, flags));
}

int mve_seam_fcntl(int fd, int what, ...)
{
	va_list more;
	long argument;
	int got;

	va_start(more, what);
	argument = va_arg(more, long);
	va_end(more);
	got = fcntl(fd, what, argument);
	return what == F_DUPFD || what == F_DUPFD_CLOEXEC ? also(fd, got) : got;
}

int mve_seam_shutdown(int fd, int how)
{
	seam_end(closed);
	return shutdown(fd, how);
}

ssize_t mve_seam_read(int fd, void *to, size_t size)
{
	if (!is_next(fd, BRINGS_READ))
		seam_written(to, size);
	return came_whole(fd, BRINGS_READ, to, size, read(fd, to, size));
}

ssize_t mve_seam_readv(int fd, const struct iovec *parts, int number)
{
	if (!is_next(fd, BRINGS_READV))
		written_parts(parts, number);
	return came(fd, BRINGS_READV, parts, number, readv(fd, parts, number));
}

ssize_t mve_seam_recv(int fd, void *to, size_t size, int flags)
{
	if (!is_next(fd, BRINGS_RECVFROM))
		seam_written(to, size);
	return came_whole(fd, BRINGS_RECVFROM, to, size, recv(fd, to, size, flags));
}

ssize_t mve_seam_recvfrom(int fd, void *to, size_t size, int flags, struct sockaddr *from,
			  socklen_t *from_size)
{
	if (!is_next(fd, BRINGS_RECVFROM))
		seam_written(to, size);
	written_name(from, from_size);
	return came_whole(fd, BRINGS_RECVFROM, to, size,
			  recvfrom(fd, to, size, flags, from, from_size));
}

ssize_t mve_seam_recvmsg(int fd, struct msghdr *message, int flags)
{
	ssize_t got;

	if (!is_next(fd, BRINGS_RECVMSG)) {
		seam_written(message, sizeof(*message));
		seam_written(message->msg_name, message->msg_namelen);
		seam_written(message->msg_control, message->msg_controllen);
		written_parts(message->msg_iov, message->msg_iovlen);
	}
	got = recvmsg(fd, message, flags);
	return came(fd, BRINGS_RECVMSG, message->msg_iov, message->msg_iovlen, got);
}

ssize_t mve_seam_write(int fd, const void *from, size_t size)
{
	going(fd);
	return write(fd, from, size);
}

ssize_t mve_seam_writev(int fd, const struct iovec *parts, int number)
{
	going(fd);
	return writev(fd, parts, number);
}

ssize_t mve_seam_send(int fd, const void *from, size_t size, int flags)
{
	seam_answers(fd);
	return send(fd, from, size, flags);
}

ssize_t mve_seam_sendto(int fd, const void *from, size_t size, int flags,
			const struct sockaddr *to, socklen_t to_size)
{
	seam_answers(fd);
	return sendto(fd, from, size, flags, to, to_size);
}

ssize_t mve_seam_sendmsg(int fd, const struct msghdr *message, int flags)
{
	seam_answers(fd);
	return sendmsg(fd, message, flags);
}

int mve_seam_sendmmsg(int fd, struct mmsghdr *messages, unsigned number, int flags)
{
	seam_answers(fd);
	if (number > MESSAGES_MAX)
		number = MESSAGES_MAX;
	seam_written(messages, number * sizeof(*messages));
	return sendmmsg(fd, messages, number, flags);
}

ssize_t mve_seam_sendfile(int fd, int from, off_t *at, size_t size)
{
	seam_answers(fd);
	seam_written(at, sizeof(*at));
	return sendfile(fd, from, at, size);
}

ssize_t mve_seam_splice(int from, off64_t *from_at, int fd, off64_t *at, size_t size,
			unsigned flags)
{
	going(fd);
	seam_written(from_at, sizeof(*from_at));
	seam_written(at, sizeof(*at));
	return splice(from, from_at, fd, at, size, flags);
}

int mve_seam_epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
	seam_waits();
	seam_written(events, most > 0 ? most * sizeof(*events) : 0);
	return epoll_wait(fd, events, most, timeout);
}

int mve_seam_epoll_pwait(int fd, struct epoll_event *events, int most, int timeout,
			 const sigset_t *mask)
{
	seam_waits();
	seam_written(events, most > 0 ? most * sizeof(*events) : 0);
	return epoll_pwait(fd, events, most, timeout, mask);
}

int mve_seam_epoll_pwait2(int fd, struct epoll_event *events, int most,
			  const struct timespec *timeout, const sigset_t *mask)
{
	seam_waits();
	seam_written(events, most > 0 ? most * sizeof(*events) : 0);
	return epoll_pwait2(fd, events, most, timeout, mask);
}

int mve_seam_epoll_ctl(int fd, int what, int which, struct epoll_event *event)
{
	seam_end(changed);
	return epoll_ctl(fd, what, which, event);
}

int mve_seam_poll(struct pollfd *fds, nfds_t number, int timeout)
{
	seam_waits();
	seam_written(fds, number * sizeof(*fds));
	return poll(fds, number, timeout);
}

int mve_seam_ppoll(struct pollfd *fds, nfds_t number, const struct timespec *timeout,
		   const sigset_t *mask)
{
	seam_waits();
	seam_written(fds, number * sizeof(*fds));
	return ppoll(fds, number, timeout, mask);
}

static void written_sets(fd_set *in, fd_set *out, fd_set *other)
{
	seam_written(in, sizeof(*in));
	seam_written(out, sizeof(*out));
	seam_written(other, sizeof(*other));
}

int mve_seam_select(int most, fd_set *in, fd_set *out, fd_set *other, struct timeval *timeout)
{
	seam_waits();
	written_sets(in, out, other);
	seam_written(timeout, sizeof(*timeout));
	return select(most, in, out, other, timeout);
}

int mve_seam_pselect(int most, fd_set *in, fd_set *out, fd_set *other,
		     const struct timespec *timeout, const sigset_t *mask)
{
	seam_waits();
	written_sets(in, out, other);
	return pselect(most, in, out, other, timeout, mask);
}

/* The mask that a request begins with is another. */
int mve_seam_sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	seam->stood = 0;
	seam_written(old, sizeof(*old));
	return sigprocmask(how, set, old);
}

int mve_seam_pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	seam->stood = 0;
	seam_written(old, sizeof(*old));
	return pthread_sigmask(how, set, old);
}
