/*
 * Programs on their way through execve.  A program is seized when its execve begins and let
 * go as soon as it stands ready at its first instruction; no ptrace is in play otherwise.
 * What is read of it is read of the thread, since a process whose first thread has ended
 * has no memory, root or folder by its own id.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "engine/core/must.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/foam/foam.h"
#include "engine/outside/kernel/asker.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/session/reach.h"
#include "engine/outside/kernel/rights.h"
#include "engine/outside/log/feeder.h"
#include "engine/outside/session/seize.h"
#include "engine/outside/kernel/witness.h"
#include "engine/outside/monitor/realms.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/serve.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/patch/beside.h"
#include "engine/outside/patch/planner.h"
#include "engine/outside/rewind/rewind.h"
#include "engine/outside/session/near.h"
#include "engine/outside/start/exec.h"
#include "engine/outside/start/exec_move.h"
#include "engine/outside/start/inject.h"
#include "engine/outside/start/program.h"
#include "engine/outside/takeover/takeover.h"

static struct tracee *tracee_find(struct monitor *m, pid_t tid)
{
	for (int i = 0; i < TRACEES_MAX; i++)
		if (m->tracees[i].tid == tid)
			return &m->tracees[i];
	return NULL;
}

/*
 * A row that is nobody's any more: where another thread of its process executed a program
 * first, a first thread's end is told to no tracer, and its number is the program's.
 */
static void tracee_forget(struct monitor *m, pid_t tid)
{
	struct tracee *row = tracee_find(m, tid);

	if (row)
		*row = (struct tracee){ 0 };
}

/* Programs are on their way through execve: they are ours to see through. */
bool exec_any(const struct monitor *m)
{
	for (int i = 0; i < TRACEES_MAX; i++)
		if (m->tracees[i].tid)
			return true;
	return false;
}

bool exec_is_under_way(const struct version *v, pid_t pid)
{
	MUST(pid > 0);
	for (int i = 0; i < TRACEES_MAX; i++) {
		const struct tracee *t = &v->monitor->tracees[i];

		if (t->tid && t->version == v && t->pid == pid)
			return true;
	}
	return false;
}

/*
 * Seizes a thread that is about to call execve; 0 or a negative errno.  Without
 * us the server goes on unheld; a follower must not, since it would act.
 */
int exec_seize_as(struct version *v, pid_t tid, const struct tracee *want)
{
	struct tracee *free_row = tracee_find(v->monitor, 0);
	long options = PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD;
	int result;

	MUST(tid > 0 && want->pid > 0 && want->version == v && !want->waits);
	MUST(want->lane <= LANES_ALL);
	if (!free_row)
		return -EAGAIN;
	if (want->role == ROLE_FOLLOWER)
		options |= PTRACE_O_EXITKILL;
	result = thread_seize(tid, options);
	if (result)
		return result;
	tracee_forget(v->monitor, tid);
	*free_row = *want;
	free_row->tid = tid;
	return 0;
}

/* The program's path as we can open it. */
static int path_seen(pid_t tid, const struct request *r, char *out, size_t size)
{
	char path[3000];
	int dir = (int)r->args[1], n;

	if (asker_text(r, r->args[0], path, sizeof(path)))
		return -EFAULT;
	if (path[0] == '/')
		n = snprintf(out, size, "/proc/%d/root%s", tid, path);
	else if (dir == AT_FDCWD)
		n = snprintf(out, size, "/proc/%d/cwd/%s", tid, path);
	else if (!path[0])
		n = snprintf(out, size, "/proc/%d/fd/%d", tid, dir);
	else
		n = snprintf(out, size, "/proc/%d/fd/%d/%s", tid, dir, path);
	return (size_t)n < size ? 0 : -ENAMETOOLONG;
}

/* In another root a path may be there though we do not find it. */
static bool same_root(pid_t pid)
{
	char root[64];
	struct stat ours, theirs;

	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	return !stat("/", &ours) && !stat(root, &theirs) && ours.st_ino == theirs.st_ino &&
	       ours.st_dev == theirs.st_dev;
}

