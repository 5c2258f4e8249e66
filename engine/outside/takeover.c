#include <errno.h>
#include "engine/outside/monitor.h"

int takeover_promote(struct monitor *m, struct version *to, bool keep, char *why, size_t size)
{
	(void)m, (void)to, (void)keep;
	snprintf(why, size, "not yet");
	return -ENOSYS;
}
bool takeover_want(struct version *from, const char *cause, bool forced)
{
	(void)from, (void)cause, (void)forced;
	return false;
}
void takeover_look(struct monitor *m) { (void)m; }
int64_t take_serve(struct version *v, uint32_t slot, const struct request *r)
{
	(void)v, (void)slot, (void)r;
	return -ENOSYS;
}
