/*
 * The recorder, as the monitor has it: its folder, its process (recorder.c), what that says and
 * what it is told.  There is one at a time; of a session that runs already it begins where an
 * image was taken (foam/record_late.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/foam/foam_task.h"
#include "engine/outside/kernel/folder.h"
#include "engine/outside/late/past.h"
#include "engine/outside/record/recorder_parts.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/print/text_json.h"
#include "engine/outside/report/report.h"
#include "engine/outside/takeover/takeover.h"
#include "engine/outside/takeover/takeover_parts.h"

#define END_MS		30000		/* for what is left, at the session's end */
#define END_STAND_US	10000		/* of the leader's time, to stand where a recording ends */
#define SPOOL_SEGMENTS	16		/* of what may wait; they go one by one */

static struct recorder ours = { .socket = -1 };

static int open_fail(const char *path, int result)
{
	if (result == -EEXIST)
		say_error("give a folder that is new, or empty",
			  "cannot record: %s: a recording is there", path);
	else if (result == -EINVAL)
		say_error("for example: --record shop.log",
			  "cannot record: %s: it is not the name of a folder", path);
	else
		say_error("the folder must be yours alone (0700), on a disk with room",
			  "cannot record: %s: %s", path, folder_why(-result));
	return result == -EEXIST || result == -EINVAL ? EXIT_USE : EXIT_SYSTEM;
}

int recorder_open(struct monitor *m)
{
	const char *path = m->options->record;
	int result = path ? log_writer_open(&ours.writer, path) : 0;

	if (!path || result)
		return result ? open_fail(path, result) : 0;
	say_error(NULL, "%s %s: it will hold what clients send, and what they are sent",
		  m->options->spooled ? "shipping, by way of" : "recording to", path);
	return 0;
}

void recorder_bound(struct log_tail *tail, uint64_t most)
{
	struct log_writer *w = &ours.writer;

	MUST(most && w->segment_bytes);
	w->tail = tail;
	ours.most = most;
	if (w->segment_bytes > most / SPOOL_SEGMENTS)
		w->segment_bytes = most / SPOOL_SEGMENTS;
}

static void recorder_failed(struct monitor *m, const char *why)
{
	snprintf(ours.why, sizeof(ours.why), "%s", why);
	streams_follow(m, ROW_LOG, false);
	say_error("the session goes on without it", "%s: the recording ends: %s", m->session.name,
		  why);
}

static void link_close(struct monitor *m)
{
	MUST(ours.socket >= 0);
	close(ours.socket);
	ours.socket = -1;
	if (ours.writer.tail)
		PUBLISH(tail_over, &ours.writer.tail->over, 1);
	if (m->conduct->following & US)
		recorder_failed(m, "its recorder was killed");
}

