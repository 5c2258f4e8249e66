/*
 * Why a call traps: in words for whoever sees it in `mve status`.  The plan is made anew,
 * which is a look into a cache, so nothing is kept for this.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/patch/mapped.h"
#include "engine/outside/patch/patch.h"
#include "engine/outside/patch/planner.h"
#include "engine/outside/plan/plan.h"

/* The row that is at this place of the file, or NULL. */
static const struct plan_site *site_at(const struct plan *p, uint64_t offset)
{
	for (unsigned i = 0; i < p->n; i++)
		if (p->sites[i].offset == offset)
			return &p->sites[i];
	return NULL;
}

/* It jumps to a board now, or is as it was. */
static bool is_jump(pid_t pid, const struct map *m, const struct plan_site *s)
{
	char path[64];
	uint8_t first = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (pread(fd, &first, 1, (off_t)(m->start + s->offset - s->before - m->offset)) != 1)
		first = 0;
	close(fd);
	return first == 0xe9;
}

static const char *planned_why(pid_t pid, const struct map *m, const struct plan_site *s)
{
	if (s->flags & SITE_UNKNOWN)
		return "bytes of a call that no code was found around: data, most likely";
	if (!site_is_patched(s))
		return s->nr == SYS_rt_sigreturn ?
			"rt_sigreturn: unwinders know a signal frame by these very bytes" :
			"no room for a jump of five bytes: its function may be entered there";
	if (!is_jump(pid, m, s))
		return "threads were there when it was found, or no room for boards is near";
	if (s->flags & SITE_SLOW)
		return "it is patched, and a branch of its function enters behind the jump";
	return "it is patched now: the calls were made before";
}

const char *patch_why_not(pid_t pid, const struct map *m, uint64_t address)
{
	const char *why = "no call was found there: code that nothing leads to";
	const struct plan_site *s;
	struct plan *p;
	struct near_file f;
	int result;

	if (m->path[0] == '[')
		return "the kernel's own page";
	if (!m->inode)
		return "code that was made at run time: there is no file to plan it from";
	if (m->write && m->exec)
		return "code that may be written is not patched";
	result = mapped_find(pid, m, &f);
	if (!result) {
		result = planner_plan(&f, &p);
		near_close(&f);
	}
	if (result == -EAGAIN)
		return "its file is being planned";
	if (result)
		return "its file cannot be planned: it cannot be read, or is no ELF file of ours";
	MUST(p);
	s = site_at(p, m->offset + address - m->start);
	if (s)
		why = planned_why(pid, m, s);
	plan_free(p);
	return why;
}
