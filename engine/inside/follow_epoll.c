/*
 * epoll: the data of a registration is often a pointer, which differs between
 * versions.  A follower sees both at epoll_ctl, its own in its memory and the
 * leader's in the event, and puts its own in the place of the leader's in what
 * epoll_wait answers.
 *
 * The data that events carry are always those that the kernel has: after a
 * take-over, of whoever made the registration.
 *
 * Rows are found by the leader's data (an open hash), or by descriptor.
 */
#include <asm/unistd.h>
#include <linux/errno.h>

#include "engine/inside/stream.h"

#define ROWS		16384
#define EVENT_SIZE	12
#define DATA_AT		4
#define CTL_DEL		2

struct registration {
	uint64_t leaders, own;	/* the data */
	int32_t fd;
	int32_t epfd;		/* + 1; 0: free, -1: was used */
	uint32_t events;
	uint32_t pad;
};

static struct registration *rows;
static uint16_t *row_of;	/* of a descriptor, + 1 */
static uint32_t lock;

static void rows_lock(void)
{
	/* Acquire: pairs with the release in rows_unlock. */
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		OWN0(__NR_sched_yield);
}

static void rows_unlock(void)
{
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

static bool rows_ready(void)
{
	long at;

	if (rows)
		return true;
	at = own_map(ROWS * (sizeof(*rows) + sizeof(*row_of)));
	if (at < 0)
		return false;
	rows = (struct registration *)at;
	row_of = (uint16_t *)(rows + ROWS);
	return true;
}

static uint32_t place(uint64_t leaders, int32_t epfd)
{
	return (uint32_t)((leaders ^ (uint64_t)(uint32_t)epfd << 40) * 0x9e3779b97f4a7c15ull >> 50) %
	       ROWS;
}

static struct registration *by_data(uint64_t leaders, int32_t epfd)
{
	for (uint32_t i = 0, at = place(leaders, epfd); i < ROWS; i++, at = (at + 1) % ROWS) {
		if (!rows[at].epfd)
			return NULL;
		if (rows[at].epfd == epfd + 1 && rows[at].leaders == leaders)
			return &rows[at];
	}
	return NULL;
}

static void forget(int32_t epfd, int32_t fd)
{
	struct registration *r;

	if (!rows || fd < 0 || fd >= ROWS || !row_of[fd])
		return;
	r = &rows[row_of[fd] - 1];
	if (r->fd == fd && r->epfd > 0 && (epfd < 0 || r->epfd == epfd + 1)) {
		r->epfd = -1;
		row_of[fd] = 0;
	}
}

static bool lost;	/* a registration found no room: not all are known */

static void add(int32_t epfd, int32_t fd, uint64_t leaders, uint64_t own, uint32_t events)
{
	uint32_t at = place(leaders, epfd);
	const struct registration *old = is_stateless() ? by_data(leaders, epfd) : NULL;

	/* Of a connection whose end was not told. */
	if (old)
		forget(epfd, old->fd);

	for (uint32_t i = 0; i < ROWS; i++, at = (at + 1) % ROWS) {
		if (rows[at].epfd > 0)
			continue;
		rows[at] = (struct registration){ leaders, own, fd, epfd + 1, events, 0 };
		row_of[fd] = (uint16_t)(at + 1);
		return;
	}
	lost = true;
}

/* epoll_ctl was answered: `leaders` is its event as the leader gave it. */
void epoll_changed(const struct walk *call, const uint8_t leaders[EVENT_SIZE])
{
	int32_t epfd = (int32_t)call->args[0], op = (int32_t)call->args[1];
	int32_t fd = (int32_t)call->args[2];
	uint8_t own[EVENT_SIZE];

	if (op == CTL_DEL) {
		rows_lock();
		forget(epfd, fd);
		rows_unlock();
		return;
	}
	if (target_in(own, call->args[3], sizeof(own)))
		return;
	rows_lock();
	forget(epfd, fd);
	/* The same in both versions (a descriptor, say) needs no row, if all is told. */
	if ((is_stateless() ||
	     *(const uint64_t *)(leaders + DATA_AT) != *(const uint64_t *)(own + DATA_AT)) &&
	    fd >= 0 && fd < ROWS && rows_ready()) {
		add(epfd, fd, *(const uint64_t *)(leaders + DATA_AT),
		    *(const uint64_t *)(own + DATA_AT), *(const uint32_t *)own);
	}
	rows_unlock();
}

void epoll_closed(long fd)
{
	rows_lock();
	forget(-1, (int32_t)fd);
	rows_unlock();
}

bool epoll_is_wait(long nr)
{
	return nr == __NR_epoll_wait || nr == __NR_epoll_pwait || nr == __NR_epoll_pwait2;
}

int64_t epoll_known(const struct walk *call)
{
	uint64_t to = call->args[1], from = to;
	uint8_t event[EVENT_SIZE];
	int64_t n = 0;

	rows_lock();
	for (int64_t i = 0; rows && i < call->result; i++, from += EVENT_SIZE) {
		if (target_in(event, from, sizeof(event)))
			break;
		if (!by_data(*(const uint64_t *)(event + DATA_AT), (int32_t)call->args[0]))
			continue;
		if (to != from)
			target_out(to, event, sizeof(event));
		to += EVENT_SIZE;
		n++;
	}
	rows_unlock();
	return n;
}

void epoll_noted(const struct walk *call)
{
	int32_t epfd = (int32_t)call->args[0], fd = (int32_t)call->args[2];
	uint8_t event[EVENT_SIZE] = { 0 };
	uint64_t data;

	if (call->result < 0)
		return;
	rows_lock();
	forget(epfd, fd);
	if ((int32_t)call->args[1] != CTL_DEL) {
		data = target_in(event, call->args[3], sizeof(event)) ? 0 :
		       *(const uint64_t *)(event + DATA_AT);
		if (fd >= 0 && fd < ROWS && rows_ready())
			add(epfd, fd, data, data, *(const uint32_t *)event);
		else
			lost = true;
	}
	rows_unlock();
}

enum brings epoll_brings(const struct walk *call)
{
	uint64_t at = call->args[1] + DATA_AT, data;
	enum brings brings = BRINGS_NOTHING;

	if (lost)
		return BRINGS_KNOWN;
	rows_lock();
	for (int64_t i = 0; i < call->result && brings != BRINGS_KNOWN; i++, at += EVENT_SIZE) {
		const struct registration *r = NULL;
		bool listens = false;

		if (target_in(&data, at, sizeof(data)))
			break;
		if (rows)
			r = by_data(data, (int32_t)call->args[0]);
		if (r && scope_knows(r->fd, &listens))
			brings = listens ? BRINGS_CLIENTS : BRINGS_KNOWN;
	}
	rows_unlock();
	return brings;
}

/* Our own data into the events that the program was given. */
void epoll_answered(const struct walk *call)
{
	uint64_t at = call->args[1] + DATA_AT, data;

	rows_lock();
	for (int64_t i = 0; rows && i < call->result; i++, at += EVENT_SIZE) {
		const struct registration *r;

		if (target_in(&data, at, sizeof(data)))
			break;
		r = by_data(data, (int32_t)call->args[0]);
		if (r && r->own != data)
			target_out(at, &r->own, sizeof(data));
	}
	rows_unlock();
}

/*
 * A leader that followed before: the kernel still has the data of whoever made
 * the registration, and so have the events that were just told.
 */
void epoll_led(const struct walk *call, long nr)
{
	if (!rows || call->result < 0)
		return;
	if (epoll_is_wait(nr)) {
		epoll_answered(call);
	} else if (nr == __NR_epoll_ctl && !is_stateless()) {	/* else: epoll_noted */
		rows_lock();
		forget((int32_t)call->args[0], (int32_t)call->args[2]);
		rows_unlock();
	} else if (nr == __NR_close) {
		epoll_closed((long)call->args[0]);
	}
}