/*
 * A seccomp filter of the program's own outlives execve, and would meet the
 * calls by which a new program is readied: such a program runs unheld.
 */
static bool is_filtered(const struct version *v, pid_t pid)
{
	char name[64], line[256];
	bool filtered = false;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/status", pid);
	f = v->area->filters ? fopen(name, "re") : NULL;
	while (f && fgets(line, sizeof(line), f))
		filtered |= !strncmp(line, "Seccomp:\t", 9) && line[9] != '0';
	if (f)
		fclose(f);
	return filtered;
}

enum role exec_role(const struct version *v, bool follows)
{
	const struct monitor *m = v->monitor;

	if (!m->conduct)
		return m->options->role;
	/* No thread of a leader follows but while it takes over: who says so lies. */
	return follows && (v->index != m->leader || takeover_switched(m)) ? ROLE_FOLLOWER
									  : ROLE_LEADER;
}

/* Seizes the thread; what it is now goes on in the new program. */
static bool exec_seize(struct version *v, const struct request *r, bool moves)
{
	struct tracee want = { .pid = r->pid, .version = v,
			       .hidden = (uint32_t)r->args[2] & ~HIDDEN_MOVES,
			       .role = exec_role(v, r->args[2] & HIDDEN_FOLLOWS),
			       .lane = (uint32_t)(r->args[5] < LANES_ALL ? r->args[5] : LANES_ALL),
			       .vpid = v->area->slot[r->slot].vpid, .left = LANES_ALL };
	struct layout like;

	if (want.role == ROLE_FOLLOWER) {
		memcpy(&like, r->call, sizeof(like));
		if (r->args[2] & HIDDEN_MOVES && !exec_move_follows(v, r, &want, &like))
			return false;
		want.wish = layout_wish(r->pid, &like);
	} else if (moves) {
		want.left = want.lane;
	}

	return !is_filtered(v, r->tid) && exec_seize_as(v, r->tid, &want) == 0;
}

static int64_t exec_32bit(struct version *v, const struct request *r)
{
	char path[3000];

	if (asker_text(r, r->args[0], path, sizeof(path)))
		strcpy(path, "?");
	if (v->index == v->monitor->leader && version_may_say(v))
		say_error(program_hint(PROGRAM_32BIT), "cannot hold a program: %s: %s", path,
			  program_reason(PROGRAM_32BIT));
	return -ENOEXEC;
}

/* What an execve leads to, as far as its files say. */
struct exec_sight {
	enum program_verdict verdict;
	bool missing;		/* it will fail: the kernel says why */
	bool gains;		/* rights, by its file */
};

/* False: to know it may wait.  Whether it gains rights matters where others follow. */
static bool program_seen(const struct request *r, bool followers, struct exec_sight *look)
{
	struct near_file f;
	char path[4096];
	int result;

	*look = (struct exec_sight){ .verdict = PROGRAM_UNKNOWN };
	if (path_seen(r->tid, r, path, sizeof(path)))
		return true;
	look->verdict = program_look(path, geteuid() == 0);
	if (look->verdict != PROGRAM_UNKNOWN && look->verdict != PROGRAM_FAR && !followers)
		return true;
	result = look->verdict == PROGRAM_FAR ? -EAGAIN : near_open(path, &f);
	look->missing = result == -ENOENT && same_root(r->tid);
	if (!result) {
		look->gains = program_gains(&f);
		near_close(&f);
	}
	return result != -EAGAIN;
}

/*
 * Followers would be told of a program by a process of other rights: of one that gets some
 * by its file or by the execve, or of a process that has changed its own where it could not
 * move.
 */
static bool exec_moves(const struct version *v, const struct request *r, bool gains)
{
	const struct monitor *m = v->monitor;

	return m->conduct && !realm_is_one(m) && lane_is(m, r->args[5]) &&
	       !(r->args[2] & HIDDEN_FOLLOWS) &&
	       (!realm_fits(m, (uint32_t)r->args[5] / LANES, r->tid) ||
		rights_change_by_exec(r->tid, gains));
}

