/*
 * When one that has ended comes again.
 */
#include "engine/core/must.h"
#include "engine/outside/late/again.h"
#include "engine/outside/monitor/monitor.h"

#define AGAIN_MS	500	/* before one comes again; twice as long each time */
#define AGAIN_MOST	7	/* times that it is twice as long */
#define STEADY_MS	60000	/* one that was there so long has no past */

uint64_t again_when(unsigned *ends, uint64_t since_ms)
{
	uint64_t now = now_ms();
	unsigned times;

	MUST(since_ms <= now);
	if (since_ms && now > since_ms + STEADY_MS)
		*ends = 0;
	times = (*ends)++;
	return now + ((uint64_t)AGAIN_MS << (times < AGAIN_MOST ? times : AGAIN_MOST));
}

uint64_t again_latest_ms(void)
{
	return (uint64_t)AGAIN_MS << AGAIN_MOST;
}
