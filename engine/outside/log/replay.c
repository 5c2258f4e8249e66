/*
 * mve replay: a session whose leader is a recording.  Its one follower begins as any follower
 * does, with what the recorded program began with, and is compared with what that did.  Nothing
 * can take over: there is nothing to lead.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/log/head.h"
#include "engine/outside/log/ours.h"
#include "engine/outside/log/replay.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/print/plain.h"
#include "engine/outside/report/reports.h"

#define RECORDED	0	/* the version that was */
#define REPLAYED	1

/* `code`: of opening it.  What cannot be read is no difference: EXIT_SYSTEM. */
static int head_read(struct replay *r, int code)
{
	const struct log_frame *head = code ? NULL : frames_next(&r->frames);
	struct log_frame *copy = NULL;

	if (!code && !head && r->tail && !r->frames.over) {
		frames_close(&r->frames);
		return REPLAY_COMES;
	}
	if (head) {
		copy = malloc(sizeof(*head) + head->size);
		MUST(copy);
		memcpy(copy, head, sizeof(*head) + head->size);
	}
	if (!code && (!copy || !program_read(copy, &r->program))) {
		if (!r->frames.torn)
			snprintf(r->frames.why, sizeof(r->frames.why), "it has no head");
		code = EXIT_SYSTEM;
	}
	return code == EXIT_NO ? EXIT_SYSTEM : code;
}

static int head_take(struct replay *r, int code)
{
	code = head_read(r, code);
	if (code && code != REPLAY_COMES)
		say_error("mve run --record makes one", "cannot read the recording: %s: %s",
			  r->path, r->frames.why);
	return code;
}

int replay_open(struct replay *r, const char *path)
{
	*r = (struct replay){ .path = path };
	return head_take(r, frames_open(&r->frames, path));
}

int replay_open_tail(struct replay *r, const char *path, int folder, struct log_tail *tail)
{
	*r = (struct replay){ .path = path, .tail = tail };
	if (!CONSUME(tail_settled, &tail->settled))
		return REPLAY_COMES;
	return head_take(r, frames_open_tail(&r->frames, dup(folder), tail));
}

/* --- where it begins ------------------------------------------------------------------- */

/* A segment with which a replay can begin. */
struct beginning {
	struct frames frames;
	struct program program;
	struct foam *foam;	/* NULL: the program's own beginning */
};

static const char no_beginning[] = "its beginning is not there, and no image";

static void beginning_drop(struct beginning *b)
{
	if (b->foam)
		foam_close(b->foam);
	frames_close(&b->frames);
	*b = (struct beginning){ .frames.fd = -1, .frames.folder = -1 };
}

enum begins {
	BEGINS_NOT,	/* what is there goes on from the segment before */
	BEGINS_LATE,	/* behind the time that is asked for */
	BEGINS_BAD,	/* it could begin there, but for `why` */
	BEGINS,
};

static enum begins beginning_read(struct beginning *b, uint32_t segment, char *why)
{
	uint32_t image = b->program.head.image;

	if (!image)
		return segment ? BEGINS_NOT : BEGINS;
	b->foam = foam_open(b->frames.folder, image - 1, b->frames.recording, why, FOAM_WHY);
	return b->foam ? BEGINS : BEGINS_BAD;
}

static enum begins beginning_open(struct beginning *b, const char *path, uint32_t segment,
				  uint64_t most_ns, char *why)
{
	struct replay r = { .path = path };
	int code = frames_open_at(&r.frames, path, segment);
	enum begins is = BEGINS_BAD;

	if (!code && r.frames.began_ns > most_ns)
		is = BEGINS_LATE;
	else if (!head_read(&r, code))
		is = BEGINS;
	else
		snprintf(why, FOAM_WHY, "%s", r.frames.why);
	*b = (struct beginning){ .frames = r.frames, .program = r.program };
	if (is == BEGINS)
		is = beginning_read(b, segment, why);
	if (is != BEGINS)
		beginning_drop(b);
	return is;
}

