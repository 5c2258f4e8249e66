/*
 * A new program.  The monitor looks at it first, and makes it ready; a follower's is laid
 * out like its leader's.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/personality.h>
#include <linux/resource.h>
#include <linux/signal.h>

#include "engine/core/must.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/record/life.h"
#include "engine/inside/roles/clone.h"
#include "engine/inside/roles/exec.h"
#include "engine/inside/roles/modules.h"
#include "engine/inside/roles/start.h"
#include "engine/inside/state/limits.h"

/*
 * The kernel shall begin the new program's mappings where the leader's twin has them:
 * see layout_stack_limit().  The monitor puts right what is changed here, unless the
 * execve fails.
 */
static long exec_like(struct thread *t, const struct layout *like)
{
	long persona = OWN1(__NR_personality, 0xffffffff), result;
	struct limit was, want;
	bool asked;

	OWN4(__NR_prlimit64, 0, RLIMIT_STACK, 0, &was);
	want.now = layout_stack_limit(like, was.now);
	want.max = want.now > was.max ? want.now : was.max;
	asked = want.now && !OWN4(__NR_prlimit64, 0, RLIMIT_STACK, &want, 0);
	if (asked)
		OWN1(__NR_personality, persona | ADDR_NO_RANDOMIZE);
	result = call_kernel(t);
	if (asked) {
		OWN4(__NR_prlimit64, 0, RLIMIT_STACK, &was, 0);
		OWN1(__NR_personality, persona);
	}
	return result;
}

/*
 * The monitor may ask the thread to stand still by SIGSYS, which would kill a program whose
 * inside has not begun: it waits until that has (signals_start).
 */
static long exec_held(struct thread *t)
{
	uint64_t sys = SIG_BIT(SIGSYS);
	long result;

	OWN4(__NR_rt_sigprocmask, SIG_BLOCK, &sys, 0, 8);
	if (t->following)
		result = exec_like(t, (const struct layout *)request_of(t)->call);
	else
		result = call_kernel(t);
	OWN4(__NR_rt_sigprocmask, SIG_UNBLOCK, &sys, 0, 8);
	return result;
}

/* Nobody shall ask anything of a program without an inside. */
static long exec_unheld(struct thread *t)
{
	long result;

	t->slot->unheld = 1;
	result = call_kernel(t);
	t->slot->unheld = 0;
	return result;
}

/* enum exec_go, or -errno. */
static long exec_ask(struct thread *t, bool at)
{
	const struct frame *f = &t->frame;
	uint32_t bits = hidden_state(t);

	if (t->following)
		bits |= t->exec_moves ? HIDDEN_FOLLOWS | HIDDEN_MOVES : HIDDEN_FOLLOWS;
	return request_ask(t, REQ_EXEC, at ? f->rsi : f->rdi,
			   at ? f->rdi : (uint64_t)AT_FDCWD, bits);
}

/* What followers have to know before the call is made. */
static void exec_foretell(struct thread *t, long go)
{
	if (!t->has_lane || t->following)
		return;
	if (go == EXEC_GO_UNHELD || go == -ENOSYS)
		lead_exec_done(t, EXEC_UNHELD);
	else if (go == EXEC_GO_MOVES)
		lead_exec_done(t, EXEC_MOVES);
}

/*
 * A thread that is not the first is gone by its execve, and comes back as the first: meanwhile
 * it shall not be taken for dead.  0: it has yet to come.
 */
static void reader_note(const struct thread *t, int32_t owner)
{
	if (t->following && t->has_lane)
		t->reader.cursor->owner = owner;
}

/* execve and execveat: the monitor looks at the program first. */
static long serve_exec(struct thread *t, long nr)
{
	long go = exec_ask(t, nr == __NR_execveat), result;

	if (go < 0 && go != -ENOSYS) {
		t->answered = 1;
		return go;
	}
	/* Nobody holds it, and it would act. */
	if ((go == -ENOSYS || go == EXEC_GO_UNHELD) && t->following)
		OWN1(__NR_exit_group, 1);
	exec_foretell(t, go);
	go = go == EXEC_GO_MOVES ? EXEC_GO : go;
	if (go != EXEC_GO_FAILS)
		modules_exec(t);
	t->in_exec = go == EXEC_GO;
	MUST(!t->latches);
	reader_note(t, 0);
	result = go == EXEC_GO ? exec_held(t) : exec_unheld(t);
	reader_note(t, t->tid);
	t->in_exec = 0;
	if (go == EXEC_GO)
		request_tell(t, REQ_EXEC_FAILED, 0, 0);
	return result;
}

/* A thread, process or program that comes to be. */
long serve_life(struct thread *t, long nr)
{
	bool program = nr == __NR_execve || nr == __NR_execveat;

	return program ? serve_exec(t, nr) : serve_clone(t, nr);
}
