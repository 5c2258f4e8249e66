/*
 * The monitor: one process per session, the parent of the server and of the
 * followers.
 *
 * All of it runs in one thread, in the order in which io_uring hands events
 * out; for each version a second thread only waits on its doorbell, which is a
 * futex, and turns it into an event.
 *
 * A session has up to VERSIONS versions.  Row 0 is the command that was given;
 * the others follow it, until one of them takes over (m->leader says who
 * leads).  Each has an area of its own, so none can write what another's
 * processes read; what they share are the streams (engine/abi/ring.h).
 */
#ifndef MVE_OUTSIDE_MONITOR_H
#define MVE_OUTSIDE_MONITOR_H

#include <jansson.h>
#include <limits.h>
#include <liburing.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "engine/abi/area.h"
#include "engine/abi/brief.h"
#include "engine/abi/ring.h"
#include "engine/outside/monitor/audit.h"
#include "engine/outside/monitor/options.h"
#include "engine/outside/monitor/session.h"
#include "engine/outside/start/layout.h"

#define TRACEES_MAX	(2 * AREA_THREADS)	/* execs under way: of all threads, at worst */
#define HELD_MAX	4096	/* requests whose answer waits: all threads may crash together */
#define WHY_MAX		160

/* A program that an execve started, as it was then. */
struct image {
	int32_t pid;
	uint32_t sites_patched;
	uint32_t sites_trapped;	/* found, but left to the net */
	uint32_t sealed;
	uint64_t inside;	/* where the inside image is mapped */
	uint64_t inside_len;
	char exe[232];
};

/* A thread that is seized because its execve has begun. */
struct tracee {
	pid_t tid;		/* 0: the row is free */
	uint32_t hidden;	/* enum hidden_bits, for the new program */
	enum role role;		/* that it has: in a takeover a version's processes have two */
	struct version *version;
	uint32_t lane;
	int32_t vpid;		/* the pid that the program believes to have */
	struct layout_wish wish;	/* of a follower */
};

enum version_state {
	VERSION_STARTING, VERSION_LEADS, VERSION_FOLLOWS,
	VERSION_LEAVES,		/* another leads now and takes what it had */
	VERSION_ENDED,
};

/* Of a follower that came late. */
enum join { JOIN_NONE, JOIN_READS, JOIN_WAITS, JOIN_DONE };

struct version {
	struct monitor *monitor;
	uint32_t index;
	const struct follower_options *options;	/* NULL: the session's own command */
	char name[FOLLOWER_NAME_MAX + 1];
	char **argv;
	char *path;		/* of its program */
	struct area *area;	/* its processes write there, too: see abi/area.h */
	struct brief *brief;	/* we alone */
	int area_fd, brief_fd;
	uint64_t key;		/* of its requests */
	uint32_t images;	/* programs ever started */
	struct image *image;	/* the last AREA_IMAGES of them: a ring */
	pthread_t bell_thread;

	pid_t server;		/* its first process; who serves is asked of version_head() */
	uint64_t began;
	int status;		/* valid when reaped */
	bool reaped;		/* the first process is gone, and status known */
	bool gone;		/* the first process is gone; others may go on (a daemon) */
	bool over;		/* a follower's last process is gone, and whether that was right is judged */
	enum join join;
	uint64_t join_ms;	/* until then it may read the start */
	uint64_t again_ms;	/* when it is started again; or 0 */
	unsigned ends;		/* since it has followed for long */
	bool partly;		/* it does not know all connections: it cannot lead */
	bool parked;		/* stands still for a takeover: nobody may judge it */
	uint64_t dying_ms;	/* until then it may die of what it crashed of; or 0 */
	int tell;		/* says why the first execve failed; or -1 */
	enum version_state state;
	char why[WHY_MAX];	/* it ended */
	char crash[WHY_MAX];	/* it crashed of; "" */
	enum verdict crash_verdict;
	bool reported;		/* it ended by its sanitizer, and the leader may be about to */
	uint32_t end_lane;	/* of the thread that did */
	uint64_t judge_ms;	/* when the end of its first process is judged; or 0 */
	uint64_t verdicts[VERDICTS];	/* by enum verdict */
	unsigned words;		/* that it made us say, less one for each WORD_MS since */
	uint64_t words_ms;
	uint64_t findings, findings_all;	/* different ones, and with equal ones */
	bool runtime;		/* a sanitizer's is in one of its programs */
	uint64_t follows_ms;	/* since then */
	bool runtime_missed;	/* it was said that it has no runtime */
	unsigned unheld;	/* programs that run without us */
	uint32_t execs[LANES_ALL];	/* programs begun in each lane */
};

