/*
 * See process.h: /proc/PID/stat, whose fields stand behind a name that may hold anything.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/abi/knock.h"
#include "engine/core/must.h"
#include "engine/outside/kernel/process.h"

#define GENERATIONS_MAX	4096

#define STATE		3	/* fields of /proc/PID/stat, counted from 1 */
#define PARENT		4
#define USED		14	/* of a processor, in its own code and in the kernel's */
#define USED_KERNEL	15
#define ENDED		16	/* the same of children that it has waited for */
#define ENDED_KERNEL	17
#define THREADS		20
#define BEGAN		22
#define ROOM		23	/* of its memory, in bytes */

/* The field in such a text, from the third on, which stands behind the name; NULL: none. */
static const char *field_in(const char *text, int want)
{
	const char *at = strrchr(text, ')');

	MUST(want >= STATE);	/* those before it stand before the name's end */
	for (int field = STATE - 1; field < want && at; field++)
		at = strchr(at + 1, ' ');
	return at && at[1] ? at + 1 : NULL;
}

static uint64_t number_in(const char *text, int want)
{
	const char *at = field_in(text, want);

	return at ? strtoull(at, NULL, 10) : 0;
}

/* The state is that of its first thread, which may have ended before the others. */
static bool is_dead(const char *text)
{
	const char *state = field_in(text, STATE);

	return !state || *state == 'X' || (*state == 'Z' && number_in(text, THREADS) <= 1);
}

/* A short file of /proc as text; "": it is not there. */
static void text_take(int fd, char *text, size_t size)
{
	ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = 0;
}

static void text_read(const char *name, char *text, size_t size)
{
	text_take(open(name, O_RDONLY | O_CLOEXEC), text, size);
}

/* A number of /proc/PID/stat; 0: it is dead, or not there. */
static uint64_t stat_field(pid_t pid, int want)
{
	char name[64], text[1024];

	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	text_read(name, text, sizeof(text));
	return is_dead(text) ? 0 : number_in(text, want);
}

bool thread_has_memory(pid_t pid, pid_t tid)
{
	char name[64], text[1024];

	snprintf(name, sizeof(name), "/proc/%d/task/%d/stat", pid, tid);
	text_read(name, text, sizeof(text));
	return number_in(text, ROOM) != 0;
}

char thread_state(pid_t pid, pid_t tid)
{
	char name[64], text[1024];
	const char *state;

	snprintf(name, sizeof(name), "/proc/%d/task/%d/stat", pid, tid);
	text_read(name, text, sizeof(text));
	state = field_in(text, STATE);
	return state ? *state : 0;
}

bool thread_ended(pid_t pid, pid_t tid)
{
	char state = thread_state(pid, tid);

	return !state || state == 'Z' || state == 'X';
}

uint64_t thread_used_us(pid_t pid, pid_t tid)
{
	char name[64], text[128];
	uint64_t ns;

	snprintf(name, sizeof(name), "/proc/%d/task/%d/schedstat", pid, tid);
	text_read(name, text, sizeof(text));
	return sscanf(text, "%lu", &ns) == 1 ? ns / 1000 : UINT64_MAX / 2;
}

uint64_t own_queued_us(void)
{
	char text[128];
	uint64_t ns;

	text_read("/proc/thread-self/schedstat", text, sizeof(text));
	return sscanf(text, "%*u %lu", &ns) == 1 ? ns / 1000 : 0;
}

/* One of the process' threads is, of so many at most. */
static bool threads_any(pid_t pid, bool (*is)(pid_t pid, pid_t tid), unsigned most)
{
	const struct dirent *d;
	bool any = false;
	char path[48];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && !any && most && (d = readdir(tasks))) {
		pid_t tid = (pid_t)strtol(d->d_name, NULL, 10);

		any = tid > 0 && is(pid, tid);
		most -= tid > 0;
	}
	if (tasks)
		closedir(tasks);
	return any;
}

static bool thread_lives(pid_t pid, pid_t tid)
{
	return !thread_ended(pid, tid);
}

bool process_over(pid_t pid)
{
	/* A thread whose execve was under way has become the first meanwhile. */
	return thread_ended(pid, pid) && !threads_any(pid, thread_lives, UINT_MAX) &&
	       thread_ended(pid, pid);
}

enum runs thread_wants(pid_t pid, pid_t tid)
{
	char state = thread_state(pid, tid);

	return state == 'R' ? RUNS_CPU : state == 'D' ? RUNS_DISK : RUNS_NOT;
}

bool thread_runs(pid_t pid, pid_t tid)
{
	return thread_wants(pid, tid) != RUNS_NOT;
}

