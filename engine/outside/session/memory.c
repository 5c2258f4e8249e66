/*
 * See memory.h.  What is in place is read and written by the caller itself; all else by a
 * thread that may be left behind, in parts that fit its room.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/session/memory.h"
#include "engine/outside/session/reach.h"

#define PAGE		4096ull

struct work {
	pid_t pid;
	bool by_file, write;
	uint64_t at;
	size_t len;
	uint8_t bytes[];
};

#define PART	(REACH_ROOM - sizeof(struct work))

/* --- what is done ----------------------------------------------------------------------- */

static int mem_open(pid_t pid)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/mem", pid);
	fd = open(name, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static long by_file(int memory, bool writes, uint64_t at, void *bytes, size_t len)
{
	ssize_t n = writes ? pwrite(memory, bytes, len, (off_t)at) :
			     pread(memory, bytes, len, (off_t)at);

	return n < 0 ? -errno : n;
}

static long by_number(pid_t pid, bool writes, uint64_t at, void *bytes, size_t len)
{
	size_t done = 0;

	while (done < len) {
		uint64_t from = at + done, part = PAGE - from % PAGE;
		struct iovec here = { (char *)bytes + done, part < len - done ? part : len - done };
		struct iovec there = { (void *)from, here.iov_len };
		ssize_t n = writes ? process_vm_writev(pid, &here, 1, &there, 1, 0) :
				     process_vm_readv(pid, &here, 1, &there, 1, 0);

		if (n <= 0)
			return done ? (long)done : -errno;
		done += (size_t)n;
	}
	return (long)done;
}

static long by_file_opened(struct work *w)
{
	int memory = mem_open(w->pid);
	long n = memory < 0 ? memory : by_file(memory, w->write, w->at, w->bytes, w->len);

	if (memory >= 0)
		close(memory);
	return n;
}

static long work_do(void *room)
{
	struct work *w = room;

	return w->by_file ? by_file_opened(w) :
			    by_number(w->pid, w->write, w->at, w->bytes, w->len);
}

/* --- by whom ------------------------------------------------------------------------------ */

/* Bytes, or why not one was. */
static long part_do(const struct work *want, void *bytes)
{
	struct work *w = reach_room(want->pid, sizeof(*w) + want->len);
	long n;

	if (!w)
		return -ETIME;
	memcpy(w, want, sizeof(*want));
	if (w->write)
		memcpy(w->bytes, bytes, w->len);
	n = reach_do(work_do, NULL);
	MUST(n <= (long)want->len);
	if (n > 0 && !want->write)
		memcpy(bytes, w->bytes, (size_t)n);
	return n;
}

static long parts_do(struct work *want, void *bytes, size_t len)
{
	size_t done = 0;

	while (done < len) {
		long n;

		want->len = len - done < PART ? len - done : PART;
		n = part_do(want, (char *)bytes + done);
		if (n <= 0)
			return done ? (long)done : n;
		done += (size_t)n;
		want->at += (uint64_t)n;
	}
	return (long)done;
}

/* A handle is a descriptor, or the number of a process that is opened each time. */
#define BY_NUMBER	(1 << 24)
_Static_assert(BY_NUMBER > 1 << 22, "above the highest number of a process, and of a descriptor");

int memory_open(pid_t pid)
{
	MUST(pid > 0 && pid < BY_NUMBER);
	return reach_in_place(pid) ? mem_open(pid) : BY_NUMBER + pid;
}

void memory_close(int memory)
{
	if (memory < BY_NUMBER)
		close(memory);
}

static int file_do(int memory, bool writes, uint64_t at, void *bytes, size_t len)
{
	struct work want = { .pid = memory - BY_NUMBER, .by_file = true, .write = writes,
			     .at = at };
	long n;

	MUST(memory >= 0);
	n = memory < BY_NUMBER ? by_file(memory, writes, at, bytes, len) :
				 parts_do(&want, bytes, len);
	return n == (long)len ? 0 : n < 0 ? (int)n : -EFAULT;
}

/* --- many at once ------------------------------------------------------------------------- */

struct parts {
	pid_t pid;
	bool write;
	unsigned n;
	struct memory_part part[];	/* their bytes stand behind them */
};

static long parts_run(int memory, bool writes, const struct memory_part *part, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		long got = by_file(memory, writes, part[i].at, part[i].bytes, part[i].len);

		if (got != (long)part[i].len)
			return got < 0 ? got : -EFAULT;
	}
	return 0;
}

static long parts_opened(void *room)
{
	const struct parts *p = room;
	int memory = mem_open(p->pid);
	long result = memory < 0 ? memory : parts_run(memory, p->write, p->part, p->n);

	if (memory >= 0)
		close(memory);
	return result;
}

static size_t parts_size(const struct memory_part *part, unsigned n)
{
	size_t size = sizeof(struct parts) + n * sizeof(*part);

	for (unsigned i = 0; i < n; i++)
		size += part[i].len;
	return size;
}

/* Between the parts' bytes and those in the room. */
static void parts_copy(struct parts *p, const struct memory_part *part, bool in)
{
	uint8_t *at = (uint8_t *)&p->part[p->n];

	for (unsigned i = 0; i < p->n; at += part[i++].len) {
		p->part[i] = (struct memory_part){ part[i].at, at, part[i].len };
		memcpy(in ? at : part[i].bytes, in ? part[i].bytes : at, part[i].len);
	}
}

static int parts_reach(pid_t pid, bool writes, const struct memory_part *part, unsigned n)
{
	size_t size = parts_size(part, n);
	struct parts *p = size <= REACH_ROOM ? reach_room(pid, size) : NULL;
	long result;

	if (!p)
		return size <= REACH_ROOM ? -ETIME : -E2BIG;
	p->pid = pid;
	p->write = writes;
	p->n = n;
	parts_copy(p, part, true);
	result = reach_do(parts_opened, NULL);
	if (!result && !writes)
		parts_copy(p, part, false);
	return (int)result;
}

static int file_parts(int memory, bool writes, const struct memory_part *part, unsigned n)
{
	MUST(memory >= 0 && n);
	return memory < BY_NUMBER ? (int)parts_run(memory, writes, part, n) :
				    parts_reach(memory - BY_NUMBER, writes, part, n);
}

int memory_read_parts(int memory, const struct memory_part *part, unsigned n)
{
	return file_parts(memory, false, part, n);
}

int memory_write_parts(int memory, const struct memory_part *part, unsigned n)
{
	return file_parts(memory, true, part, n);
}

/* --- one ---------------------------------------------------------------------------------- */

int memory_read(int memory, uint64_t at, void *to, size_t len)
{
	return file_do(memory, false, at, to, len);
}

int memory_write(int memory, uint64_t at, const void *from, size_t len)
{
	return file_do(memory, true, at, (void *)from, len);
}

static long number_do(pid_t pid, bool writes, uint64_t at, void *bytes, size_t len)
{
	struct work want = { .pid = pid, .write = writes, .at = at };

	return reach_in_place(pid) ? by_number(pid, writes, at, bytes, len) :
				     parts_do(&want, bytes, len);
}

long memory_peek(pid_t pid, uint64_t at, void *to, size_t len)
{
	return number_do(pid, false, at, to, len);
}

int memory_poke(pid_t pid, uint64_t at, const void *from, size_t len)
{
	long n = number_do(pid, true, at, (void *)from, len);

	return n == (long)len ? 0 : n < 0 ? (int)n : -EFAULT;
}