/* A request that is answered later. */
struct held {
	struct version *version;	/* NULL: the row is free */
	uint64_t since_ms, until_ms;
	struct request request;
};

#define UNTOLD_MAX	64

/* A signal that came to the old leader, and of which nothing was told. */
struct taken_signal {
	int32_t lane;		/* of the thread that it is for; -1: for the process */
	uint32_t pad;
	uint8_t info[48];	/* the head of its siginfo */
};

struct untold {
	pid_t pid;		/* of the old leader */
	struct taken_signal row;
};

#define MOVE_PROCESSES	512
#define TAKE_MS		5000	/* without any progress of the successor */
#define TAKE_PLANNED_MS	3000	/* the same, where it has read all, and there is a way back */

/* One version takes the place of another; see takeover.c. */
struct move {
	bool wanted, wanted_forced;	/* the loop is to begin one */
	uint64_t report_ms;	/* until then its successor may finish what it reports */
	char next_cause[64];
	uint64_t next_us;	/* since then */

	bool prepares;		/* the old leader is being stopped; the streams are its own */
	bool active;		/* the streams have been switched */
	bool forced;		/* the old leader cannot go on */
	bool keep;		/* it goes on as a follower */
	bool differs;		/* because its successor differs, which is thought right */
	bool reads_on;		/* planned: its successor first reads all that it told */
	struct version *from, *to;
	char cause[64];
	uint64_t began_us, stopped_us, taken_us, ready_us;
	unsigned processes, taken, descriptors;
	uint32_t leads;		/* of the successor's area, before */
	uint64_t taken_ms;	/* when one has taken last */
	unsigned retried[VERSIONS];	/* the same, of those that go on following */
	unsigned retries;	/* divergences that may have been seen before the switch */
	unsigned due;		/* processes that must take before it is over */
	uint64_t lag;		/* what the successor had still to read */
	uint64_t until_ms;	/* then what is left of the old leader is killed */
	pid_t process[MOVE_PROCESSES];	/* of the old leader */
	unsigned untolds;
	struct untold untold[UNTOLD_MAX];
};

/* What the leader's start told, kept for followers that come late. */
struct start_record {
	enum { START_NONE, START_READS, START_KEPT, START_LOST } state;
	uint32_t chunks;	/* of it that are used */
	bool seam;		/* a lane has come to its first request */
	bool threads;		/* a process has several */
	uint64_t moved_ms;	/* when something came last */
	char why[WHY_MAX];	/* it was lost */
};

/* What a process may become, as the kernel has it: equal or not. */
struct rights_key {
	uint64_t caps;		/* permitted */
	uint32_t uid[3], gid[3];	/* in order; 0 where `caps` can change them */
	uint64_t groups;	/* their hash */
};

/* The sections of the processes that have one set of rights. */
struct realm {
	struct rights_key key;
	struct conduct *conduct;	/* the monitor's page, and each version's section behind it */
	int section_fd[VERSIONS], section_read_fd[VERSIONS];
};

struct monitor {
	const struct run_options *options;
	struct session session;
	struct version version[VERSIONS];
	unsigned versions;	/* rows ever used */
	uint32_t leader;
	int cgroup_own, cgroup;	/* the session's, in ours; or -1 */
	char cgroup_path[PATH_MAX];	/* "": none */
	bool stopping;		/* by mve stop: all of it is to end */
	bool background;	/* the server has ended, others go on */
	uint64_t over_ms;	/* since then; or 0 */
	bool finishing;		/* the leading version has ended; followers may read on */
	uint64_t finish_ms;	/* until then, if nothing comes of it, or in any case: */
	uint64_t finish_last_ms;
	uint64_t finish_cells;	/* left of the stream at the last look */

	struct conduct *conduct;	/* the streams; NULL: no followers were asked for */
	int conduct_fd;
	struct realm realm[REALMS];	/* the first is that of the first program */
	uint32_t realms;
	uint64_t secret[2];	/* random bytes of programs are made of it */
	struct layout layout;	/* of the session's first program, as the leader has it */

	struct io_uring ring;
	int signal_fd, control_fd, bell_fd;
	struct tracee tracees[TRACEES_MAX];
	struct held held[HELD_MAX];
	unsigned held_high;	/* rows ever used */
	uint64_t woken_ms;	/* the next single wake-up that has been asked for */
	bool asked_soon;	/* somebody asks who has yet to sleep: it rings no second time */
	struct move move;	/* the takeover that is wanted, or under way */
	struct start_record start;
	struct audit *audit;
	struct trace *trace;
	struct findings *findings;	/* NULL: none yet */
};

