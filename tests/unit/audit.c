/*
 * The witness counts what it must, where it must, and nothing else.
 *
 * Each test starts a child that stops itself, adds it to the witness, and lets
 * it make known numbers of calls from three `syscall` instructions of our own:
 * they stand for the gate's two and the inside's.  Numbers differ by place, so
 * that libc's own calls of the child do not matter.  Needs CAP_BPF and
 * CAP_PERFMON; without them each test is skipped, and says so.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "engine/outside/monitor/audit.h"

#define I386_GETPID	20
#define VSYSCALL_TIME	0xffffffffff600400ul

#define SITE(name) \
	long name(long nr); \
	extern const char name##_insn[], name##_end[]; \
	__asm__(".text\n" #name ": mov %rdi, %rax\n" \
		#name "_insn: syscall\n" #name "_end: ret\n")

SITE(site_gate);
SITE(site_net);
SITE(site_own);

static struct audit *audit;
static struct audit_counts counts;

static void times(int n, long (*site)(long), long nr)
{
	while (n-- > 0)
		site(nr);
}

static struct audit_span span(const char *start, const char *end)
{
	return (struct audit_span){ (uintptr_t)start, (uintptr_t)end };
}

static void hold(pid_t pid)
{
	struct audit_ranges ranges = { .span = {
		[AUDIT_GATE] = span(site_gate_insn, site_gate_end),
		[AUDIT_NET] = span(site_net_insn, site_net_end),
		[AUDIT_OWN] = span(site_own_insn, site_own_end),
	} };

	cr_assert_eq(audit_set_image(audit, pid, &ranges), 0);
}

/* A child that has stopped itself before body(). */
static pid_t start(void (*body)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		raise(SIGSTOP);
		body();
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	cr_assert(WIFSTOPPED(status));
	return pid;
}

/* Lets it run to its next stop or its end; its status. */
static int run(pid_t pid)
{
	int status;

	kill(pid, SIGCONT);
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	return status;
}

static pid_t start_held(void (*body)(void))
{
	pid_t pid = start(body);

	cr_assert_eq(audit_add(audit, pid, NULL), 0);
	hold(pid);
	return pid;
}

static uint64_t counted(int where, long nr)
{
	return counts.n[where][nr + 1];
}

static void look(void)
{
	cr_assert_eq(audit_read(audit, &counts), 0);
	cr_expect_eq(counts.missed, 0);
	cr_expect_eq(counts.lost, 0);
}

static void set_up(void)
{
	audit = audit_open();
	if (!audit && (errno == EPERM || errno == ENOTSUP))
		cr_skip_test("%s", audit_why());
	cr_assert_not_null(audit, "%s", audit_why());
}

static void tear_down(void)
{
	audit_close(audit);
}

TestSuite(audit, .init = set_up, .fini = tear_down, .timeout = 30);

static void three_places(void)
{
	times(5, site_gate, SYS_getppid);
	raise(SIGSTOP);
	times(1000, site_gate, SYS_getppid);
	times(200, site_net, SYS_getuid);
	times(30, site_own, SYS_getgid);
	for (int i = 0; i < 7; i++)
		geteuid();
	site_gate(-1);
	site_gate(AUDIT_SLOTS + 100);
}

Test(audit, counts_by_place)
{
	pid_t pid = start(three_places);

	cr_assert_eq(audit_add(audit, pid, NULL), 0);
	cr_assert(WIFSTOPPED(run(pid)));
	hold(pid);
	cr_assert_eq(run(pid), 0);
	look();
	cr_expect_eq(counted(AUDIT_BEFORE, SYS_getppid), 5);
	cr_expect_eq(counted(AUDIT_GATE, SYS_getppid), 1000);
	cr_expect_eq(counted(AUDIT_NET, SYS_getuid), 200);
	cr_expect_eq(counted(AUDIT_OWN, SYS_getgid), 30);
	cr_expect_eq(counted(AUDIT_ELSEWHERE, SYS_geteuid), 7);
	cr_expect_eq(counted(AUDIT_GATE, -1), 2, "unknown numbers share slot 0");
	cr_expect_eq(counts.total[AUDIT_GATE], 1002);
	cr_expect_eq(counts.total[AUDIT_COMPAT], 0);
}

static void fork_twice(void)
{
	for (int i = 0; i < 2; i++)
		if (!fork())
			times(300, site_gate, SYS_getppid);
	while (wait(NULL) > 0)
		;
}

Test(audit, children_inherit)
{
	pid_t pid = start_held(fork_twice);

	cr_assert_eq(run(pid), 0);
	look();
	cr_expect_eq(counted(AUDIT_GATE, SYS_getppid), 300 + 2 * 300,
		     "two children, and one grandchild of the first");
}

static void *in_thread(void *arg)
{
	times(400, site_net, SYS_getuid);
	return arg;
}

static void with_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, in_thread, NULL);
	pthread_join(thread, NULL);
	times(100, site_net, SYS_getuid);
}

Test(audit, threads_share)
{
	pid_t pid = start_held(with_thread);

	cr_assert_eq(run(pid), 0);
	look();
	cr_expect_eq(counted(AUDIT_NET, SYS_getuid), 500);
}

/* The leader's death is not the process's. */
static void *outlives(void *arg)
{
	usleep(50000);
	times(50, site_gate, SYS_getppid);
	exit(0);
	return arg;
}

static void leader_leaves(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, outlives, NULL);
	pthread_exit(NULL);
}

