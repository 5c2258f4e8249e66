/*
 * With --one-at-a-time threads take numbers from a plain variable and write them to /dev/null,
 * which a follower compares: so whoever works beside the one whose turn it is makes it differ.
 * Here they do what may take the turn from one, or begin work without it: a write that waits for
 * another thread, of more than a chunk of the ring; handlers of signals that come in calls that
 * wait; a program that is started and waits for another thread; threads that only yield, or look
 * at a clock until another has worked; what FUTEX_WAKE says, futex_waitv, and a slow end of a
 * thread.  And what another build (`PART other`) does otherwise: libc reads files for itself, or
 * does not; the data of a registration are others; it is late with what the monitor is asked for.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"

#define WORKERS	3
#define ROUNDS	40
#define LARGE	200000
#define FIFO	"in_turns.fifo"

static int null, number;
static atomic_int stop, handled;
static char large[LARGE];

static void say(const char *what, long value)
{
	char line[64];
	int mine = number++;
	int n = snprintf(line, sizeof(line), "%s %ld %d\n", what, value, mine);

	CHECK(write(null, line, (size_t)n) == n);
}

static void *work(void *arg)
{
	while (!atomic_load(&stop)) {
		say("work", (long)arg);
		usleep(100);
	}
	return NULL;
}

static void among(void (*part)(void))
{
	pthread_t t[WORKERS];

	atomic_store(&stop, 0);
	for (long i = 0; i < WORKERS; i++)
		CHECK(!pthread_create(&t[i], NULL, work, (void *)i));
	part();
	atomic_store(&stop, 1);
	for (int i = 0; i < WORKERS; i++)
		CHECK(!pthread_join(t[i], NULL));
}

/* --- a write that waits --------------------------------------------------------------- */

static void *drain(void *arg)
{
	static char some[5000];
	int fd = *(int *)arg;
	long had = 0, n;

	while ((n = read(fd, some, sizeof(some))) > 0) {
		had += n;
		number++;
	}
	say("drained", had);
	return NULL;
}

static void write_waits(void)
{
	pthread_t t;
	int fds[2];

	CHECK(!pipe(fds) && !pthread_create(&t, NULL, drain, &fds[0]));
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(write(fds[1], large, sizeof(large)) == sizeof(large));
		number++;
		say("written", i);
	}
	CHECK(!close(fds[1]) && !pthread_join(t, NULL) && !close(fds[0]));
}

/* --- a handler ------------------------------------------------------------------------ */

static void comes(int sig)
{
	number++;
	atomic_fetch_add(&handled, sig == SIGUSR1);
}

static void *stand(void *arg)
{
	struct pollfd none = { .fd = -1 };

	for (int n = 0; !atomic_load(&stop); n++) {
		if (n & 1)
			say("polled", poll(&none, 1, 5));
		else
			say("slept", usleep(5000));
		number++;
	}
	return arg;
}

static void signals_come(void)
{
	struct sigaction a = { .sa_handler = comes };
	pthread_t t;

	CHECK(!sigaction(SIGUSR1, &a, NULL) && !pthread_create(&t, NULL, stand, NULL));
	for (int i = 0; i < ROUNDS * 2; i++) {
		int had = atomic_load(&handled);

		CHECK(!pthread_kill(t, SIGUSR1));
		while (atomic_load(&handled) == had)
			sched_yield();
		say("handled", had);
		if (i == ROUNDS) {
			a.sa_flags = SA_RESTART;
			CHECK(!sigaction(SIGUSR1, &a, NULL));
		}
	}
	atomic_store(&stop, 1);
	CHECK(!pthread_join(t, NULL));
}

/* --- a program that waits as it begins -------------------------------------------------- */

static void *let_begin(void *arg)
{
	int fd = open(FIFO, O_WRONLY);

	CHECK(fd >= 0 && !close(fd));
	say("let", *(int *)arg);
	return NULL;
}