static inline struct version *leading(struct monitor *m)
{
	return &m->version[m->leader];
}

/* Runs a session from its first program to its end; mve's exit status. */
int monitor_run(const struct run_options *o);
/*
 * Writes down who serves, and who will in a moment (NULL: the same): before that is so, and
 * a failure is said.  Whoever looks when the monitor has been killed finds the one that
 * lives.
 */
void session_note(struct monitor *m, const struct version *next);
/* Who serves now: what `mve ps` shows and `mve stop` speaks to; true: it is another. */
bool session_server(struct monitor *m);
/* What wakes the loop. */
enum wake {
	WAKE_SIGNAL = 1, WAKE_BELL, WAKE_CONTROL, WAKE_LINK, WAKE_TIMER, WAKE_ONCE,
};
/* It is woken once when the file has something of `events`; `which`: up to 56 bits. */
void monitor_poll(struct monitor *m, int fd, short events, enum wake what, uint64_t which);
/* The loop comes round after so long. */
void monitor_wake_after(struct monitor *m, unsigned ms);
/* In a child that is to be seized before its execve: without rights we may not otherwise. */
void monitor_open_child(void);
uint64_t now_ms(void);

/* versions.c: areas, doorbells, and where a version's processes are. */
int versions_make(struct monitor *m);
/* A row and an area; NULL options: of the session's own command. */
int version_make(struct monitor *m, const struct follower_options *o);
/* What its options say to the area of a follower. */
void version_ask(struct version *v, const struct follower_options *o);
int versions_alive_hold(struct monitor *m);
int version_bell_start(struct version *v);
struct version *version_named(struct monitor *m, const char *name);
struct version *version_of_child(struct monitor *m, pid_t pid);
uint32_t version_slots(const struct version *v);
bool version_lives(const struct version *v);
/*
 * The process that stands for the version, to be named and to be sent signals: the first,
 * and where that has ended the oldest that no other one of it has made.  0: none is left.
 */
pid_t version_head(const struct version *v);
/* A process of it lives, or is being born. */
bool version_alive(const struct version *v);
/* A child has been forked, and has no slot yet. */
bool version_births(const struct version *v);
bool version_owns(const struct version *v, pid_t pid, pid_t tid);
/* Kills every process of it; how many were there. */
unsigned version_kill(struct version *v);
/* And what has left it: all that it ever started, where there are cgroups. */
unsigned version_end(struct version *v);
bool version_kill_one(const struct version *v, pid_t pid);

/* start.c: from a command to a process that stands at its first execve. */
int program_find(const char *name, char **path);
/* Can it be a follower?  0, or an exit code behind a message. */
int program_follows(const char *path, const char *leader);
/* Why it never does what its leader does; NULL: it may. */
const char *program_foreign(const char *path, const char *leader);
int version_start(struct version *v);
/* The leader's start is waited for. */
int version_first_exec(struct version *v);
/* Why its first execve failed: a negative errno, or 0. */
int version_start_error(struct version *v);

/* streams.c */
int streams_make(struct monitor *m);
/* Of the first realm, and of any. */
struct section *streams_part(const struct monitor *m, uint32_t version);
struct section *realm_part(const struct monitor *m, uint32_t realm, uint32_t version);
/* By a lane's number in the session (LANES_ALL), of a realm that there is. */
struct lane *lane_at(const struct monitor *m, uint32_t version, uint32_t lane);
struct cursor *cursor_at(const struct monitor *m, uint32_t version, uint32_t lane);
static inline bool lane_is(const struct monitor *m, uint64_t lane)
{
	return lane < (uint64_t)m->realms * LANES;
}
/* The first lane from here on that this version's section may have opened. */
uint32_t lane_next(const struct monitor *m, uint32_t version, uint32_t lane);
#define LANES_EACH(m, version, i)							\
	for (uint32_t i = lane_next(m, version, 0); i < LANES_ALL;			\
	     i = lane_next(m, version, i + 1))
/* What stands in the sections of all realms: followers that threads have given up, ... */
uint32_t streams_dropped(const struct monitor *m, uint32_t version);
uint32_t streams_strayed(const struct monitor *m, uint32_t version);
uint64_t streams_waited_ns(const struct monitor *m, uint32_t version);