/* Events that stand before it, which have the numbers before its own. */
static uint64_t events_before(const char *path, uint32_t from, uint32_t to)
{
	const struct log_frame *frame;
	struct frames f;
	uint64_t n = 0;

	if (from == to || frames_open_at(&f, path, from))
		return 0;
	while ((frame = frames_next(&f)) && f.segment < to)
		n += frame->kind == LOG_CELLS ? events_in(frame) : 0;
	frames_close(&f);
	return n;
}

static bool is_there(const char *path, uint32_t segment)
{
	struct frames f;
	int result = frames_open_at(&f, path, segment);

	if (!result)
		frames_close(&f);
	return !result;
}

/*
 * The first of all, or the last that begins before that time.  Where that cannot be used an earlier
 * one will do, with which more is replayed; never a later one, with which less is.  `why`: what is
 * against the last of them, if anything is.
 */
static bool beginning_find(const struct replay *r, struct beginning *found, char *why)
{
	bool any = false, first = true;
	enum begins is = BEGINS_NOT;
	struct beginning b;

	for (uint32_t at = r->frames.dropped; is != BEGINS_LATE && (first || r->from_ns) &&
	     is_there(r->path, at); at++) {
		is = beginning_open(&b, r->path, at, first ? UINT64_MAX : r->from_ns, why);
		first &= is == BEGINS_NOT;
		if (is != BEGINS)
			continue;
		if (any)
			beginning_drop(found);
		*found = b;
		any = true;
		why[0] = 0;
	}
	return any;
}

bool replay_can(const char *path, uint32_t *segment, char why[FOAM_WHY])
{
	struct replay r = { .path = path };
	struct beginning b;
	bool can;

	if (frames_open(&r.frames, path))
		return false;
	snprintf(why, FOAM_WHY, "%s", no_beginning);
	can = beginning_find(&r, &b, why);
	frames_close(&r.frames);
	if (!can)
		return false;
	*segment = b.frames.segment;
	beginning_drop(&b);
	return true;
}

/* What it names is run as whoever replays it: it is in nobody else's power. */
static bool is_foreign(const struct replay *r)
{
	struct foreign f;
	bool in;

	if (folder_is_ours(r->frames.folder, &f))
		return false;
	in = strcmp(f.name, ".");
	say_error("it says what is run, as you; if you trust it make a copy: cp -r",
		  "cannot replay %s: %s%s%s", r->path, in ? f.name : "", in ? ": " : "", f.why);
	return true;
}

/*
 * Who asks for a later one may think that what is before is passed over.  +0 is the second that
 * the program's head says, which may have come just behind the first frame.
 */
static void beginning_say(const struct replay *r, const struct beginning *b, const char *why)
{
	if (why[0])
		say_error(NULL, "%s: %s; it begins before that", r->path, why);
	else if (!b->foam && r->from_ns > b->frames.began_ns &&
		 r->from_ns / 1000000000 > (uint64_t)r->program.head.began)
		say_error("mve run --record DIR --images TIME takes some",
			  "%s: there is no image before that: it begins at its beginning", r->path);
}

int replay_begins(struct replay *r)
{
	char why[FOAM_WHY];
	struct beginning b;

	if (is_foreign(r))
		return EXIT_SYSTEM;
	if (!r->frames.dropped && !r->program.head.image && !r->from_ns)
		return 0;
	snprintf(why, sizeof(why), "%s", no_beginning);
	if (beginning_find(r, &b, why)) {
		beginning_say(r, &b, why);
		r->before = events_before(r->path, r->frames.dropped, b.frames.dropped);
		/* Who asks for a later one does without what is before. */
		b.frames.missing_to = r->from_ns ? 0 : r->frames.missing_to;
		frames_close(&r->frames);
		r->frames = b.frames;
		r->program = b.program;
		r->foam = b.foam;
		return 0;
	}
	say_error("mve log shows what there is; --from TIME begins at a later image",
		  "cannot replay %s: %s", r->path, why);
	return EXIT_SYSTEM;
}

int replay_builds(const struct replay *r)
{
	if (!r->foam)
		return 0;
	say_error("mve run --record makes one that other builds can be run against",
		  "%s begins with an image: it is replayed by its own program", r->path);
	return EXIT_USE;
}