static void program_begins(void)
{
	char *words[] = { "true", NULL };
	posix_spawn_file_actions_t files;
	int status;

	CHECK(!mkfifo(FIFO, 0600));
	CHECK(!posix_spawn_file_actions_init(&files) &&
	      !posix_spawn_file_actions_addopen(&files, 0, FIFO, O_RDONLY, 0));
	for (int i = 0; i < 4; i++) {
		pthread_t t;
		pid_t pid;

		CHECK(!pthread_create(&t, NULL, let_begin, &i));
		CHECK(!posix_spawn(&pid, "/bin/true", &files, NULL, words, NULL));
		number++;
		say("begun", i);
		CHECK(waitpid(pid, &status, 0) == pid && !status);
		CHECK(!pthread_join(t, NULL));
	}
	CHECK(!posix_spawn_file_actions_destroy(&files) && !unlink(FIFO));
}

/* Programs begin while others fork. */
static void *children_make(void *arg)
{
	char *words[] = { "true", NULL };

	for (int i = 0; i < 12; i++) {
		int status;
		pid_t pid = -1;

		if (i % 2)
			CHECK(!posix_spawn(&pid, "/bin/true", NULL, NULL, words, NULL));
		else
			pid = fork();
		if (!pid)
			_exit(0);
		number++;
		say("child", i);
		CHECK(waitpid(pid, &status, 0) == pid && !status);
	}
	return arg;
}

static void children_come(void)
{
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&t[i], NULL, children_make, NULL));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(t[i], NULL));
}

/* --- threads that do nothing but let others work --------------------------------------- */

static atomic_int made;

static void *let_others(void *arg)
{
	while (atomic_load(&made) < ROUNDS)
		sched_yield();
	say("let", (long)arg);
	return NULL;
}

static void *make(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		usleep(1);
		say("made", i);
		atomic_fetch_add(&made, 1);
	}
	return arg;
}

static void one_yields(void)
{
	pthread_t t[4];

	for (long i = 0; i < 4; i++)
		CHECK(!pthread_create(&t[i], NULL, i ? let_others : make, (void *)i));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(t[i], NULL));
}

/* --- who spins for another, and looks what time it is --------------------------------------- */

static atomic_int asked, answered;

static void *answer(void *arg)
{
	while (atomic_load(&asked) >= 0) {
		if (atomic_load(&asked) != atomic_load(&answered)) {
			say("answers", number++);
			atomic_store(&answered, atomic_load(&asked));
		}
		usleep(100);
	}
	return arg;
}

static void clock_spins(void)
{
	struct timespec now;
	pthread_t t;

	CHECK(!pthread_create(&t, NULL, answer, NULL));
	for (int i = 1; i <= ROUNDS; i++) {
		atomic_store(&asked, i);
		while (atomic_load(&answered) != i)
			CHECK(!clock_gettime(CLOCK_MONOTONIC, &now));
		say("heard", number++);
	}
	atomic_store(&asked, -1);
	CHECK(!pthread_join(t, NULL));
}

/* --- futexes ---------------------------------------------------------------------------- */

static uint32_t word;

static long futex(uint32_t *at, int op, uint32_t value)
{
	return syscall(SYS_futex, at, op, value, NULL, NULL, 0);
}

static void *sleep_there(void *arg)
{
	long result = 0;

	while (!atomic_load(&stop)) {
		result = futex(&word, FUTEX_WAIT_PRIVATE, 0);
		say("woken", result);
		number++;
	}
	return arg;
}

static void wakes_tell(void)
{
	pthread_t t[2];

	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&t[i], NULL, sleep_there, NULL));
	for (int i = 0; i < ROUNDS; i++) {
		say("wakes", futex(&word, FUTEX_WAKE_PRIVATE, 1 + i % 2));
		if (i % 3)
			usleep(50);
	}
	atomic_store(&stop, 1);
	word = 1;
	for (int i = 0; i < 2; i++) {
		futex(&word, FUTEX_WAKE_PRIVATE, 2);
		CHECK(!pthread_join(t[i], NULL));
	}
	word = 0;
}

struct waitv {
	uint64_t value, at;
	uint32_t flags, pad;
};

static void *wake_soon(void *arg)
{
	usleep(200);
	*(uint32_t *)arg = 1;
	number++;
	futex(arg, FUTEX_WAKE_PRIVATE, 1);
	return NULL;
}