/* realms.c */
/* Address space for the monitor's page and all sections behind it; NULL, and errno. */
void *realm_room(uint32_t chunks);
/* The sections of a realm whose page is mapped. */
int realm_sections(struct monitor *m, uint32_t realm);
/* The process has the rights of the realm. */
bool realm_fits(const struct monitor *m, uint32_t realm, pid_t tid);
/* What it starts by this file has others than it has itself. */
bool realm_changes(const char *path, pid_t tid);
/* The first program's rights are those of the first realm. */
void realm_first(struct monitor *m, pid_t pid);
int64_t realm_serve(struct version *v, const struct request *r);

void streams_follow(struct monitor *m, uint32_t version, bool follows);
/* Tells every process that waits that the monitor's page has changed. */
void streams_changed(struct monitor *m);
bool streams_lag(const struct monitor *m, uint32_t version, uint64_t *cells);
void streams_sweep(struct monitor *m);
/* The leader's process whose thread has, or had, this lane has ended. */
bool streams_process_over(const struct monitor *m, uint32_t lane);
/* The version's process has read to its end, or its present one, each lane that it reads. */
bool streams_process_read(const struct monitor *m, uint32_t version, pid_t pid);
void streams_end_twins(struct monitor *m, const struct version *v);
/* Cells of one version's stream that another has not taken; those of one lane. */
uint64_t streams_lane_unread(const struct monitor *m, uint32_t version, uint32_t source,
			     uint32_t index);
uint64_t streams_unread(const struct monitor *m, uint32_t version, uint32_t source);
uint64_t streams_seed(struct version *v, uint32_t lane, uint32_t half);

/* pace.c: looked at with followers_look() */
void pace_look(struct monitor *m);
/* How old the oldest event is that it has not read; 0: it has read all. */
uint64_t pace_behind_ms(const struct monitor *m, const struct version *v);
/* For how long it has read nothing, though there is something; 0: it reads. */
uint64_t pace_still_ms(struct monitor *m, struct version *v);

/* start_record.c */
void start_record_begin(struct monitor *m);
void start_record_look(struct monitor *m);

/* join.c */
/* Spare rows for followers that come late. */
int join_rows_make(struct monitor *m);
/*
 * Begins a follower: `like` says what is asked of it, and its name, or NULL.  Its row,
 * which has taken argv; or NULL, and why not, and whether that goes by itself.
 */
struct version *join_begin(struct monitor *m, const char *path, char **argv,
			   const struct follower_options *like, char *why, size_t size,
			   bool *passes);
void join_look(struct monitor *m);
/* One that was dropped, not by the user: it may come again. */
void join_ended(struct version *v);
bool version_spare(const struct version *v);

/* followers.c */
bool followers_any(const struct monitor *m);
int followers_start(struct monitor *m);
void follower_drop(struct version *v, enum verdict verdict, const char *why, ...)
	__attribute__((format(printf, 3, 4)));
void follower_ended(struct version *v);
void followers_look(struct monitor *m);
void followers_judge(struct monitor *m);
/* The leading version has ended: true when nothing is left to wait for. */
bool followers_finish(struct monitor *m);
/* The thread of that lane ends its process, by its sanitizer, and says why. */
void follower_reported(struct version *v, uint32_t lane, enum verdict verdict, const char *why);

/* verdicts.c */
#define REPLY_LATER	INT64_MIN	/* no answer yet */
int64_t verdict_serve(struct version *v, const struct request *r);
int64_t crashed_serve(struct version *v, const struct request *r);
int64_t exit_serve(struct version *v, const struct request *r);
/* Its sanitizer ends it: if it leads, it is as if it crashed. */
int64_t sanitizer_ends(struct version *v, const struct request *r);
bool held_is(const struct monitor *m, const struct version *v, uint32_t slot);
/* Answers all that is held of this kind. */
void held_void(struct monitor *m, uint32_t kind, int64_t reply);
/* Lets threads that crashed or exit go to their end; pid 0: of all processes. */
bool held_leave(struct monitor *m, struct version *v, pid_t pid);
bool held_any(const struct monitor *m, const struct version *v, uint32_t kind);
bool held_crash(const struct monitor *m, const struct version *v);
void held_forget(struct monitor *m, const struct version *v);
void held_look(struct monitor *m);
/* Runs a command of the user's that a follower's report is for; nobody waits for it. */
void hook_run(const struct version *v, const char *command, const char *report);

