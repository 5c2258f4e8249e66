/*
 * The monitor: one process per session, the parent of the server and of the
 * followers.
 *
 * All of it runs in one thread, wake after wake (wakes.h); for each version a
 * second thread only waits on its doorbell, which is a futex, and turns it into
 * a wake.
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
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

#include "engine/abi/area.h"
#include "engine/abi/brief.h"
#include "engine/abi/request.h"
#include "engine/abi/ring.h"
#include "engine/abi/state.h"
#include "engine/core/must.h"
#include "engine/outside/follow/given.h"
#include "engine/outside/monitor/audit.h"
#include "engine/outside/monitor/options.h"
#include "engine/outside/session/session.h"
#include "engine/outside/monitor/wakes.h"
#include "engine/outside/rewind/images.h"
#include "engine/outside/stages/stage.h"
#include "engine/outside/start/layout.h"

#define TRACEES_MAX	(2 * AREA_THREADS)	/* execs under way: of all threads, at worst */
/*
 * Limit (threads and processes): threads of all versions that wait for one verdict or
 * takeover. Beyond: a further one goes on at once: in a follower it is judged at once, in a
 * leader that crashes it dies.
 */
#define HELD_MAX	4096
#define WHY_MAX		160

/* A program that an execve started, as it was then. */
struct image {
	int32_t pid;
	uint32_t sites_patched;
	uint32_t sites_trapped;	/* found, but left to the net */
	uint32_t sealed;
	uint64_t inside;	/* where the inside image is mapped */
	uint64_t inside_len;
	uint64_t dev, ino;	/* of its file; 0: not known */
	char exe[232];
};

/* A thread that is seized because its execve has begun. */
struct tracee {
	pid_t tid;		/* 0: the row is free */
	pid_t pid;		/* whose thread it is; the program's id from its execve on */
	uint32_t hidden;	/* enum hidden_bits, for the new program */
	enum role role;		/* that it has: in a takeover a version's processes have two */
	struct version *version;
	uint32_t lane;
	uint32_t left;		/* the one that its execve was told in, if the program may have
				   other rights; or LANES_ALL */
	int32_t vpid;		/* the pid that the program believes to have */
	bool failed;		/* its execve has, and it is asked to stop, to be let go */
	bool waits;		/* it is executed, and stands until its files are planned, and
				   there is a lane */
	uint64_t until_ms;	/* for the plan, from when it waits; 0: it does not yet */
	uint64_t began_ms;	/* to wait for a lane; 0: it does not */
	struct layout_wish wish;	/* of a follower */
};

enum version_state {
	VERSION_STARTING, VERSION_LEADS, VERSION_FOLLOWS,
	VERSION_LEAVES,		/* another leads now and takes what it had */
	VERSION_ENDED,
};

/* Of a follower that came late. */
enum join { JOIN_NONE, JOIN_READS, JOIN_WAITS, JOIN_DONE };

/* A follower in whose place a twin comes: --on-divergence retry. */
struct retry {
	uint64_t when_ms;	/* then: one is made; or 0 */
	unsigned ends;		/* since one has lasted */
	unsigned tries;		/* in vain, since one was made */
	uint64_t times;		/* one has come */
	char why[WHY_MAX];	/* the one before was lost; "" */
};

