/*
 * Realms: the processes of a session that have the same rights, in all its versions.
 *
 * Who may write a lane decides what a twin of its thread is told.  Within a version any
 * process could write the lanes of all, so a worker that gave up root could tell the root
 * process of a follower what it liked.  So each realm has sections of its own, a file for
 * each version; a process has those of its own realm mapped and gets no others.
 *
 * A process of one thread that has given up rights (or changed them otherwise) asks for
 * the realm that it belongs to (REQ_REALM).  What rights it has the kernel says, never
 * the process.  The leader's is given a lane there, tells that in its old one
 * (EVENT_MOVED) and goes on in the new; its twin comes to that, and asks in the same
 * way.  A program begins in the realm of who has executed it, or, if it has other rights, in
 * its own (start/exec_move.c).
 *
 * A realm without an open or unread lane may become another's: it gets new files then, for
 * somebody may still have the old ones.  Sessions that are followed late have one realm:
 * what their start told is kept for one section; and so have those that are recorded, or were.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "engine/core/away.h"
#include "engine/core/must.h"
#include "engine/core/ring.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/kernel/asker.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/kernel/rights.h"
#include "engine/outside/kernel/shared.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/realms.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/session/descriptors.h"

#define FILES_LIFTED	65536

/* --- making one -------------------------------------------------------------------- */

