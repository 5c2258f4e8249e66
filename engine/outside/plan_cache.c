/* placeholder: plan_cached() without caches, replaced below. */
#include "engine/outside/plan_parts.h"

int plan_cached(int fd, struct plan **out)
{
	return plan_file(fd, out);
}
