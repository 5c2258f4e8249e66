/*
 * Reading a stack.  All that is needed of the process is copied first: the part of the stack
 * that matters, the names of its files and its rights; then a child of ours reads the files
 * and unwinds.  What it reads are files of a program that may be broken: if they upset libdw,
 * the child is lost and not the monitor, and one that takes too long is killed.  It has the
 * process' rights by then, not ours: whoever can name a file that is to be read could not read
 * another by it.
 *
 * The loop waits for a child that hands the frames back through a pipe.  A file that may let
 * it wait this one does not open (session/near.c).  Or the child is beside the loop, nobody waits,
 * and the thread goes on, or ends.
 */
#include <elf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/sysmacros.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/kernel/remote.h"
#include "engine/outside/patch/beside.h"
#include "engine/outside/session/seize.h"
#include "engine/outside/report/stack.h"
#include "engine/outside/report/stack_parts.h"

#define COPY_SIZE	(256u << 10)
#define LIMIT_MS	4000
#define TEXT_MAX	(1u << 20)
#define CATCH_MS	200

/* --- the child ------------------------------------------------------------------ */

/* What a version names is opened with its rights. */
static json_t *frames_read(const struct stack_copy *copy)
{
	return rights_wear(&copy->rights) ? unwind(copy) : json_array();
}

static _Noreturn void child(struct stack_copy *copy, int to)
{
	char memory[40];
	json_t *frames;

	snprintf(memory, sizeof(memory), "/proc/%d/mem", copy->pid);
	copy->memory = open(memory, O_RDONLY | O_CLOEXEC);
	frames = frames_read(copy);
	json_dumpfd(frames, to, JSON_COMPACT);
	_exit(0);
}

static int64_t ms_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* All that comes through the pipe until its end, or the time's. */
static size_t receive(int from, char *text, size_t size)
{
	int64_t end = ms_now() + LIMIT_MS;
	size_t len = 0;

	while (len < size) {
		struct pollfd p = { from, POLLIN, 0 };
		int64_t left = end - ms_now();
		ssize_t n;

		if (left <= 0 || poll(&p, 1, (int)left) == 0)
			break;
		n = read(from, text + len, size - len);
		if (n <= 0 && errno != EINTR)
			break;
		len += n > 0 ? (size_t)n : 0;
	}
	MUST(len <= size);
	return len;
}

static json_t *child_read(struct stack_copy *copy)
{
	char *text = malloc(TEXT_MAX);
	json_t *frames = NULL;
	int pipe_fds[2];
	pid_t reader;

	if (!text || pipe2(pipe_fds, O_CLOEXEC) < 0) {
		free(text);
		return NULL;
	}
	reader = fork();
	if (reader == 0)
		child(copy, pipe_fds[1]);
	close(pipe_fds[1]);
	if (reader > 0) {
		frames = json_loadb(text, receive(pipe_fds[0], text, TEXT_MAX), 0, NULL);
		kill(reader, SIGKILL);
		waitpid(reader, NULL, WNOHANG);	/* else the loop does: it may wait for a file */
	}
	close(pipe_fds[0]);
	free(text);
	return frames;
}

/* --- what is copied ---------------------------------------------------------------- */

/* As /proc/PID/maps has it, but for the shelf: code that lies there is its file's. */
static char *maps_text(pid_t pid, size_t *len)
{
	char *text = NULL;
	struct maps maps;
	FILE *f = maps_read(pid, &maps) ? NULL : open_memstream(&text, len);

	for (size_t i = 0; f && i < maps.n; i++) {
		const struct map *m = &maps.map[i];

		fprintf(f, "%lx-%lx %c%c%c%c %lx %x:%x %lu %s\n", m->start, m->end,
			m->read ? 'r' : '-', m->write ? 'w' : '-', m->exec ? 'x' : '-',
			m->shared ? 's' : 'p', m->offset, major(m->dev), minor(m->dev), m->inode,
			m->path);
	}
	maps_free(&maps);
	if (f)
		fclose(f);
	return text;
}

static void copy_free(struct stack_copy *copy)
{
	free(copy->maps);
	free(copy->bytes);
}

/* False: some of it is wanting; to be freed in each case. */
static bool copy_take(pid_t pid, const struct stack_start *s, struct stack_copy *copy)
{
	long n;

	*copy = (struct stack_copy){ .pid = pid, .start = *s, .at = s->stack & ~15ull,
				     .memory = -1 };
	copy->maps = maps_text(pid, &copy->maps_len);
	copy->bytes = malloc(COPY_SIZE);
	if (!copy->maps || !copy->bytes || !rights_worn_read(pid, &copy->rights))
		return false;
	n = memory_peek(pid, copy->at, copy->bytes, COPY_SIZE);
	copy->len = n > 0 ? (uint64_t)n : 0;
	MUST(copy->len <= COPY_SIZE);
	return true;
}