/* findings.c */
int64_t reported_serve(struct version *v, const struct request *r);
/* The thread's process ends: was that because of a finding? */
bool findings_end(struct version *v, pid_t tid);
/* A thread of the version is at a report: what others differ in may be its delay. */
bool findings_busy(const struct version *v);
/* followers.c: that, or its end by it has yet to be judged. */
bool follower_reports(const struct version *v);
/* Says so if findings are asked of a program that has no sanitizer. */
void findings_runtime_look(struct version *v);
/* Keeps what is complete; is more to come? */
bool findings_look(struct monitor *m);
void findings_close(struct monitor *m);

/* report.c */
const char *verdict_name(uint64_t verdict);
const char *signal_word(uint64_t sig);
/* Writes down a verdict that its thread waits for, and says it; the path, "" if it cannot. */
void report_write(struct version *v, enum verdict verdict, const struct request *r, char *path,
		  size_t size);
/* The same of a follower that asks for nothing: it lags, or is gone. */
void report_lost(struct version *v, enum verdict verdict, const char *why);
/* A finding; the report's number, or 0. */
struct finding_request;
unsigned report_found(struct version *v, uint32_t slot, json_t *finding,
		      const struct finding_request *request, char *path, size_t size);

/* takeover.c */
/* As in /proc; 0: it is not there. */
char thread_state(pid_t pid, pid_t tid);
bool thread_ended(pid_t pid, pid_t tid);
/* By a user, the old leader ends or follows; or by its policy, for a follower that differs. */
enum promotion { PROMOTE_END, PROMOTE_KEEP, PROMOTE_DIFFERS };
/* Why it cannot lead now, and whether that goes by itself; NULL: it can. */
const char *takeover_refused(struct monitor *m, const struct version *to, bool *passes);
int takeover_promote(struct monitor *m, struct version *to, enum promotion how, char *why,
		     size_t size);
bool takeover_want(struct version *from, const char *cause, bool forced);
/* There was none: says of those that follow why they are none. */
void takeover_missed(const struct version *from, const char *cause);
/* A thread of it is in a handler of a deadly signal. */
bool version_faults(const struct version *v);
/* It is to be replaced, or what it has is still to be taken; that takes as long as it takes. */
bool takeover_keeps(const struct monitor *m, const struct version *v);
void takeover_look(struct monitor *m);
bool takeover_stands(const struct monitor *m, const struct version *v, pid_t pid);
uint64_t now_us(void);

/* untold.c: the old leader stands; and what the process that takes from this one is to hear. */
void untold_look(struct monitor *m);
unsigned untold_take(struct monitor *m, pid_t twin, struct taken_signal *row, unsigned room);

/* rules_at_work.c: what the monitor does about followers' rules. */
/* Tells all areas of all versions: which of @old, @new, @leader and @follower hold. */
void rules_releases(struct monitor *m);
/* A leader that stays as a follower goes by the rules of the one that leads now. */
void rules_pass(const struct version *from, struct version *to);
/* A thread that is in the code of a rule for too long is told to leave it. */
void rules_look(struct monitor *m);
/* What a faulty rule is and did, from its slot. */
void rules_word(const struct slot *s, char *text, size_t size);
json_t *rules_json(const struct rule_note *n);

/* take.c */
/*
 * The old leader's process stands: what it has open may be fetched; how long it took,
 * in us.  And: no more.
 */
uint64_t take_prepare(struct monitor *m, pid_t twin);
void take_over(void);
/* query.c: of the leader's descriptors, in a follower's place. */
int64_t query_serve(struct version *v, const struct request *r);
int64_t take_serve(struct version *v, const struct request *r);

/* hang.c */
void hang_look(struct monitor *m);

/* still.c: for how many ms a thread of the follower has not moved, and which. */
uint64_t still_look(struct monitor *m, struct version *v, pid_t *tid);
/* Says that the leader waits for a follower. */
void still_waits_look(struct monitor *m);

/* serve.c: the requests of the inside. */
/* Whether the version may make us say one more thing: a broken one would for ever. */
bool version_may_say(struct version *v);
void serve_requests(struct monitor *m);
void serve_child_events(struct monitor *m);
void serve_stops(struct monitor *m);
bool serve_execs(const struct monitor *m);
/* Of a program of this version, whose thread follows, or does not. */
enum role serve_role(const struct version *v, bool follows);
int serve_seize(struct version *v, pid_t tid, const struct tracee *want);

/* status.c */
json_t *status_json(struct monitor *m);
void status_sum(const struct version *v, uint64_t sum[COUNT_ROWS][SLOT_CALLS]);
int status_threads(const struct version *v);

/* trace.c */
struct trace *trace_open(FILE *out);
void trace_request(struct monitor *m, const struct request *r);
void trace_close(struct trace *t);

#endif
