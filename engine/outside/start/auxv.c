/*
 * With CAP_SYS_RESOURCE the vector alone can be told.  PR_SET_MM_MAP needs no such
 * right, but wants to be told all of a program's layout to change one part of it; the
 * rest is repeated as /proc/PID/stat has it.
 */
#include <elf.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/start/auxv.h"
#include "engine/outside/start/layout.h"

#define STAT_FIELDS	52
#define SCRATCH_BELOW	0x4000		/* under the program's stack pointer */

/* Reads the numbers of /proc/PID/stat by field, as proc(5) counts them. */
static int stat_read(pid_t pid, uint64_t field[STAT_FIELDS])
{
	char name[64], line[2048], *at;
	FILE *f;
	int n = 0;

	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	f = fopen(name, "re");
	if (!f)
		return -1;
	at = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	fclose(f);
	if (!at)
		return -1;
	for (n = 3, at += 4; *at && n + 1 < STAT_FIELDS; n++)
		field[n + 1] = strtoull(at, &at, 10);
	return 0;
}

uint64_t process_brk(pid_t pid)
{
	uint64_t field[STAT_FIELDS] = { 0 };

	return stat_read(pid, field) ? 0 : field[47];
}

uint64_t process_arguments(pid_t pid)
{
	uint64_t field[STAT_FIELDS] = { 0 };

	return stat_read(pid, field) ? 0 : field[48];
}

uint64_t process_vdso(pid_t pid)
{
	uint64_t word[AUXV_MAX / 8], vdso = 0;
	char name[64];
	ssize_t n;
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/auxv", pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, word, sizeof(word));
	if (fd >= 0)
		close(fd);
	for (ssize_t i = 0; i + 16 <= n && !vdso; i += 16)
		if (word[i / 8] == AT_SYSINFO_EHDR)
			vdso = word[i / 8 + 1];
	return vdso;
}

static void map_fill(struct prctl_mm_map *m, const uint64_t field[STAT_FIELDS],
		     const struct layout_moves *moved)
{
	m->start_code = field[26] + moved->program;
	m->end_code = field[27] + moved->program;
	m->start_stack = field[28] + moved->stack + moved->block;
	m->start_data = field[45] + moved->program;
	m->end_data = field[46] + moved->program;
	m->start_brk = moved->brk ? moved->brk : field[47];
	m->brk = m->start_brk;
	m->arg_start = field[48] + moved->stack;
	m->arg_end = field[49] + moved->stack;
	m->env_start = field[50] + moved->stack;
	m->env_end = field[51] + moved->stack;
	m->exe_fd = (uint32_t)-1;
}

bool process_mm(pid_t pid, struct prctl_mm_map *mm)
{
	const struct layout_moves none = { 0 };
	uint64_t field[STAT_FIELDS] = { 0 };

	memset(mm, 0, sizeof(*mm));
	if (stat_read(pid, field))
		return false;
	map_fill(mm, field, &none);
	return true;
}

static bool needs_whole;	/* a program was refused to tell of the vector alone */

struct batch_call auxv_call(struct auxv_told *told, uint64_t whole_at, pid_t pid, uint64_t at,
			    uint64_t len, const struct layout_moves *moved)
{
	bool moves = moved->stack || moved->program || moved->block || moved->brk;
	uint64_t field[STAT_FIELDS] = { 0 };
	struct batch_call call = { SYS_prctl, false, 5,
				   { PR_SET_MM, PR_SET_MM_AUXV, at, len, 0 }, { 0 } };

	if (!len) {	/* nothing is changed: a program that runs has its own */
		*told = (struct auxv_told){ 0 };
		return (struct batch_call){ SYS_getpid, false, 0, { 0 }, { 0 } };
	}
	*told = (struct auxv_told){ .is_whole = (moves || needs_whole) && !stat_read(pid, field) };
	if (!told->is_whole)
		return call;
	told->whole = (struct prctl_mm_map){ .auxv = (void *)at, .auxv_size = (uint32_t)len };
	map_fill(&told->whole, field, moved);
	call.arg[1] = PR_SET_MM_MAP;
	call.arg[2] = whole_at;
	call.arg[3] = sizeof(told->whole);
	return call;
}

void auxv_learn(const struct auxv_told *told, long result, struct remote *r, uint64_t at,
		uint64_t len)
{
	const struct layout_moves none = { 0 };
	uint64_t scratch = (r->regs.rsp - SCRATCH_BELOW) & ~63ull;
	struct auxv_told again;
	struct batch_call call;

	MUST(len <= AUXV_MAX);
	if (told->is_whole || !result || !len)
		return;
	needs_whole = true;
	call = auxv_call(&again, scratch, r->pid, at, len, &none);
	if (again.is_whole && !memory_write(r->memory, scratch, &again.whole, sizeof(again.whole)))
		remote_call(r, call.nr, call.arg);
}
