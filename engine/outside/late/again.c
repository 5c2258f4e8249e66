/*
 * When one that has ended comes again.
 */
#include "engine/core/must.h"
#include "engine/outside/late/again.h"
#include "engine/outside/monitor/monitor.h"

#define AGAIN_MOST	7	/* times that it is twice as long */
#define STEADY_MS	60000	/* one that was there so long has no past */
#define SOON_MS		10	/* till what was refused is tried again: twice as long each time, */
#define SOON_MOST	6	/* so often, if it passes and the leader has not stood for it, */
#define LATE_MOST	12	/* or at most so often */

uint64_t again_when(unsigned *ends, uint64_t since_ms, unsigned first_ms)
{
	uint64_t now = now_ms();
	unsigned times;

	MUST(since_ms <= now && first_ms);
	if (since_ms && now > since_ms + STEADY_MS)
		*ends = 0;
	times = (*ends)++;
	return now + ((uint64_t)first_ms << (times < AGAIN_MOST ? times : AGAIN_MOST));
}

uint64_t again_latest_ms(void)
{
	return (uint64_t)AGAIN_MS << AGAIN_MOST;
}

bool again_refused(unsigned *tries, bool soon, uint64_t *when_ms)
{
	bool lasts = !soon && *tries == SOON_MOST;

	*when_ms = now_ms() + (SOON_MS << (soon && *tries > SOON_MOST ? SOON_MOST : *tries));
	*tries += *tries < LATE_MOST;
	return lasts;
}
