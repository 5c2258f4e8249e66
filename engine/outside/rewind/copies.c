/*
 * The process that is a follower's image.
 */
#include <signal.h>

#include "engine/core/must.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/rewind/rewind_parts.h"

void image_kill(struct rewind *rw)
{
	if (rw->pid)
		process_signal(rw->pid, rw->began, SIGKILL);
	rw->pid = 0;
	rw->image = 0;
}

void image_have(struct rewind *rw, uint32_t image, pid_t pid)
{
	MUST(image && pid > 0);
	rw->image = image;
	rw->pid = pid;
	rw->began = process_began(pid);
}

bool image_lives(const struct rewind *rw)
{
	return rw->pid && process_began(rw->pid) == rw->began;
}