/* Our end of a follower's wire: takeover/wire.c. */
struct wire {
	pid_t pid;		/* whose it is; 0: there is none */
	uint64_t began;
	uint32_t slot;
	int fd;
};

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
	uint32_t turn;		/* the slot where the next round of its requests begins */

	pid_t server;		/* its first process; who serves is asked of version_head() */
	uint64_t began;
	int status;		/* valid when reaped */
	bool reaped;		/* the first process is gone, and status known */
	bool gone;		/* the first process is gone; others may go on (a daemon) */
	bool empty;		/* all are gone, and its cgroup says so: none can come any more */
	bool over;		/* a follower's last process is gone, and it is judged whether
				   that was right */
	bool made;		/* for the row of another, in whose place it came: rows.c */
	bool spare;		/* one of those that --spare keeps */
	bool asleep;		/* a twin that is written into a file: it never follows */
	int age;		/* the greater, the newer; 0: as its options say */
	char prepared[UPDATE_PATH];	/* for live updates: the build that runs; or "" */
	uid_t prepared_by;	/* whose process said so */
	unsigned build_word;	/* which word of the command that is; or 0 */
	enum join join;
	uint64_t comes_ms;	/* of a twin that is to follow yet: when it was looked at; or 0 */
	uint32_t comes_slept;	/* and for how long it has been seen asleep since it ran */
	uint64_t loud_ms;	/* of a leader: until then it tells though nobody follows; or 0 */
	uint64_t join_ms;	/* until then it may read the start */
	uint64_t again_ms;	/* when it is started again; or 0 */
	unsigned ends;		/* since it has followed for long */
	struct retry retry;
	bool partly;		/* it does not know all connections: it cannot lead */
	bool parked;		/* stands still for a takeover: nobody may judge it */
	bool crash_kept;	/* what it crashed of is told, or will be */
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
	bool closed_said;	/* that one of its processes is not dumpable */
	struct given finish;	/* its time to read on, since it has done so last, */
	struct given finish_all; /* and in all */
	uint64_t finish_cells;	/* left of the stream at the last look */
	uint64_t backs;		/* requests that were taken back, */
	uint64_t backs_not;	/* and that could not be, */
	uint64_t backs_known;	/* and that were known, and refused */
	uint64_t findings, findings_all;	/* different ones, and with equal ones */
	bool runtime;		/* a sanitizer's is in one of its programs */
	uint64_t follows_ms;	/* since then */
	bool runtime_missed;	/* it was said that it has no runtime */
	unsigned unheld;	/* programs that run without us */
	uint32_t execs[LANES_ALL];	/* programs begun in each lane */
	struct wire wire;
	struct rewind rewind;	/* of a follower: its image, and what it was needed for */
};

/* A request that is answered later. */
struct held {
	struct version *version;	/* NULL: the row is free */
	uint64_t since_ms, until_ms;
	bool again;		/* it is to be served anew; held again, its time goes on */
	struct request request;
	struct given leader;	/* of a verdict: what the leader had of its time to crash */
};

struct untold {
	pid_t pid;		/* of the old leader; 0: it has been handed on */
	struct taken_signal row;
};

/* A process of the successor that is to take what its twin has. */
struct taker {
	struct version *version, *holder;	/* its own; and the twin's */
	pid_t twin;
	uint64_t twin_began;
	int socket;		/* by which it says how much has come; -1: it has, or will not */
	int64_t n;		/* descriptors that were sent; or -errno */
	bool ready;		/* all have come */
	bool told;		/* with the last of them: it leads when it has all */
	bool unasked;		/* it has been sent all before it asked, and may read on as yet */
	bool answered;		/* it leads, or is about to; its twin stands until that is so */
	bool guest;		/* the memory is another process's, which may wait for it */
	struct request request;
};

/* Each has a thread in a slot: there are no more. */
#define MOVE_PROCESSES	AREA_THREADS
#define TAKE_MS		5000	/* without any progress of the successor */
#define TAKE_PLANNED_MS	3000	/* the same, where it has read all, and there is a way back */

/* Where it stands, and what happens to it: takeover/moves.def. */
enum move_state {
#define STATE(name, ...)	MOVE_IS_##name,
#include "engine/outside/takeover/moves.def"
	MOVE_STATES
};

/* The first process of the old leader's, as it was seen when it stood. */
struct stood {
	pid_t pid;		/* 0: it was not */
	uint32_t table, threads;
};

/* One version takes the place of another; see takeover.c. */
struct move {
	enum move_state state;
	uint64_t report_ms;	/* until then its successor may finish what it reports */
	char next_cause[64];
	uint64_t next_us;	/* since then */

	bool forced;		/* the old leader cannot go on */
	bool keep;		/* it goes on as a follower */
	bool differs;		/* because its successor differs, which is thought right */
	struct version *from, *to;
	struct version *asked;	/* `to`, while who asked for it waits to hear how it ends */
	char cause[64];
	uint64_t began_us, stopped_us, taken_us, ready_us;
	uint32_t late;		/* the first slot that did not stand at the last look, + 1 */
	unsigned processes, taken, descriptors;
	bool parted;		/* a twin has ended: there is no way back */
	uint32_t leads;		/* of the successor's area, before */
	uint64_t taken_ms;	/* when one has taken last */
	unsigned retried[VERSIONS];	/* the same, of those that go on following */
	unsigned retries;	/* divergences that may have been seen before the switch */
	unsigned tries;		/* to stop the leader where its successor can read all */
	unsigned due;		/* processes that must take before it is over */
	uint64_t lag;		/* what the successor had still to read */
	uint64_t until_ms;	/* then what is left of the old leader is killed */
	pid_t process[MOVE_PROCESSES];	/* of the old leader, */
	uint64_t process_began[MOVE_PROCESSES];	/* each the one that it was then */
	pid_t twin[MOVE_PROCESSES];	/* from which was `sent` */
	unsigned sent;
	unsigned takers, taker_room;
	struct taker *taker;	/* those that wait until all are ready */
	bool others;		/* another follower could lead, too */
	struct version *found;	/* who may lead, as the leader failed; NULL: not looked for */
	char lacks[64];		/* why the successor cannot lead; "": nothing is known */
	unsigned untolds, untold_room, untold_lost;
	struct stood stood;
	struct untold *untold;	/* as many as wait, SIGNALS_WAIT at most */
};

