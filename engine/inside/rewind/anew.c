/*
 * A copy of a process that stands, and its threads, which are made anew of their stances:
 * of a follower's image that goes on, and of a leader's twin.  Its ids are others, which the
 * program never sees.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/futex.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <linux/wait.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/seal.h"
#include "engine/inside/rewind/anew.h"
#include "engine/inside/rewind/stand.h"

#define OF_THREADS	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | \
			 CLONE_SYSVSEM | CLONE_SETTLS)

static uint32_t anew;		/* futex: threads that were made anew, and wait */
static uint32_t all_anew;	/* futex: they go on */

long process_copy(uint64_t flags)
{
	/* The monitor is the copy's parent, as it is the process' own. */
	return OWN2(__NR_clone, flags | CLONE_PARENT | SIGCHLD, 0);
}

/*
 * A process whose parent is none of ours would leave its copy to that one.  So it is made by a
 * child that ends at once, which shares our memory and its caller's stack (context.S); of what
 * kind that one is the program's waits pass over.
 */
long process_copy_away(uint64_t flags)
{
	int32_t made = 0;
	long between = copy_away(flags | SIGCHLD, &made);

	if (!between)
		return 0;
	while (between > 0 && OWN4(__NR_wait4, between, 0, __WALL, 0) == -EINTR)
		;
	return between > 0 ? made : between;
}

/* What the kernel kept for it, and has forgotten. */
static void thread_renew(struct thread *t)
{
	const struct stance *s = stances[t->index];

	MUST(t == thread_self() && s);
	t->tid = (int32_t)OWN0(__NR_gettid);
	OWN1(__NR_set_tid_address, s->clear_tid);
	if (s->robust)
		OWN2(__NR_set_robust_list, s->robust, s->robust_len);
	OWN2(__NR_prctl, PR_SET_NAME, s->name);
	if (request_may(t))
		slot_mend(t);
	if (t->has_lane && t->following) {
		t->reader.cursor->owner = t->tid;
		t->reader.cursor->pid = t->pid;
	}
	seal_arm(t);
}

void thread_is_anew(struct thread *t)
{
	thread_renew(t);
	PUBLISH_BY(thread_anew, fetch_add, &anew, 1);
	OWN3(__NR_futex, &anew, FUTEX_WAKE_PRIVATE, 1);
	while (!CONSUME(all_anew, &all_anew))
		OWN4(__NR_futex, &all_anew, FUTEX_WAIT_PRIVATE, 0, 0);
}

static void thread_make(struct thread *o)
{
	const struct stance *s = stances[o->index];

	MUST(s && o != thread_self());
	/* Without it the process is no copy: the monitor sees that it ends. */
	if (context_clone(&s->context, OF_THREADS, s->fs, o) < 0)
		OWN1(__NR_exit_group, 1);
}

void process_anew(struct thread *t)
{
	int32_t pid = (int32_t)OWN0(__NR_getpid);
	struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		o->pid = pid;
	thread_renew(t);
}

void threads_anew(struct thread *t)
{
	uint32_t made = 0, came;
	struct thread *o;

	process_anew(t);
	anew = all_anew = 0;
	for (uint32_t i = 0; (o = block_next(&i)); i++) {
		if (o == t)
			continue;
		thread_make(o);
		made++;
	}
	while ((came = CONSUME(thread_anew, &anew)) < made)
		OWN4(__NR_futex, &anew, FUTEX_WAIT_PRIVATE, came, 0);
}

void threads_go(void)
{
	PUBLISH(all_anew, &all_anew, 1);
	OWN3(__NR_futex, &all_anew, FUTEX_WAKE_PRIVATE, 1 << 30);
}