static void many_wait(void)
{
	for (int i = 0; i < ROUNDS / 4; i++) {
		uint32_t one = 0;
		struct waitv v = { 0, (uint64_t)&one, 2 | 128, 0 };	/* 32 bits, private */
		pthread_t t;
		long got = 0;

		CHECK(!pthread_create(&t, NULL, wake_soon, &one));
		while (got >= 0 && !__atomic_load_n(&one, __ATOMIC_RELAXED)) {
			got = syscall(449, &v, 1, 0, NULL, 0);
			CHECK(got >= 0 || errno == EAGAIN || errno == ENOSYS);
		}
		number++;
		say("waited", got);
		CHECK(!pthread_join(t, NULL));
	}
}

/* --- an end that is slow, and who waits for it -------------------------------------------- */

#define SLOW	2000	/* robust futexes, which the kernel looks at before it says that it ended */

struct ends {
	int *tid;		/* where the kernel says so: on the stack, which is shared */
	char stack[1 << 18] __attribute__((aligned(64)));
	struct robust_list_head head;
	struct robust_list list[SLOW];
};

/* Each of them in a page of its own, that is not there yet. */
static void *end_slowly(void *arg)
{
	struct ends *e = arg;
	char *pages = mmap(NULL, SLOW * 8192l, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct robust_list *at = &e->head.list;
	int *tid;

	CHECK(pages != MAP_FAILED);
	for (long i = 0; i < SLOW; i++) {
		at->next = (void *)(pages + 8192 * i);
		at = at->next;
		at->next = &e->head.list;
	}
	e->head.futex_offset = 4096;
	CHECK(!syscall(SYS_set_robust_list, &e->head, sizeof(e->head)));
	CHECK(!prctl(PR_GET_TID_ADDRESS, &tid));
	__atomic_store_n(&e->tid, tid, __ATOMIC_RELEASE);
	syscall(SYS_exit, 0);
	return NULL;
}

/* The kernel says it elsewhere from then on; libc, which does not know, is not to wait for it. */
static void *end_elsewhere(void *arg)
{
	static int here;

	here = 1;
	CHECK(syscall(SYS_set_tid_address, &here) > 0);
	__atomic_store_n((int **)arg, &here, __ATOMIC_RELEASE);
	syscall(SYS_exit, 0);
	return NULL;
}

/* So often that who waited elsewhere, and each time for as long as it may, would never come. */
static void ends_elsewhere(void)
{
	pthread_attr_t a;

	CHECK(!pthread_attr_init(&a) &&
	      !pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED));
	for (int i = 0; i < ROUNDS * 4; i++) {
		int *at = NULL, was;
		pthread_t t;

		CHECK(!pthread_create(&t, &a, end_elsewhere, &at));
		while (!__atomic_load_n(&at, __ATOMIC_ACQUIRE))
			usleep(100);
		while ((was = __atomic_load_n(at, __ATOMIC_ACQUIRE)))
			futex((uint32_t *)at, FUTEX_WAIT, (uint32_t)was);
		say("ended", i);
	}
}

static void wait_there(struct ends *e)
{
	int *at, tid;

	while (!(at = __atomic_load_n(&e->tid, __ATOMIC_ACQUIRE)))
		;
	for (volatile int n = 0; n < 100000; n++)
		;
	while ((tid = __atomic_load_n(at, __ATOMIC_ACQUIRE)))
		futex((uint32_t *)at, FUTEX_WAIT, (uint32_t)tid);
	_exit(0);
}