/* Twins that are kept: --spare. */
struct spares {
	uint64_t next_ms;	/* not before: one is made */
	unsigned ends;		/* by a verdict, since one has lasted */
	unsigned tries;		/* in vain, since one was made */
	uint64_t made, lost;
	uint64_t stood_us;	/* that the leader stood for one, at the longest */
	char why[WHY_MAX];	/* the last was lost, or none can be made */
};

/* What somebody stands still for. */
enum pause {
#define PAUSE(name, ...) PAUSE_##name,
#include "engine/outside/late/pauses.def"
#undef PAUSE
	PAUSES
};

struct pause_count {
	uint64_t times, longest_us, last_us;
};

/*
 * Limit (followers): losses that mve status has the reasons of. Beyond: the last ones.
 */
#define LOSSES_KEPT	8

struct loss {
	time_t at;
	char name[FOLLOWER_NAME_MAX + 1], why[WHY_MAX];
};

/* What befell the session: late/past.c. */
struct past {
	struct pause_count pause[PAUSES];
	uint64_t joins;		/* that follow, and came late */
	uint64_t losses;
	struct loss loss[LOSSES_KEPT];	/* the last: a ring */
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
	struct conduct *conduct;	/* the monitor's page, then each version's section */
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
	bool logs;		/* ROW_LOG is a recorder's, though others may have had it */
	bool stopping;		/* by mve stop: all of it is to end */
	bool failed;		/* mve has, in the leader, which goes on: nobody may follow it */
	bool pids_apart;	/* its server has made a pid namespace: processes may be in it */
	bool detached;		/* the server goes on without us: the session is over */
	bool background;	/* the server has ended, others go on */
	uint64_t over_ms;	/* since then; or 0 */
	bool finishing;		/* the leading version has ended; followers may read on */
	uint64_t finish_ms;	/* when one of them has read on last */

	struct conduct *conduct;	/* the streams; NULL: no followers were asked for */
	int conduct_fd;
	struct realm realm[REALMS];	/* the first is that of the first program */
	uint32_t realms;
	bool one_realm;		/* its streams were made for a recorder: there is no other */
	uint64_t secret[2];	/* random bytes of programs are made of it */
	struct layout layout;	/* of the session's first program, as the leader has it */

	struct wakes wakes;
	int signal_fd, control_fd, bell_fd;
	struct tracee tracees[TRACEES_MAX];
	struct held held[HELD_MAX];
	unsigned held_high;	/* rows ever used */
	bool held_again;	/* one of them is to be served anew */
	uint64_t vain_us;	/* spent on slots that said that they ask, and did not */
	bool asked_soon;	/* somebody asks who has yet to sleep: it rings no second time */
	struct move move;	/* the takeover that is wanted, or under way */
	struct start_record start;
	struct spares spares;
	struct stages stages;
	struct past past;
	struct audit *audit;
	struct trace *trace;
	struct rollbacks *rollbacks;	/* NULL: no request was taken back */
	bool rollback_begun;	/* a request has had a checkpoint */
	unsigned rollback_programs;	/* that have checkpoints, with --rollback */
	struct findings *findings;	/* NULL: none yet */
};

static inline struct version *leading(struct monitor *m)
{
	MUST(m->leader < VERSIONS);
	return &m->version[m->leader];
}

/* Runs a session from its first program to its end; mve's exit status. */
int monitor_run(const struct run_options *o);
/*
 * Who serves, what `mve ps` shows and `mve stop` speaks to, and who may come to serve in its
 * place.  True: it is not what is written down.
 */
bool session_look(struct monitor *m);
/*
 * Writes it down; a failure is said.  Who may come to serve stands there before it does, so
 * that whoever looks when the monitor has been killed finds the one that lives; and who has
 * come to, before who served ends.
 */
void session_note(struct monitor *m);
/* The words of whoever leads are the session's. */
void session_command(struct session *s, char **argv);
/* The version is about to serve: it is written down that it may, if that is not so yet. */
void session_expect(struct monitor *m, const struct version *v);
/* In a child that is to be seized before its execve: without rights we may not otherwise. */
void monitor_open_child(void);

#endif