static void recorder_start(struct monitor *m)
{
	int pair[2], result = 0;
	pid_t pid;

	ours.m = m;
	ours.leader = m->leader;
	ours.streams = (struct streams){ m->conduct, ROW_LOG };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		result = -errno;
	if (!result)
		result = head_make(m, ours.image, &ours.head);
	if (result) {
		recorder_failed(m, strerror(-result));
		return;
	}
	ours.writer.written = mmap(NULL, sizeof(*ours.writer.written), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(ours.writer.written != MAP_FAILED);
	ours.cut = mmap(NULL, sizeof(*ours.cut), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(ours.cut != MAP_FAILED);
	pid = fork();
	if (!pid) {
		ours.socket = pair[1];
		recorder_run(&ours);
	}
	close(pair[1]);
	close(ours.writer.fd);
	free(ours.head.bytes);
	ours.socket = pair[0];
	if (pid < 0 || !recorder_poll(m))
		link_close(m);
}

void recorder_begin(struct monitor *m)
{
	if (m->options->record)
		recorder_start(m);
}

/* --- of a session that runs -------------------------------------------------------------- */

/* What the one before has left: the folder, and pages that its process had. */
static void recorder_forget(void)
{
	MUST(ours.socket < 0);
	if (!ours.writer.written)
		return;
	munmap(ours.writer.written, sizeof(*ours.writer.written));
	munmap(ours.cut, sizeof(*ours.cut));
	close(ours.writer.folder);
}

int recorder_late_open(const char *path)
{
	MUST(!recorder_is());
	recorder_forget();
	ours = (struct recorder){ .socket = -1, .image = true };
	return log_writer_open(&ours.writer, path);
}

void recorder_late_drop(void)
{
	log_writer_drop(&ours.writer);
	ours.image = false;
}

int recorder_late_folder(uint64_t recording[2])
{
	memcpy(recording, ours.writer.recording, sizeof(ours.writer.recording));
	return fcntl(ours.writer.folder, F_DUPFD_CLOEXEC, 0);
}

void recorder_late_begin(struct monitor *m)
{
	MUST(m->options->record && ours.image);
	recorder_start(m);
}

/* While the leader stands: what the twin of this row has read the recording has, too. */
void recorder_cut(struct monitor *m, uint32_t version, uint32_t image)
{
	const struct section *s = streams_part(m, version);

	MUST(recorder_is() && ours.cut && !recorder_cuts());
	ours.cut->image = image;
	for (uint32_t i = 0; i < LANES; i++) {
		ours.cut->lane[i].life = s->cursor[i].life;
		ours.cut->lane[i].at = s->cursor[i].at;
	}
	PUBLISH(recorder_cut, &ours.cut->number, ours.cut->number + 1);
}

bool recorder_cuts(void)
{
	return ours.cut && CONSUME(cut_made, &ours.cut->made) != ours.cut->number;
}

uint64_t recorder_bytes(void)
{
	return ours.writer.written ? ours.writer.written->frames : 0;
}

bool recorder_is(void)
{
	return ours.socket >= 0;
}

bool recorder_ends(void)
{
	return recorder_is() && ours.why[0];
}

bool recorder_left(void)
{
	return !recorder_is() && !strcmp(ours.why, RECORDER_LEFT);
}

void recorder_folder(char *path, size_t size)
{
	MUST(ours.writer.folder >= 0);
	folder_path(ours.writer.folder, path, size);
}

void recorder_fail(struct monitor *m, const char *why)
{
	char text[FRAMES_WHY];

	snprintf(text, sizeof(text), "the image that it begins with: %s", why);
	if (m->options->record && recorder_is() && !ours.why[0])
		send(ours.socket, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

json_t *recorder_json(struct monitor *m)
{
	const struct log_written *w = ours.writer.written;
	json_t *j = json_pack("{s:o, s:b}", "folder", text_json(m->options->record), "active",
			      recorder_is());

	MUST(j);
	if (ours.why[0])
		json_object_set_new(j, "ended", text_json(ours.why));
	if (foam_task_any())
		json_object_set_new(j, "image", foam_task_json());
	if (w)
		json_object_update_new(j, json_pack("{s:I, s:I, s:i, s:i}", "bytes",
						    (json_int_t)w->bytes, "uncompressed",
						    (json_int_t)w->frames, "segments",
						    (int)w->segments, "dropped",
						    (int)w->dropped));
	return j;
}

bool recorder_poll(struct monitor *m)
{
	return foam_task_poll(m) &&
	       (ours.socket < 0 || monitor_poll(m, ours.socket, POLLIN, WAKE_RECORDER, 0));
}

/* Its lanes end where nothing that they tell needs what is told behind. */
static void end_cut(struct monitor *m)
{
	const struct section *s = streams_part(m, m->leader);
	uint64_t begin = now_us();
	struct straggler late;

	if (recorder_cuts() || takeover_any(m))
		return;
	if (leader_stands(m, leading(m), END_STAND_US, &late)) {
		ours.cut->image = CUT_ENDS;
		for (uint32_t i = 0; i < LANES; i++) {
			ours.cut->lane[i].life = s->lane[i].life;
			ours.cut->lane[i].at = s->lane[i].head;
		}
		PUBLISH(recorder_cut, &ours.cut->number, ours.cut->number + 1);
	}
	unpark(m, m->leader);
	past_stood(m, PAUSE_end, now_us() - begin);
}

bool recorder_stop(struct monitor *m)
{
	static const char asked[] = "as was asked (mve record --stop)";

	if (!m->options->record || ours.socket < 0 || ours.why[0])
		return false;
	end_cut(m);
	return send(ours.socket, asked, sizeof(asked) - 1, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
}

void recorder_serve(struct monitor *m)
{
	char why[FRAMES_WHY];
	ssize_t n;

	foam_task_serve(m);
	while (ours.socket >= 0 &&
	       (n = recv(ours.socket, why, sizeof(why) - 1, MSG_DONTWAIT)) >= 0) {
		why[n] = 0;
		if (n)
			recorder_failed(m, why);
		else
			link_close(m);
	}
	recorder_poll(m);
}

void recorder_died(const char *what)
{
	if (recorder_is())
		snprintf(ours.cut->died, sizeof(ours.cut->died), "%s", what);
}

/* Of one that leads since, the recording has nothing. */
static void leader_died(const struct version *v)
{
	bool died = v->reaped && WIFSIGNALED(v->status);
	char what[32] = "";

	if (v->index != ours.leader)
		return;
	if (died)
		snprintf(what, sizeof(what), "killed by %s",
			 signal_word((uint64_t)WTERMSIG(v->status)));
	recorder_died(what);
}

void recorder_end(struct monitor *m)
{
	struct pollfd p = { .events = POLLIN };

	foam_task_close(m);
	p.fd = ours.socket;
	if (ours.socket < 0)
		return;
	/* Who died told no end. */
	streams_sweep(m);
	leader_died(leading(m));
	shutdown(ours.socket, SHUT_WR);
	if (poll(&p, 1, END_MS) > 0) {
		recorder_serve(m);
		return;
	}
	say_error("what is on disk is true up to its last whole frame",
		  "%s: the recorder does not end in %d s: left behind", m->session.name,
		  END_MS / 1000);
}