json_t *stack_read(pid_t pid, const struct stack_start *s)
{
	struct stack_copy copy;
	json_t *frames = copy_take(pid, s, &copy) ? child_read(&copy) : NULL;

	copy_free(&copy);
	return frames ? frames : json_array();
}

/* --- beside the loop --------------------------------------------------------------- */

struct kept {
	struct stack_copy copy;
	void (*told)(void *of, json_t *frames);
	void *of;
};

/* In a child, which may wait for a file. */
static void kept_read(void *result, const void *about)
{
	const struct kept *k = *(struct kept *const *)about;
	json_t *frames = frames_read(&k->copy);
	char *text = result;
	size_t n = json_dumpb(frames, text, TEXT_MAX - 1, JSON_COMPACT);

	text[n < TEXT_MAX ? n : 0] = 0;
}

static void kept_tell(const void *result, const void *about, int error)
{
	struct kept *k = *(struct kept *const *)about;
	json_t *frames = error ? NULL :
			 json_loadb(result, strnlen(result, TEXT_MAX), 0, NULL);

	if (!json_is_array(frames)) {
		json_decref(frames);
		frames = json_array();
	}
	k->told(k->of, frames);
	json_decref(frames);
	copy_free(&k->copy);
	free(k);
}

void stack_read_beside(pid_t pid, const struct stack_start *s,
		       void (*told)(void *of, json_t *frames), void *of)
{
	static const struct beside reads = { TEXT_MAX, kept_read, kept_tell };
	struct kept *k = malloc(sizeof(*k));
	json_t *none = k ? NULL : json_array();

	if (!k) {
		told(of, none);
		json_decref(none);
		return;
	}
	k->told = told;
	k->of = of;
	if (!copy_take(pid, s, &k->copy) ||
	    beside_start(&reads, -1, process_user(pid), &k, sizeof(k)))
		kept_tell(NULL, &k, -ENOMEM);
}

/* --- threads that nobody has stopped ---------------------------------------------- */

/* One that only lacks a processor stops as soon as it has one; what counts is the time for which
 * the kernel keeps it: for a file, say, that does not come. */
static bool comes_to_stop(pid_t tid, int *status)
{
	struct timespec look = { 0, 1000000 };
	int64_t end = ms_now() + LIMIT_MS;
	int kept = 0;

	for (; kept < CATCH_MS && ms_now() < end; kept += thread_state(tid, tid) != 'R') {
		pid_t got = waitpid(tid, status, __WALL | WNOHANG);

		if (got == tid)
			return WIFSTOPPED(*status);
		if (got < 0)
			return false;
		nanosleep(&look, NULL);
	}
	return false;
}

static void start_from(struct stack_start *s, const struct user_regs_struct *r)
{
	*s = (struct stack_start){
		.place = r->rip, .stack = r->rsp, .exact = true,
		.saved = { [SAVED_RBX] = r->rbx, [SAVED_RBP] = r->rbp, [SAVED_R12] = r->r12,
			  [SAVED_R13] = r->r13, [SAVED_R14] = r->r14, [SAVED_R15] = r->r15 },
	};
}

bool stack_catch(pid_t tid, uint64_t inside, uint64_t inside_len, struct stack_start *s)
{
	struct user_regs_struct r;
	bool got = false;
	int status = 0;

	if (thread_seize(tid, 0))
		return false;
	if (!ptrace(PTRACE_INTERRUPT, tid, 0, 0) && comes_to_stop(tid, &status))
		got = !ptrace(PTRACE_GETREGS, tid, 0, &r);
	if (got && r.rip - inside >= inside_len)
		start_from(s, &r);
	/* A signal that stopped it first is still to be delivered. */
	ptrace(PTRACE_DETACH, tid, 0, status >> 16 ? 0 : (long)WSTOPSIG(status));
	return got;
}

/* --- whose frame --------------------------------------------------------------------- */

/* libc, its like, and the runtimes of languages and sanitizers. */
static bool library_is_common(const char *path)
{
	static const char *const names[] = {
		"libc.", "libc-", "libpthread", "ld-", "libm.", "libm-", "librt.", "libdl.",
		"libasan.", "libtsan.", "libubsan.", "liblsan.", "libmsan.", "libclang_rt",
		"libstdc++.", "libgcc_s.", "linux-vdso", "[vdso",
	};
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

/* What stands before a store of the program's. */
static bool is_checkpoints(const json_t *frame)
{
	const char *function = json_string_value(json_object_get(frame, "function"));

	return function && (!strncmp(function, "mve_checkpoint_", 15));
}

const json_t *stack_frame_own(const json_t *stack)
{
	const json_t *frame, *named = NULL, *own = NULL;
	size_t i;

	json_array_foreach(stack, i, frame) {
		const char *module = json_string_value(json_object_get(frame, "module"));

		if ((module && library_is_common(module)) || is_checkpoints(frame))
			continue;
		if (json_object_get(frame, "line"))
			return frame;
		if (!named && json_object_get(frame, "function"))
			named = frame;
		own = own ? own : frame;
	}
	return named ? named : own ? own : json_array_get(stack, 0);
}
