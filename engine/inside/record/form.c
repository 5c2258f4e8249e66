/*
 * A call in the form in which it is told.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/time.h>

#include "engine/core/walk.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/record/care.h"
#include "engine/inside/record/form.h"

#define SEM_STAT	2	/* IPC_STAT */
#define SEMS_AT		10	/* in words: sem_nsems of a struct semid64_ds */
#define SEMS_MAX	32000	/* SEMMSL's end */

/* All semaphores of a set are asked for: a follower has as much room as its leader. */
static uint64_t sems_room(const struct walk *w)
{
	uint64_t set[16] = { 0 };

	if (thread_self()->following)
		return SEMS_MAX * sizeof(uint16_t);
	OWN4(__NR_semctl, w->args[0], 0, SEM_STAT, set);
	return set[SEMS_AT] * sizeof(uint16_t);
}

static bool has_host_room(const struct walk *w)
{
	return w->desc && w->desc->nr == CALL_semctl && w->desc->nargs == 4 &&
	       w->desc->args[3].len_rule == LEN_RULE_HOST;
}

/* What an argument says before the call of how much room there is. */
uint64_t room_before(struct walk *w)
{
	int arg = w->recipe->known ? w->recipe->room : w->desc ? step_room_arg(w->desc) : -1;
	uint32_t room = 0;

	if (has_host_room(w))
		return sems_room(w);
	if (arg >= 0 && w->args[arg])
		target_in(&room, w->args[arg], sizeof(room));
	return room;
}

/*
 * One function of libc is stat, fstat, lstat or newfstatat, as its version and a
 * sanitizer's interceptor have it: all of them are told as newfstatat.
 */
static long stat_form(uint64_t args[CALL_ARGS], long nr)
{
	static const char none[] = "";
	bool by_fd = nr == __NR_fstat;

	args[2] = args[1];
	args[1] = by_fd ? (uint64_t)none : args[0];
	args[0] = by_fd ? args[0] : (uint64_t)AT_FDCWD;
	args[3] = by_fd ? AT_EMPTY_PATH : nr == __NR_lstat ? AT_SYMLINK_NOFOLLOW : 0;
	return __NR_newfstatat;
}

/*
 * The call in the frame, as it is told; its number there.  Variants are looked for only
 * where there are some.
 */
long call_walk(struct thread *t, struct walk *w, uint64_t args[CALL_ARGS], long nr)
{
	const struct plan *p;

	call_args(&t->frame, args);
	if (call_is_old_stat(nr))
		nr = stat_form(args, nr);
	p = plan_of(nr);
	w->args = args;
	w->recipe = &p->recipe;
	w->desc = p->desc ? p->desc : call_find_variant(nr, args);
	return nr;
}