void *realm_room(uint32_t chunks)
{
	void *at = mmap(NULL, streams_size(chunks), PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* A version's part: for itself to write, for the others to read. */
static int section_make(struct monitor *m, struct realm *r, uint32_t v)
{
	uint32_t chunks = m->conduct->chunks;
	struct section *s = shared_make("mve-stream", section_size(chunks),
					(uint8_t *)r->conduct + section_offset(chunks, v), 0,
					&r->section_fd[v]);

	if (!s)
		return -errno;
	r->section_read_fd[v] = shared_reader(r->section_fd[v]);
	s->magic = RING_MAGIC;
	s->version = RING_VERSION;
	if (v < m->versions)
		chunks_make(s, m->conduct);
	return r->section_read_fd[v] < 0 ? r->section_read_fd[v] : 0;
}

static void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void sections_close(struct realm *r)
{
	for (uint32_t v = 0; v < VERSIONS; v++) {
		fd_close(&r->section_fd[v]);
		fd_close(&r->section_read_fd[v]);
	}
}

static void realm_unmake(struct monitor *m, struct realm *r)
{
	MUST(r->conduct && r->conduct != m->conduct);	/* the first is everybody's */
	sections_close(r);
	munmap(r->conduct, streams_size(m->conduct->chunks));
}

/* The first one's page is everybody's. */
void realms_close(struct monitor *m)
{
	while (m->realms > 1)
		realm_unmake(m, &m->realm[--m->realms]);
	sections_close(&m->realm[0]);
	m->realms = 0;
}

static int sections_make(struct monitor *m, struct realm *r)
{
	int result = 0;

	for (uint32_t v = 0; v < VERSIONS; v++)
		r->section_fd[v] = r->section_read_fd[v] = -1;
	for (uint32_t v = 0; v < m->conduct->sections && !result; v++)
		result = section_make(m, r, v);
	return result;
}

int realm_sections(struct monitor *m)
{
	m->realms = 1;
	return sections_make(m, &m->realm[0]);
}

/* In the place of what is there, once it is whole: others go through all that are there. */
static int realm_make(struct monitor *m, uint32_t realm, const struct rights_key *key)
{
	struct realm made = { .key = *key, .conduct = realm_room(m->conduct->chunks) };
	int result;

	MUST(realm && realm <= m->realms && realm < REALMS);

	if (!made.conduct)
		return -ENOMEM;
	if (mmap(made.conduct, CONDUCT_SIZE, PROT_READ, MAP_SHARED | MAP_FIXED, m->conduct_fd,
		 0) == MAP_FAILED) {
		munmap(made.conduct, streams_size(m->conduct->chunks));
		return -ENOMEM;
	}
	result = sections_make(m, &made);
	if (result) {
		realm_unmake(m, &made);
		return result;
	}
	if (realm < m->realms)
		realm_unmake(m, &m->realm[realm]);
	else
		m->realms = realm + 1;
	m->realm[realm] = made;
	return 0;
}

/* --- which one --------------------------------------------------------------------- */

static bool lane_is_idle(const struct monitor *m, uint32_t lane)
{
	const struct lane *l = lane_at(m, m->leader, lane);

	MUST(lane < LANES_ALL);

	if (l->state != LANE_CLOSED)
		return l->state == LANE_FREE;
	for (uint32_t v = 0; v < m->versions; v++)
		if (m->conduct->following >> v & 1 && cursor_at(m, v, lane)->done != l->life)
			return false;
	return true;
}

static bool realm_is_idle(const struct monitor *m, uint32_t realm)
{
	for (uint32_t i = lane_next(m, m->leader, realm * LANES); i < (realm + 1) * LANES;
	     i = lane_next(m, m->leader, i + 1))
		if (!lane_is_idle(m, i))
			return false;
	return true;
}

/* Nobody of the new key gets what one of the old key may still have mapped. */
static int realm_again(struct monitor *m, const struct rights_key *key)
{
	for (uint32_t r = 1; r < m->realms; r++)
		if (realm_is_idle(m, r))
			return realm_make(m, r, key) ? -ENOMEM : (int)r;
	return -ENOSPC;
}

static int realm_of(struct monitor *m, const struct rights_key *key)
{
	for (uint32_t r = 0; r < m->realms; r++)
		if (!memcmp(&m->realm[r].key, key, sizeof(*key)))
			return (int)r;
	if (m->realms < REALMS)
		return realm_make(m, m->realms, key) ? -ENOMEM : (int)m->realms - 1;
	streams_sweep(m);
	return realm_again(m, key);
}

bool realm_fits(const struct monitor *m, uint32_t realm, pid_t tid)
{
	struct rights_key key;

	return rights_key_read(tid, &key) && !memcmp(&m->realm[realm].key, &key, sizeof(key));
}

void realm_first(struct monitor *m, pid_t pid)
{
	if (!rights_key_read(pid, &m->realm[0].key))
		memset(&m->realm[0].key, 0, sizeof(m->realm[0].key));
}

int realm_for(struct monitor *m, pid_t pid)
{
	struct rights_key key;

	if (realm_is_one(m))
		return 0;
	return rights_key_read(pid, &key) ? realm_of(m, &key) : -ESRCH;
}

/* --- a process that asks -------------------------------------------------------------- */

static int sections_send(const struct monitor *m, const struct version *v, const struct realm *r,
			 int socket)
{
	uint32_t n = m->conduct->sections;
	int fd[VERSIONS];

	MUST(n <= VERSIONS && v->index < n);
	for (uint32_t i = 0; i < n; i++)
		fd[i] = i == v->index ? r->section_fd[i] : r->section_read_fd[i];
	return descriptors_send(socket, fd, n, "", 1);
}

static int sections_give(struct monitor *m, const struct version *v, const struct request *r,
			 uint32_t realm)
{
	int socket = asker_socket(r->pid, (int)r->args[0]);
	int result = socket < 0 ? socket : sections_send(m, v, &m->realm[realm], socket);

	if (socket >= 0)
		descriptors_close(r->pid, &socket, 1);
	return result;
}

/* A lane for the thread in its new realm, told to whom its old one was. */
static int64_t lane_new(struct monitor *m, const struct version *v, uint32_t realm, pid_t pid,
			pid_t tid, uint32_t was)
{
	struct streams s = { m->realm[realm].conduct, v->index };
	int lane = lane_open(&s, lane_at(m, v->index, was)->readers);
	struct lane *l;

	MUST(realm < m->realms && lane < (int)LANES);

	if (lane < 0)
		return -ENOSPC;
	/* So that it is closed when the thread is killed before it has come there. */
	l = lane_at(m, v->index, realm * LANES + (uint32_t)lane);
	l->pid = pid;
	l->owner = tid;
	return (int64_t)realm * LANES + lane;
}

static int64_t leader_moves(struct version *v, const struct request *r,
			    const struct rights_key *key)
{
	struct monitor *m = v->monitor;
	int realm = realm_of(m, key), result;
	int64_t lane;

	say_log("realm", "%d goes from %u to %d", r->pid, (uint32_t)r->args[1], realm);
	if (realm < 0)
		return realm;
	lane = lane_new(m, v, (uint32_t)realm, r->pid, r->tid, (uint32_t)r->args[5]);
	result = lane < 0 ? 0 : sections_give(m, v, r, (uint32_t)realm);
	if (result)
		lane_cancel(&(struct streams){ m->realm[realm].conduct, v->index },
			    (uint32_t)lane % LANES);
	return result ? result : lane;
}

/* It has the sections of that realm still mapped, as the kernel says. */
static bool realm_is_mapped(const struct monitor *m, const struct version *v, uint32_t realm,
			    pid_t pid)
{
	bool mapped = false;
	struct stat st;
	struct maps maps;

	if (fstat(m->realm[realm].section_fd[v->index], &st) || maps_read(pid, &maps))
		return false;
	for (size_t i = 0; i < maps.n; i++)
		mapped |= maps.map[i].shared && maps.map[i].inode == st.st_ino &&
			  maps.map[i].dev == st.st_dev;
	maps_free(&maps);
	return mapped;
}

/*
 * It may have no descriptor: a server that gives up all it can.  We lift that for as long as
 * it asks, once: who has moved has nothing mapped any more by which it could ask again.
 * Where we may not (CAP_SYS_RESOURCE) it stays with those whose rights it had.
 */
static int64_t files_lift(const struct monitor *m, const struct version *v,
			  const struct request *r, uint32_t is)
{
	const struct rlimit some = { FILES_LIFTED, FILES_LIFTED };

	if (!realm_is_mapped(m, v, is, r->pid))
		return -EMFILE;
	if (!prlimit(r->pid, RLIMIT_NOFILE, &some, NULL))
		return REALM_AGAIN;
	say_log("realm", "%d of %s may have no descriptors, and stays in realm %u: %s", r->pid,
		v->name, is, strerror(errno));
	return REALM_STAY;
}

/* Nobody can be told any more of a process of the leader's. */
static int64_t realm_lost(struct monitor *m, pid_t pid, int64_t why)
{
	for (unsigned i = 0; i < m->versions && why < 0; i++)
		follower_drop(&m->version[i], VERDICT_UNSUPPORTED, "the leader's pid %d has other "
			      "rights now, and no place in the streams: %s", pid,
			      strerror((int)-why));
	return why;
}

/* Followers have yet to read what keeps the version's lanes; as in host_lane(). */
static bool lanes_come(const struct monitor *m, const struct version *v, uint64_t waited_ms)
{
	bool held = false;

	for (uint32_t r = 0; r < m->realms; r++)
		held |= lanes_held_by(&(struct streams){ m->realm[r].conduct, v->index }) != 0;
	return held && (waited_ms < m->conduct->full_ms ||
			m->conduct->when_full == WHEN_FULL_BLOCK);
}

int64_t realm_lane(struct version *v, pid_t pid, uint32_t was, uint64_t waited_ms)
{
	struct monitor *m = v->monitor;
	struct rights_key key;
	int64_t lane = rights_key_read(pid, &key) ? realm_of(m, &key) : -ESRCH;

	if (lane >= 0)
		lane = lane_new(m, v, (uint32_t)lane, pid, pid, was);
	if (lane == -ENOSPC && lanes_come(m, v, waited_ms))
		return -EAGAIN;
	return realm_lost(m, pid, lane);
}

int64_t realm_serve(struct version *v, const struct request *r)
{
	struct monitor *m = v->monitor;
	uint64_t is = (uint32_t)r->args[1], waited_ms = r->args[1] >> 32, wants = r->args[2];
	struct rights_key key;
	int64_t lane;

	if (realm_is_one(m))
		return REALM_STAY;
	if (!lane_is(m, r->args[5]) || is >= m->realms || !rights_key_read(r->tid, &key))
		return -EINVAL;
	if (wants != REALM_ANY && (wants >= m->realms || !realm_fits(m, (uint32_t)wants, r->tid)))
		return -EPERM;
	if (wants == REALM_ANY && !memcmp(&m->realm[is].key, &key, sizeof(key)))
		return REALM_STAY;
	if ((int)r->args[0] < 0)
		return files_lift(m, v, r, (uint32_t)is);
	if (wants != REALM_ANY)
		return sections_give(m, v, r, (uint32_t)wants);
	if (v->index != m->leader)
		return -EINVAL;
	lane = leader_moves(v, r, &key);
	return lane == -ENOSPC && lanes_come(m, v, waited_ms) ? -EAGAIN :
								 realm_lost(m, r->pid, lane);
}