/* enum exec_go; negative: the execve fails so. */
static int64_t exec_decide(struct version *v, const struct request *r,
			   const struct exec_sight *look)
{
	const char *why = "it has a tracer or a filter, or too many begin at a time";
	char path[4096];
	bool moves;

	if (look->verdict == PROGRAM_32BIT)
		return exec_32bit(v, r);
	if (look->verdict == PROGRAM_UNKNOWN && look->missing)
		return EXEC_GO_FAILS;
	moves = exec_moves(v, r, look->gains);
	if (look->verdict == PROGRAM_PRIVILEGED || look->verdict == PROGRAM_UNREADABLE)
		why = program_reason(look->verdict);
	else if (moves && !exec_move_is(v, r))
		why = "the lane that it names is not its own";
	else if (exec_seize(v, r, moves))
		return moves ? EXEC_GO_MOVES : EXEC_GO;
	v->unheld++;
	if (path_seen(r->tid, r, path, sizeof(path)))
		strcpy(path, "?");
	say_log("exec", "%d: runs unheld: %s: %s", r->pid, path, why);
	return EXEC_GO_UNHELD;
}

/* --- of a file that may let us wait --------------------------------------------------- */

struct exec_about {
	struct version *v;
	struct request r;
};

static void far_work(void *result, const void *about)
{
	program_seen(&((const struct exec_about *)about)->r, true, result);
}

/* Nobody knows what it is: that it gains rights is the worse. */
static void far_end(const void *result, const void *about, int error)
{
	static const struct exec_sight unknown = { .verdict = PROGRAM_UNKNOWN, .gains = true };
	const struct exec_about *a = about;
	struct exec_sight look = error ? unknown : *(const struct exec_sight *)result;

	_Static_assert(sizeof(struct exec_about) <= BESIDE_ABOUT, "what a look is about");
	if (look.verdict > PROGRAM_LAST)
		look = unknown;
	if (held_take(a->v, &a->r))
		asker_answer(a->v, &a->r, exec_decide(a->v, &a->r, &look));
}

static const struct beside far = { sizeof(struct exec_sight), far_work, far_end };

/* It is looked at, or will be when others have been. */
static bool far_begins(struct version *v, const struct request *r)
{
	struct exec_about about;
	int result = 0;

	memset(&about, 0, sizeof(about));
	about.v = v;
	about.r = *r;
	if (!beside_under_way(&far, &about, sizeof(about)))
		result = beside_start(&far, -1, process_user(r->tid), &about, sizeof(about));
	return !result || result == -EBUSY;
}

int64_t exec_serve(struct version *v, const struct request *r)
{
	struct exec_sight look;

	if (program_seen(r, v->monitor->conduct, &look))
		return exec_decide(v, r, &look);
	if (far_begins(v, r) && hold(v, r, PLAN_WAIT_MS))
		return REPLY_LATER;
	look = (struct exec_sight){ .verdict = PROGRAM_UNKNOWN, .gains = true };
	return exec_decide(v, r, &look);
}

/* The execve failed: the thread must stop to be let go. */
void exec_failed(struct monitor *m, pid_t tid)
{
	struct tracee *row = tracee_find(m, tid);

	if (!row)
		return;
	row->failed = true;
	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
}

static void audit_image(const struct version *v, pid_t pid, uint64_t base)
{
	struct audit_ranges r;

	if (!v->monitor->audit || v->options)
		return;
	witness_ranges(base, &r);
	audit_set_image(v->monitor->audit, pid, &r);
}