Test(audit, last_thread_ends_it)
{
	pid_t pid = start_held(leader_leaves);

	cr_assert_eq(run(pid), 0);
	look();
	cr_expect_eq(counted(AUDIT_GATE, SYS_getppid), 50);
}

static void exec_true(void)
{
	execl("/bin/true", "true", NULL);
}

Test(audit, exec_is_before)
{
	pid_t pid = start_held(exec_true);

	cr_assert_eq(run(pid), 0);
	look();
	cr_expect_eq(counted(AUDIT_ELSEWHERE, SYS_execve), 1);
	cr_expect_eq(counted(AUDIT_BEFORE, SYS_exit_group), 1);
	cr_expect_eq(counted(AUDIT_ELSEWHERE, SYS_exit_group), 0);
}

static void nothing(void)
{
}

Test(audit, exit_drops)
{
	pid_t pid = start_held(nothing);
	struct audit_ranges none = { 0 };

	cr_assert_eq(run(pid), 0);
	cr_expect_eq(audit_set_image(audit, pid, &none), -ENOENT);
	cr_expect_eq(audit_drop(audit, pid), -ENOENT);
	cr_expect_eq(audit_add(audit, pid, NULL), -ESRCH);
}

Test(audit, others_are_not_counted)
{
	pid_t pid = start_held(nothing);
	pid_t other = start(three_places);

	run(other);
	run(other);
	look();
	for (int w = 0; w < AUDIT_WHERES; w++)
		cr_expect_eq(counts.total[w], 0);
	cr_expect_eq(run(pid), 0);
}

Test(audit, dropped_is_not_counted)
{
	pid_t pid = start_held(three_places);

	cr_assert(WIFSTOPPED(run(pid)));
	look();
	cr_expect_eq(counted(AUDIT_GATE, SYS_getppid), 5);
	cr_expect_eq(audit_drop(audit, pid), 0);
	cr_assert_eq(run(pid), 0);
	look();
	cr_expect_eq(counted(AUDIT_GATE, SYS_getppid), 5);
}

static void old_time(void)
{
	long (*old)(long *) = (void *)VSYSCALL_TIME;

	signal(SIGSEGV, SIG_DFL);
	old(NULL);
	old(NULL);
}

Test(audit, vsyscall_is_seen)
{
	pid_t pid = start_held(old_time);
	int status = run(pid);

	look();
	if (!counts.has_vsyscall || WIFSIGNALED(status))
		cr_skip_test("this machine has no vsyscall page");
	cr_expect_eq(counted(AUDIT_VSYSCALL, SYS_time), 2);
}

static void old_getpid(void)
{
	long result;

	signal(SIGSEGV, SIG_DFL);
	__asm__ volatile("int $0x80" : "=a"(result) : "0"(I386_GETPID)
			 : "r8", "r9", "r10", "r11", "memory");
	if (result != getpid())
		_exit(1);
}

Test(audit, int80_is_apart)
{
	pid_t pid = start_held(old_getpid);
	int status = run(pid);

	if (WIFSIGNALED(status))
		cr_skip_test("this kernel has no int 0x80");
	cr_assert_eq(status, 0);
	look();
	cr_expect_eq(counted(AUDIT_COMPAT, I386_GETPID), 1);
	cr_expect_eq(counts.total[AUDIT_COMPAT], 1);
}

static void strays(void)
{
	times(AUDIT_STRAYS, site_net, SYS_getuid);
	times(3, site_own, SYS_getgid);
}

Test(audit, strays_are_named)
{
	struct audit_stray_row row[AUDIT_STRAYS];
	struct audit_ranges none = { 0 };
	pid_t pid = start(strays);
	int got, own = 0;

	cr_assert_eq(audit_add(audit, pid, &none), 0);
	cr_assert_eq(run(pid), 0);
	got = audit_stray(audit, row, AUDIT_STRAYS);
	cr_assert_eq(got, AUDIT_STRAYS);
	for (int i = 0; i < got; i++) {
		cr_expect_eq(row[i].tgid, pid);
		cr_expect_eq(row[i].where, AUDIT_ELSEWHERE);
		if (row[i].nr == SYS_getgid)
			own += row[i].ip == (uintptr_t)site_own_insn;
	}
	cr_expect_eq(own, 3);
	cr_expect_eq(row[got - 1].nr, SYS_exit_group);
	cr_expect_eq(audit_stray(audit, row, 1), 1);
	cr_expect_eq(row[0].nr, SYS_exit_group, "the last, when few are asked");
}

static int tube[2];

static void on_signal(int sig)
{
	(void)sig;
}

static void read_tube(void)
{
	struct sigaction action = {
		.sa_handler = on_signal, .sa_flags = SA_RESTART,
	};
	char byte;

	sigaction(SIGUSR1, &action, NULL);
	_exit(read(tube[0], &byte, 1) != 1);
}

/* Until the child has entered read() and had time to sleep in it. */
static void wait_for_read(uint64_t times_entered)
{
	do {
		usleep(20000);
		look();
	} while (counted(AUDIT_ELSEWHERE, SYS_read) < times_entered);
	usleep(20000);
}

Test(audit, made_again_is_bounded)
{
	pid_t pid;
	int status;

	cr_assert_eq(pipe(tube), 0);
	pid = start_held(read_tube);
	kill(pid, SIGCONT);
	wait_for_read(1);
	kill(pid, SIGUSR1);
	wait_for_read(2);
	cr_assert_eq(write(tube[1], "x", 1), 1);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
	look();
	cr_expect_eq(counted(AUDIT_ELSEWHERE, SYS_read), 2);
	cr_expect_eq(counted(AUDIT_AGAIN, SYS_read), 1);
}
