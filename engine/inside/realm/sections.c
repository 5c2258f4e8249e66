/*
 * The sections of another realm: asked of the monitor, received and mapped in the place of
 * those that the process leaves.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/resource.h>

#include "engine/core/must.h"
#include "engine/core/ring.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/realm/sections.h"

#define MSG_DONTWAIT_	0x40
#define MSG_CLOEXEC	0x40000000
#define RECEIVE_MOST	VERSIONS

bool descriptors_receive(int socket, int32_t *fd, uint32_t n, void *bytes, uint64_t size)
{
	struct { uint64_t len; int32_t level, type, fd[RECEIVE_MOST]; } control;
	struct span iov = { (uint64_t)bytes, size };
	struct message m = { .iov = (uint64_t)&iov, .iov_n = 1, .control = (uint64_t)&control,
			     .control_len = sizeof(control) };

	MUST(n <= RECEIVE_MOST);
	if (OWN3(__NR_recvmsg, socket, &m, MSG_DONTWAIT_ | MSG_CLOEXEC) != (long)size ||
	    m.control_len < 16 || control.len != 16 + n * sizeof(int32_t))
		return false;
	for (uint32_t i = 0; i < n; i++)
		fd[i] = control.fd[i];
	return true;
}

static bool sections_receive(int socket, int32_t fd[VERSIONS])
{
	uint8_t byte;

	return descriptors_receive(socket, fd, streams.conduct->sections, &byte, 1);
}

static bool section_map(uint32_t version, int32_t fd)
{
	uint32_t chunks = streams.conduct->chunks;
	uint64_t at = (uint64_t)streams.conduct + section_offset(chunks, version);
	uint64_t len = section_size(chunks);
	long prot = version == streams.self ? PROT_READ | PROT_WRITE : PROT_READ;
	long flags = MAP_FIXED | MAP_NORESERVE |
		     (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);

	MUST(version < streams.conduct->sections && version < VERSIONS);

	if (OWN6(__NR_mmap, at, len, prot, flags, fd, 0) != (long)at)
		return false;
	OWN3(__NR_madvise, at, len, MADV_DONTDUMP);
	return true;
}

bool sections_map(const int32_t fd[VERSIONS])
{
	uint32_t chunks = streams.conduct->chunks;
	bool mapped = true;

	for (uint32_t v = 0; v < streams.conduct->sections; v++) {
		if (fd && section_map(v, fd[v]))
			continue;
		mapped = false;
		if (!section_map(v, -1))
			OWN2(__NR_munmap, (uint64_t)streams.conduct + section_offset(chunks, v),
			     section_size(chunks));
	}
	return mapped;
}

static long sections_ask_once(struct thread *t, uint64_t wants, uint64_t waited_ms,
			      int32_t fd[VERSIONS])
{
	int32_t pair[2] = { -1, -1 };
	long reply;

	OWN4(__NR_socketpair, AF_UNIX_, SEQPACKET | O_CLOEXEC, 0, pair);
	reply = request_ask(t, REQ_REALM, (uint64_t)pair[1], boot.realm | waited_ms << 32, wants);
	if (reply >= 0 && reply < LANES_ALL && !sections_receive(pair[0], fd))
		reply = -EMFILE;
	for (int i = 0; i < 2; i++)
		if (pair[i] >= 0)
			OWN1(__NR_close, pair[i]);
	return reply;
}

struct files_limit files_allow(void)
{
	struct files_limit was = { 0, 0 }, most;

	OWN4(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, &was);
	most.now = most.max = was.max;
	OWN4(__NR_prlimit64, 0, RLIMIT_NOFILE, &most, 0);
	return was;
}

void files_forbid(const struct files_limit *was)
{
	OWN4(__NR_prlimit64, 0, RLIMIT_NOFILE, was, 0);
}

long sections_ask(struct thread *t, uint64_t wants, uint64_t waited_ms, int32_t fd[VERSIONS])
{
	struct files_limit was = files_allow();
	long reply;

	reply = sections_ask_once(t, wants, waited_ms, fd);
	if (reply == REALM_AGAIN)
		reply = sections_ask_once(t, wants, waited_ms, fd);
	files_forbid(&was);
	return reply == REALM_AGAIN ? -EMFILE : reply;
}

bool sections_take(const int32_t fd[VERSIONS])
{
	bool mapped = sections_map(fd);

	for (uint32_t v = 0; v < streams.conduct->sections; v++)
		OWN1(__NR_close, fd[v]);
	return mapped;
}