static struct inject_want want_of(struct version *v, const struct tracee *t)
{
	struct monitor *m = v->monitor;
	struct inject_want w = { .area_fd = v->area_fd, .brief_fd = v->brief_fd, .key = v->key,
				 .tier = (enum tier)m->options->tier, .image = v->images,
				 .row = &v->image[v->images % AREA_IMAGES],
				 .hidden = t->hidden | (t->left < LANES_ALL ? HIDDEN_MOVES : 0),
				 .role = t->role, .version = v->index,
				 .lane = t->lane % LANES, .realm = t->lane / LANES,
				 .vpid = t->vpid, .wish = &t->wish,
				 .rollbacks = m->options->rollback ? &m->rollback_programs
								  : NULL,
				 /* In company clocks are to come to us from the first. */
				 .leaves = m->options->attach && !m->conduct };
	const struct realm *realm = &m->realm[w.realm];

	if (!m->conduct || !lane_is(m, t->lane))	/* a sanitizer's own program: on its own */
		return w;
	MUST(m->conduct->sections <= VERSIONS && v->index < m->conduct->sections);
	w.chunks = m->conduct->chunks;
	w.versions = m->conduct->sections;
	w.span = m->options->replay ? replay_span(m->options->replay) : 0;
	w.seam = m->options->seam_function;
	w.runtime = &v->runtime;
	w.puts_off = &m->conduct->puts_off;
	w.conduct_fd = m->conduct_fd;
	for (uint32_t i = 0; i < w.versions; i++)
		w.section_fd[i] = i == v->index ? realm->section_fd[i] : realm->section_read_fd[i];
	w.random[0] = streams_seed(v, t->lane, 0);
	w.random[1] = streams_seed(v, t->lane, 1);
	v->execs[t->lane % LANES_ALL]++;
	return w;
}

/* What is not held goes on without us; a follower must not: it would act. */
static void program_lost(struct version *v, pid_t pid, enum role role, int result)
{
	v->unheld++;
	if (role == ROLE_FOLLOWER) {
		kill(pid, SIGKILL);
		ptrace(PTRACE_DETACH, pid, 0, SIGKILL);
		follower_drop(v, VERDICT_UNSUPPORTED, "cannot hold a program: %s",
			      strerror(-result));
		return;
	}
	if (version_may_say(v))
		say_error("mve doctor shows what this machine lacks",
			  "cannot hold a program: pid %d: %s", pid, strerror(-result));
	ptrace(PTRACE_DETACH, pid, 0, 0);
}

struct inject_want exec_want(struct version *v)
{
	struct tracee t = { .version = v, .role = exec_role(v, false), .left = LANES_ALL };
	struct inject_want w = want_of(v, &t);

	w.wish = NULL;
	return w;
}

void exec_attached(struct version *v, pid_t pid, uint64_t base)
{
	if (!v->images)
		realm_first(v->monitor, pid);
	audit_image(v, pid, base);
	v->images++;
}

/*
 * Its rights are those of the realm whose sections it is about to get.  If not, the file
 * has changed since its execve was looked at, or who asked has said that it was elsewhere:
 * no follower is told of it as of the process that it was.
 */
static int realm_look(struct version *v, const struct tracee *t, pid_t pid)
{
	struct monitor *m = v->monitor;

	if (!v->index && !v->images)
		realm_first(m, pid);
	if (realm_is_one(m) || realm_fits(m, t->lane / LANES, pid))
		return 0;
	for (unsigned i = 0; i < m->versions && v->index == m->leader; i++)
		follower_drop(&m->version[i], VERDICT_UNSUPPORTED,
			      "the leader's pid %d has become a program of other rights", pid);
	return -EPERM;
}

/* The program is readied; or -errno. */
static int program_ready(struct version *v, pid_t pid, const struct tracee *t,
			 struct inject_want *want, struct layout *layout, struct maps *maps)
{
	int result = v->state == VERSION_ENDED ? -ECANCELED : 0;

	*want = want_of(v, t);
	want->maps = maps;
	if (!result && want->chunks)
		result = realm_look(v, t, pid);
	return result ? result : inject(pid, want, layout);
}