/* Another process waits for it, too: after those that work on when it has ended. */
static void ends_are_heard(void)
{
	struct ends *e = mmap(NULL, sizeof(*e), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t a;

	CHECK(e != MAP_FAILED && !pthread_attr_init(&a) &&
	      !pthread_attr_setstack(&a, e->stack, sizeof(e->stack)));
	for (int i = 0; i < ROUNDS / 4; i++) {
		pthread_t t;
		int status;
		pid_t pid;

		e->tid = NULL;
		pid = fork();
		if (!pid)
			wait_there(e);
		CHECK(pid > 0 && !pthread_create(&t, &a, end_slowly, e));
		number++;
		CHECK(waitpid(pid, &status, 0) == pid && !status && !pthread_join(t, NULL));
		say("heard", i);
	}
}

/* --- files of libc's own ------------------------------------------------------------------ */

static bool other;	/* this is another build */

static void *look_and_sleep(void *arg)
{
	char some[64];
	int fd = other ? -1 : open("/sys/devices/system/cpu/online", O_RDONLY);

	if (!other)
		CHECK(fd >= 0 && read(fd, some, sizeof(some)) > 0 && !close(fd));
	say("woken", futex(&word, FUTEX_WAIT_PRIVATE, 0));
	return arg;
}

static void files_private(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t t;

		CHECK(!pthread_create(&t, NULL, look_and_sleep, NULL));
		usleep(200);
		word = 1;
		say("wakes", futex(&word, FUTEX_WAKE_PRIVATE, 1));
		CHECK(!pthread_join(t, NULL));
		word = 0;
	}
}

/* --- who registers, and who is told ------------------------------------------------------- */

static int set;
static atomic_int came;

static uint64_t data_of(int i)
{
	return (other ? 2ull << 32 : 1ull << 32) + (uint64_t)i;
}

static void *hear(void *arg)
{
	struct epoll_event e;

	for (int i = 0; i < ROUNDS; i++) {
		CHECK(epoll_wait(set, &e, 1, -1) == 1 && e.data.u64 == data_of(i));
		number++;
		say("heard", i);
		atomic_store(&came, i + 1);
	}
	return arg;
}

/* The other build is late: it has yet to register what the leader's has been told of. */
static void registered(void)
{
	int fd = eventfd(1, 0);
	pthread_t t;

	set = epoll_create1(0);
	CHECK(fd >= 0 && set >= 0 && !pthread_create(&t, NULL, hear, NULL));
	for (int i = 0; i < ROUNDS; i++) {
		struct epoll_event e = { EPOLLIN | EPOLLONESHOT, { .u64 = data_of(i) } };

		usleep(200);
		for (volatile int n = 0; other && n < 1000000; n++)
			;
		CHECK(!epoll_ctl(set, i ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &e));
		while (atomic_load(&came) <= i)
			usleep(200);
	}
	CHECK(!pthread_join(t, NULL) && !close(set) && !close(fd));
}

/* --- who waits for the monitor ------------------------------------------------------------ */

static bool tells;

/* The other build is late: it asks what the new code is when its leader has gone on. */
static void *map_code(void *arg)
{
	int fd = open("/bin/true", O_RDONLY);

	for (volatile long n = 0; other && n < 200000000; n++)
		;
	CHECK(fd >= 0 && mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED);
	number++;
	if (tells)
		puts("mapped"), fflush(stdout);
	CHECK(!close(fd));
	return arg;
}

static void code_comes(void)
{
	pthread_t t;

	CHECK(!pthread_create(&t, NULL, map_code, NULL));
	for (int i = 0; i < ROUNDS; i++) {
		usleep(200);
		say("works", i);
	}
	CHECK(!pthread_join(t, NULL));
}

int main(int count, char **words)
{
	static const struct {
		const char *name;
		void (*part)(void);
	} parts[] = {
		{ "write", write_waits }, { "signal", signals_come }, { "spawn", program_begins },
		{ "yield", one_yields }, { "wake", wakes_tell }, { "waitv", many_wait },
		{ "clock", clock_spins }, { "children", children_come },
		{ "ends", ends_are_heard }, { "elsewhere", ends_elsewhere },
		{ "private", files_private }, { "registered", registered },
		{ "code", code_comes },
	};

	null = open("/dev/null", O_WRONLY);
	CHECK(null >= 0);
	other = count > 2 && !strcmp(words[2], "other");
	tells = count > 2;
	for (size_t i = 0; i < COUNT(parts); i++)
		if (count < 2 || !strcmp(words[1], parts[i].name))
			among(parts[i].part);
	return passed("in_turns");
}
