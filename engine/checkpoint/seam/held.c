/*
 * Where mve holds the program (mve run --rollback) there are no handlers of ours: the inside sees
 * each fault, deadly call and handler first, and sends a thread that can be taken back to held_go,
 * on the seam's own stack.  What else could not be taken back it has seen, too: whoever made the
 * call, libraries as well (engine/inside/rollback).
 */
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "engine/checkpoint/runtime/kernel.h"
#include "engine/checkpoint/runtime/state.h"
#include "engine/checkpoint/seam/seam.h"

long held_say(enum rollback_word word, const char *why)
{
	return KERNEL_2(ROLLBACK_CALL, word, why);
}

int held_opened(int fd)
{
	for (uint32_t n = 0; n < back->opened && n < ROLLBACK_OPENED; n++)
		if (back->number[n] == fd)
			return 1;
	return 0;
}

/* All signals stay blocked until memory is back. */
void held_go(int sig)
{
	const uint64_t all = ~0ull;
	const char *why = NULL;

	KERNEL_4(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, MASK_BYTES);
	seam->sig = sig;
	if (held_say(ROLLBACK_ASK, NULL) == 1) {
		if (!others_stood())
			why = "another thread has run meanwhile";
		if (!why) {
			mve_checkpoint_restore();
			why = mve_checkpoint_why();
		}
		held_say(ROLLBACK_NOT, why);
	}
	back->open = 0;
	for (;;)
		die_of(sig);
}

/* Whoever reads slowly gets what there is room for: nobody waits. */
static void answer(int fd)
{
	if (back->reply_size && !seam->secret)
		send(fd, (const void *)back->reply, back->reply_size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* --- what is known ----------------------------------------------------------------------- */

#define PRIME	((1ul << 61) - 1)

/* A polynomial's value at a place that nobody knows (Carter and Wegman): as the bytes come, in
 * whatever pieces. */
static uint64_t sum_more(uint64_t sum, const unsigned char *bytes, size_t size)
{
	for (size_t n = 0; n < size; n++) {
		unsigned __int128 x = (unsigned __int128)sum * seam->key + bytes[n] + 1;

		sum = (uint64_t)(x & PRIME) + (uint64_t)(x >> 61);
		if (sum >= PRIME)
			sum -= PRIME;
	}
	return sum;
}

/* Without a key nothing is known again. */
void held_begin(void)
{
	if (KERNEL_3(SYS_getrandom, &seam->key, sizeof(seam->key), 0) != sizeof(seam->key))
		back->refuse = 0;
	seam->key %= PRIME;
}

static struct heard *heard(int fd)
{
	return &seam_tables->heard[fd < 0 || fd >= SEAM_FDS ? 0 : fd];
}

void held_answered(int fd)
{
	if (back->refuse)
		*heard(fd) = (struct heard){ 0 };
}

static void learn(void)
{
	if (back->refuse)
		seam_tables->known[seam->knows++ % KNOWN_MAX] = *heard(back->fd);
}

int held_refuses(int fd, const struct iovec *parts, size_t got, int more)
{
	struct heard *h = heard(fd);

	if (!more)
		held_answered(fd);
	h->size += got;
	for (size_t n; got; got -= n, parts++) {
		n = parts->iov_len < got ? parts->iov_len : got;
		h->sum = sum_more(h->sum, parts->iov_base, n);
	}
	for (unsigned n = 0; n < seam->knows && n < KNOWN_MAX; n++) {
		if (seam_tables->known[n].sum != h->sum || seam_tables->known[n].size != h->size)
			continue;
		answer(fd);
		held_say(ROLLBACK_KNOWN, NULL);
		return 1;
	}
	return 0;
}

/* --- taken back --------------------------------------------------------------------------- */

void held_undone(void)
{
	uint32_t n = back->opened < ROLLBACK_OPENED ? back->opened : ROLLBACK_OPENED;

	while (n--)
		close(back->number[n]);
	answer(back->fd);
	learn();
	held_say(ROLLBACK_DONE, NULL);
}