/* `maps` are those of inject_planned(), or none. */
static void program_begin(struct version *v, pid_t pid, struct tracee *t, struct maps *maps)
{
	bool moves = t->left < LANES_ALL, leads = t->role == ROLE_LEADER, begins;
	struct inject_want want;
	struct layout layout;
	int result;

	if (moves && !leads)
		exec_move_reads(v, pid, t);
	result = program_ready(v, pid, t, &want, &layout, maps);
	if (moves && leads)
		exec_move_told(v, t, result ? NULL : &layout);
	if (result) {
		program_lost(v, pid, want.role, result);
		return;
	}
	if (!v->images && want.role == ROLE_LEADER)
		v->monitor->layout = layout;
	audit_image(v, pid, want.row->inside);
	v->images++;
	begins = v->state == VERSION_STARTING && v->index != v->monitor->leader;
	if (begins) {
		v->state = VERSION_FOLLOWS;
		v->follows_ms = now_ms();
	}
	if (v->monitor->conduct)	/* now is the time: a takeover is in a hurry */
		version_owns(v, pid, pid);
	ptrace(PTRACE_DETACH, pid, 0, 0);
	if (begins)
		session_note(v->monitor);
	if (begins && v->monitor->conduct)
		takeover_ready(v->monitor);
}

/* A thread other than the first may have called execve: its row is its old id. */
static struct tracee tracee_drop(struct monitor *m, pid_t pid)
{
	unsigned long before = 0;
	struct tracee *row, was;

	ptrace(PTRACE_GETEVENTMSG, pid, 0, &before);
	row = before ? tracee_find(m, (pid_t)before) : NULL;
	if (!row)
		row = tracee_find(m, pid);
	if (!row)
		return (struct tracee){ 0 };
	was = *row;
	*row = (struct tracee){ 0 };
	tracee_forget(m, pid);
	return was;
}

/* What it is made of is planned, or its time is over. */
static bool program_planned(const struct monitor *m, pid_t pid, struct tracee *t,
			    struct maps *maps)
{
	if (inject_planned(pid, m->conduct, maps))
		return true;
	t->until_ms = t->until_ms ? t->until_ms : now_ms() + PLAN_WAIT_MS;
	if (now_ms() < t->until_ms)
		return false;
	say_error("its calls are held without being patched, which is slower",
		  "%s/%s: cannot plan a program in time: pid %d", m->session.name,
		  t->version->name, pid);
	return true;
}

/* There is a lane for it, and what it has mapped is planned, or is never to be. */
static bool program_may_begin(struct monitor *m, pid_t pid, struct tracee *t, bool now,
			      struct maps *maps)
{
	return exec_move_lane(m, pid, t) && (now || program_planned(m, pid, t, maps));
}

/*
 * It stands meanwhile, and all others are served; what it is takes a table, and there is
 * room: its row has just been freed.
 */
static bool program_waits(struct monitor *m, pid_t pid, struct tracee *t, struct maps *maps)
{
	struct tracee *row = tracee_find(m, 0);

	MUST(row);
	if (program_may_begin(m, pid, t, false, maps))
		return false;
	MUST(t->version && !tracee_find(m, pid));
	*row = *t;
	row->tid = pid;
	row->waits = true;
	return true;
}

static void waiting_go_on(struct monitor *m, struct tracee *row, bool now)
{
	struct maps maps = { 0 };
	pid_t stood = reach_stopped(row->tid);
	struct tracee t;

	if (program_may_begin(m, row->tid, row, now, &maps)) {
		t = *row;
		*row = (struct tracee){ 0 };
		program_begin(t.version, t.tid, &t, &maps);
	}
	reach_stopped(stood);
	maps_free(&maps);
}

void exec_go_on(struct monitor *m, bool now)
{
	for (int i = 0; i < TRACEES_MAX; i++)
		if (m->tracees[i].waits)
			waiting_go_on(m, &m->tracees[i], now);
}