bool process_runs(pid_t pid, unsigned most)
{
	return threads_any(pid, thread_runs, most);
}

uint64_t process_began(pid_t pid)
{
	return stat_field(pid, BEGAN);
}

uint64_t process_used_ms(pid_t pid)
{
	uint64_t ticks = stat_field(pid, USED) + stat_field(pid, USED_KERNEL);

	return ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

uint64_t process_ended_us(pid_t pid)
{
	uint64_t ticks = stat_field(pid, ENDED) + stat_field(pid, ENDED_KERNEL);

	return ticks * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

pid_t process_parent(pid_t pid)
{
	return (pid_t)stat_field(pid, PARENT);
}

bool process_descends(pid_t pid, pid_t of)
{
	for (unsigned i = 0; pid > 0 && i < GENERATIONS_MAX; i++) {
		if (pid == of)
			return true;
		pid = process_parent(pid);
	}
	return false;
}

#define STATUS_TEXT	4096

/* What stands behind the word at a line's beginning of /proc/PID/status; NULL: nothing. */
static const char *status_read(pid_t pid, const char *word, char *text)
{
	const char *at;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/status", pid);
	text_read(name, text, STATUS_TEXT);
	at = strstr(text, word);
	return at ? at + strlen(word) : NULL;
}

/* What stands behind a word in such a text, from *at on, which is its end then. */
static uint64_t number_behind(const char **at, const char *word, int base)
{
	const char *found = strstr(*at, word);

	*at = found ? found + strlen(word) : *at;
	return found ? strtoul(*at, NULL, base) : 0;
}

/* Of a first thread, which is asked when clients wait: its name is looked up before. */
static struct { pid_t pid; int fd; } status_at;

static int status_open(pid_t pid, pid_t tid)
{
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/task/%d/status", pid, tid);
	return open(name, O_RDONLY | O_CLOEXEC);
}

void thread_status_ready(pid_t pid)
{
	if (status_at.pid == pid)
		return;
	if (status_at.pid && status_at.fd >= 0)
		close(status_at.fd);
	status_at.pid = pid;
	status_at.fd = status_open(pid, pid);
}

/* False: it is to be opened by its name; of one that is gone nothing is read here. */
static bool status_known(pid_t pid, pid_t tid, char *text)
{
	ssize_t n = pid == tid && pid == status_at.pid ?
		    pread(status_at.fd, text, STATUS_TEXT - 1, 0) : -1;

	text[n < 0 ? 0 : n] = 0;
	return n > 0;
}

bool thread_status(pid_t pid, pid_t tid, struct thread_status *s)
{
	char text[STATUS_TEXT];
	const char *at = text;
	int fd = status_known(pid, tid, text) ? -1 : status_open(pid, tid);

	if (fd >= 0)
		text_take(fd, text, sizeof(text));
	/* In their order. */
	s->table = (uint32_t)number_behind(&at, "\nFDSize:", 10);
	s->threads = (uint32_t)number_behind(&at, "\nThreads:", 10);
	s->pending = number_behind(&at, "\nSigPnd:", 16);
	s->shared = number_behind(&at, "\nShdPnd:", 16);
	return *text;
}

uint32_t process_table(pid_t pid)
{
	struct thread_status s;

	return thread_status(pid, pid, &s) ? s.table : 0;
}

/* linux/pidfd.h has them from Linux 6.15 on. */
#define INFO_IDS	2u
#define INFO_ASK	0xc040ff0bul

struct pidfd_asked {
	uint64_t mask, cgroup;
	uint32_t pid[3], id[4][2];	/* each of a user and of a group */
	int32_t exit_code;
};

_Static_assert(sizeof(struct pidfd_asked) == 64, "the size is in the number of the call");

/* As the kernel has it since 6.13, for a tenth of what the text costs. */
static bool ids_ask(pid_t pid, unsigned uid[4], unsigned gid[4])
{
	struct pidfd_asked asked = { .mask = INFO_IDS };
	int handle = (int)syscall(SYS_pidfd_open, pid, 0);
	bool told = handle >= 0 && !ioctl(handle, INFO_ASK, &asked) && asked.mask & INFO_IDS;

	if (handle >= 0)
		close(handle);
	for (int i = 0; told && i < 4; i++) {
		uid[i] = asked.id[i][0];
		gid[i] = asked.id[i][1];
	}
	return told;
}

bool process_ids(pid_t pid, unsigned uid[4], unsigned gid[4])
{
	char text[STATUS_TEXT];
	const char *at;

	if (ids_ask(pid, uid, gid))
		return true;
	at = status_read(pid, "\nUid:", text);
	return at && sscanf(at, "%u%u%u%u\nGid:%u%u%u%u", uid, uid + 1, uid + 2, uid + 3,
			    gid, gid + 1, gid + 2, gid + 3) == 8;
}

pid_t process_tracer(pid_t pid)
{
	char text[STATUS_TEXT];
	const char *at = status_read(pid, "\nTracerPid:", text);

	return at ? (pid_t)strtol(at, NULL, 10) : 0;
}

/* Asked by what the kernel does not let an execve of its make us wait for. */
bool process_closed(pid_t pid)
{
	char name[64], path[8];

	snprintf(name, sizeof(name), "/proc/%d/exe", pid);
	return readlink(name, path, sizeof(path)) < 0 && (errno == EACCES || errno == EPERM) &&
	       process_began(pid);
}

#define USER_NOBODY	65534

/* A number of /proc/PID/status, as `form` has it, behind its name. */
static bool status_number(pid_t pid, const char *what, const char *form, unsigned *out)
{
	char name[64], text[4096];
	const char *at;

	snprintf(name, sizeof(name), "/proc/%d/status", pid);
	text_read(name, text, sizeof(text));
	at = strstr(text, what);
	return at && sscanf(at + strlen(what), form, out) == 1;
}

uint32_t process_mask(pid_t pid)
{
	unsigned mask = 022;

	status_number(pid, "\nUmask:", "%o", &mask);
	return mask & 0777;
}

/* As wide as the kernel prints what it is of. */
#define LIMIT_NAME	26

static uint64_t limit_number(const char *text)
{
	return strcmp(text, "unlimited") ? strtoull(text, NULL, 10) : RLIM_INFINITY;
}

int process_limits(pid_t pid, uint64_t limit[][2])
{
	char name[64], line[128], now[32], most[32];
	int n = -1;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/limits", pid);
	f = fopen(name, "re");
	if (!f)
		return -errno;
	for (; n < (int)RLIM_NLIMITS && fgets(line, sizeof(line), f); n++) {
		if (n < 0)	/* what the columns are */
			continue;
		if (strlen(line) <= LIMIT_NAME ||
		    sscanf(line + LIMIT_NAME, "%31s%31s", now, most) != 2)
			break;
		limit[n][0] = limit_number(now);
		limit[n][1] = limit_number(most);
	}
	fclose(f);
	return n == (int)RLIM_NLIMITS ? 0 : -ESRCH;
}

bool process_filtered(pid_t pid)
{
	unsigned mode = 0;

	return status_number(pid, "\nSeccomp:", "%u", &mode) && mode;
}

uid_t process_user(pid_t pid)
{
	char text[STATUS_TEXT];
	const char *at = status_read(pid, "\nUid:", text);

	return at ? (uid_t)strtoul(at, NULL, 10) : USER_NOBODY;
}

static bool has_signal(const char *set, int sig)
{
	return set && strtoul(set, NULL, 16) >> (sig - 1) & 1;
}

bool process_awaits(pid_t pid, int sig)
{
	char text[STATUS_TEXT];

	MUST(sig > 0 && sig <= 64);
	return has_signal(status_read(pid, "\nSigPnd:", text), sig) ||
	       has_signal(status_read(pid, "\nShdPnd:", text), sig);
}

bool process_like_us(pid_t pid)
{
	char text[STATUS_TEXT];
	const char *at = status_read(pid, "\nUid:", text);
	unsigned real, effective, saved, us = geteuid();

	return us && at && sscanf(at, "%u %u %u", &real, &effective, &saved) == 3 &&
	       real == us && effective == us && saved == us;
}

bool cpus_several(void)
{
	static int several;	/* -1: no */
	cpu_set_t set;

	if (!several)
		several = !sched_getaffinity(0, sizeof(set), &set) && CPU_COUNT(&set) == 1 ? -1 : 1;
	return several > 0;
}

/* The handle stays the process's; that it is the one that is meant is seen behind it. */
int process_signal(pid_t pid, uint64_t began, int sig)
{
	int handle = (int)syscall(SYS_pidfd_open, pid, 0), result = 0;

	if (handle < 0)
		return -errno;
	if (!began || process_began(pid) != began)
		result = -ESRCH;
	else if (syscall(SYS_pidfd_send_signal, handle, sig, NULL, 0) < 0)
		result = -errno;
	close(handle);
	return result;
}

void thread_knock(pid_t pid, pid_t tid)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = SIGSYS;
	info.si_code = KNOCK_CODE;
	syscall(SYS_rt_tgsigqueueinfo, pid, tid, SIGSYS, &info);
}