void replay_streams(struct monitor *m)
{
	const struct log_head *h = &m->options->replay->program.head;

	MUST(m->conduct);
	memcpy(m->secret, h->secret, sizeof(m->secret));
	m->conduct->maps = h->maps;
	m->conduct->one_at_a_time = h->one_at_a_time;
}

int replay_begin(struct monitor *m)
{
	struct version *v = &m->version[RECORDED];
	pid_t pid = feeder_begin(m, m->options->replay);

	if (pid < 0)
		return pid;
	v->server = pid;
	v->began = process_began(pid);
	v->state = VERSION_LEADS;
	m->layout = m->options->replay->program.head.layout;
	return 0;
}

/* --- what it inherits ---------------------------------------------------------------- */

static void limit_set(const uint64_t limit[2], int which)
{
	struct rlimit r = { limit[0], limit[1] };

	if (!setrlimit(which, &r))
		return;
	getrlimit(which, &r);
	r.rlim_cur = limit[0] < r.rlim_max ? limit[0] : r.rlim_max;
	setrlimit(which, &r);
}

void replay_inherit(const struct replay *r, const struct foam *f)
{
	const struct log_head *h = &r->program.head;

	_Static_assert(LOG_LIMITS == FOAM_LIMITS, "all limits");
	for (int i = 0; i < LOG_LIMITS; i++)
		if (i != RLIMIT_FSIZE)
			limit_set(f ? f->head.limit[i] : h->limit[i], i);
	umask((f ? f->head.mask : h->mask) & 0777);
	if (chdir(r->program.folder))
		_exit(EXIT_SYSTEM);
}

void replay_inherit_last(const struct replay *r)
{
	const struct log_head *h = &r->program.head;
	sigset_t mask;

	sigemptyset(&mask);
	for (int sig = 1; sig <= 64; sig++) {
		uint64_t bit = 1ull << (sig - 1);
		struct sigaction a = { .sa_handler = h->ignored & bit ? SIG_IGN : SIG_DFL };

		if (h->blocked & bit)
			sigaddset(&mask, sig);
		sigaction(sig, &a, NULL);
	}
	sigprocmask(SIG_SETMASK, &mask, NULL);
	limit_set(h->limit[RLIMIT_FSIZE], RLIMIT_FSIZE);
}

/* --- what it came to ----------------------------------------------------------------- */

bool replay_first_over(const struct monitor *m)
{
	uint32_t ends = m->options->replay->fed->first_ends;
	const struct cursor *c = cursor_at(m, REPLAYED, (ends - 1) % LANES);

	/* Of a thread that died before that its lane is said to be done, too. */
	return ends && CONSUME(cursor_at, &c->at) >=
		       CONSUME(lane_head, &lane_at(m, RECORDED, (ends - 1) % LANES)->head);
}

static struct replay_left left_now(struct monitor *m)
{
	return (struct replay_left){ true, streams_unread(m, REPLAYED, RECORDED),
				     replay_first_over(m) };
}

void replay_closes(struct monitor *m)
{
	if (!m->options->replay->left.is)
		m->options->replay->left = left_now(m);
}

/* These are about the program; the others say that mve could not replay it, or a rule was wrong. */
static const bool about_program[VERDICTS] = {
	[VERDICT_DIVERGED] = true, [VERDICT_CRASHED] = true, [VERDICT_LAGGING] = true,
	[VERDICT_FOUND] = true,
};

static bool program_judged(const struct version *v)
{
	bool any = false;

	for (unsigned i = 0; i < VERDICTS; i++)
		any |= about_program[i] && v->verdicts[i];
	return any;
}

bool replay_missing(const struct replay *r)
{
	return r->fed->torn || r->fed->early || !r->fed->ended;
}

bool replay_killed_by(const struct replay *r, uint64_t sig)
{
	char what[32];
	int n = snprintf(what, sizeof(what), "killed by %s;", signal_word(sig));

	MUST(n > 0 && (size_t)n < sizeof(what));
	return r->fed->read && !strncmp(r->fed->died, what, (size_t)n);
}