static void exec_stopped(struct monitor *m, pid_t pid)
{
	struct tracee t = tracee_drop(m, pid);
	struct maps maps = { 0 };
	pid_t stood = reach_stopped(pid);

	MUST(t.version);
	if (foam_wanted(t.version))
		foam_begin(t.version, pid);
	else if (!program_waits(m, pid, &t, &maps))
		program_begin(t.version, pid, &t, &maps);
	reach_stopped(stood);
	maps_free(&maps);
}

/*
 * It stops as we have asked it to, and is let go; or as one that was stopped by a signal and is
 * continued: its execve is still to come.
 */
static void asked_stopped(struct monitor *m, pid_t pid)
{
	const struct tracee *row = tracee_find(m, pid);

	if (row && !row->failed) {
		ptrace(PTRACE_CONT, pid, 0, 0);
		return;
	}
	tracee_drop(m, pid);
	ptrace(PTRACE_DETACH, pid, 0, 0);
}

static void tracee_stopped(struct monitor *m, pid_t pid, int status)
{
	int event = status >> 16, sig = WSTOPSIG(status);

	if (event == PTRACE_EVENT_EXEC) {
		exec_stopped(m, pid);
	} else if (event == PTRACE_EVENT_STOP && sig == SIGTRAP) {
		asked_stopped(m, pid);
	} else if (event == PTRACE_EVENT_STOP) {
		ptrace(PTRACE_LISTEN, pid, 0, 0);
	} else {
		ptrace(PTRACE_CONT, pid, 0, sig);
	}
}

static void first_ended(struct monitor *m, pid_t pid, int status)
{
	struct version *v = version_of_child(m, pid);

	if (!v || v->reaped)	/* a number comes again */
		return;
	v->status = status;
	v->reaped = v->gone = true;
	if (v->index != m->leader)
		follower_ended(v);
	else if (takeover_switched(m))	/* before it had taken everything */
		takeover_want(v, "ended while it took over");
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && followers_any(m))
		say_error(NULL, "%s: %s was killed, and its connections with it: nothing is left "
			  "to take over", m->session.name, v->name);
}

void exec_look(struct monitor *m)
{
	bool any = false;

	for (int i = 0; i < TRACEES_MAX; i++)
		any |= m->tracees[i].waits && m->tracees[i].began_ms;
	if (any)
		exec_go_on(m, false);
}

/* Who has waited for a child, or for its turn to have one, goes on. */
void exec_beside(struct monitor *m)
{
	exec_go_on(m, false);
	held_again(m, REQ_MAPPED);
	held_again(m, REQ_SITE_HOT);
	held_again(m, REQ_EXEC);
	serve_requests(m);
}

/* Collects what SIGCHLD announced. */
void exec_children(struct monitor *m)
{
	bool planned = false;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
		if (WIFSTOPPED(status)) {
			tracee_stopped(m, pid, status);
			continue;
		}
		if (beside_ended(pid, status)) {
			planned = true;
			continue;
		}
		tracee_forget(m, pid);
		foam_ended(m, pid, status);
		if (!rewind_ended(m, pid))
			first_ended(m, pid, status);
	}
	if (planned)
		exec_beside(m);
}

/* Of it the stops alone: a takeover has begun, and whose end has come is looked at later. */
void exec_stops(struct monitor *m)
{
	siginfo_t info = { 0 };

	while (!waitid(P_ALL, 0, &info, WSTOPPED | WNOHANG | __WALL) && info.si_pid) {
		tracee_stopped(m, info.si_pid, W_STOPCODE(info.si_status));
		info.si_pid = 0;
	}
	for (int i = 0; i < TRACEES_MAX; i++)
		if (m->tracees[i].waits)
			waiting_go_on(m, &m->tracees[i],
				      version_is_urgent(m->tracees[i].version));
}

void exec_count(struct version *v, uint64_t image, const struct patch_sum *sum)
{
	struct image *row = &v->image[image % AREA_IMAGES];

	row->sites_patched += sum->patched;
	row->sites_trapped += sum->trapped;
}
