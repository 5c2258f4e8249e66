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
	if (back->reply_size)
		send(fd, (const void *)back->reply, back->reply_size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Memory is back: the request lies there as it came. */
static void learn(void)
{
	struct known *k = &seam->known[seam->knows % KNOWN_MAX];

	if (!back->refuse || !back->size || back->size > KNOWN_SIZE)
		return;
	memcpy(k->bytes, (const void *)back->bytes, back->size);
	k->size = back->size;
	seam->knows++;
}

int held_refuses(int fd, const void *bytes, size_t size)
{
	for (unsigned n = 0; n < seam->knows && n < KNOWN_MAX; n++) {
		struct known *k = &seam->known[n];

		if (k->size != size || memcmp(k->bytes, bytes, size))
			continue;
		answer(fd);
		held_say(ROLLBACK_KNOWN, NULL);
		return 1;
	}
	return 0;
}

void held_undone(void)
{
	uint32_t n = back->opened < ROLLBACK_OPENED ? back->opened : ROLLBACK_OPENED;

	while (n--)
		close(back->number[n]);
	answer(back->fd);
	learn();
	held_say(ROLLBACK_DONE, NULL);
}