/* It may be over before all is fed: what its processes were killed at is not read. */
static bool is_read(const struct replay *r, const struct version *v,
		    const struct replay_left *left)
{
	if (r->fed->rests)
		return r->fed->read && replay_missing(r);
	if (v->over && r->fed->first_ends)
		return left->first_over;
	return r->fed->whole && left->cells <= r->fed->open;
}

/* Whoever builds a program anew may not think of it. */
static void build_say(const struct replay *r, const struct version *v)
{
	if (v->argv == r->program.argv && program_is_other(&r->program))
		say_error("another build is given behind --, the recorded one too",
			  "%s: another build than the recorded one lies there", v->path);
}

/* Where the recording ended before it stood where it was to stand last. */
static bool until_missed(const struct replay *r)
{
	const struct until *u = &r->fed->until;
	char what[32] = "that time";

	if (u->held == u->asked || (!u->event && !u->ns))
		return false;
	if (u->event)
		snprintf(what, sizeof(what), "event %lu", (unsigned long)u->event);
	say_error("mve log DIR show has numbers and times", "%s: it ends before %s", r->path,
		  what);
	return true;
}

/* Of one that came over a network who brought it says whether its end is missing. */
static bool is_whole(const struct replay *r)
{
	return (r->fed->ended || r->tail) && !r->fed->torn && !r->fed->lost;
}

/* What is not there has not been compared: "equal" alone would be a lie. */
static void not_whole_say(const struct replay *r)
{
	if (!is_whole(r))
		say_error("mve log shows what is in it", "%s: not whole: %s", r->path,
			  r->fed->torn || r->fed->lost ? r->fed->why : frames_endless);
}

/* By mve stop, or a signal, of which the feeder dies first: not by what is in it. */
static bool was_ended(const struct monitor *m)
{
	const struct version *feeder = &m->version[RECORDED];

	return !version_judged(&m->version[REPLAYED]) &&
	       (m->stopping || (feeder->reaped && WIFSIGNALED(feeder->status)));
}

/* Why it has not come to the end; of what was not looked at nothing is known. */
static void not_read_say(const struct monitor *m)
{
	const struct replay *r = m->options->replay;

	if (r->fed->read)
		not_whole_say(r);
	say_error(NULL, "%s: not %s to the end: %s", r->path, r->tail ? "followed" : "replayed",
		  r->fed->rests ? "nobody comes to take what is left" :
		  was_ended(m) ? "it was ended before that" : m->version[REPLAYED].why);
}

int replay_result(struct monitor *m)
{
	const struct replay *r = m->options->replay;
	const struct version *v = &m->version[REPLAYED];
	struct replay_left left = r->left.is ? r->left : left_now(m);
	bool missed;

	if (program_judged(v)) {
		say_error("mve report shows where: mve report NAME", "%s: %s, and it differs",
			  r->path, r->tail ? "followed" : "replayed");
		build_say(r, v);
		return EXIT_NO;
	}
	if (version_judged(v) || !is_read(r, v, &left)) {
		not_read_say(m);
		/* Its sanitizer may have ended it there. */
		return v->findings ? EXIT_NO : EXIT_SYSTEM;
	}
	missed = until_missed(r);
	if (v->findings) {
		say_error("mve report shows it, and the request: mve report NAME",
			  "%s: %s to the end, and its sanitizer has found something", r->path,
			  r->tail ? "followed" : "replayed");
		return EXIT_NO;
	}
	printf("%s %lu calls, equal%s\n", r->tail ? "followed" : "replayed",
	       (unsigned long)r->fed->calls, is_whole(r) ? "" :
	       r->fed->lost ? " from there on" : " up to there");
	if (is_whole(r) && r->fed->died[0])
		printf("the recorded server ended there: %s\n", plain(r->fed->died));
	fflush(stdout);
	build_say(r, v);
	not_whole_say(r);
	return !missed && (is_whole(r) || m->options->partial) ? EXIT_OK : EXIT_SYSTEM;
}
