/*
 * Processes that give up root in different ways, and go on: each with calls of its own,
 * children, threads, programs, and what its parent is told by a pipe.  As another user it
 * makes the same calls, which fail.
 */
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.h"

#define OTHER	65534

static int out;

static void say(const char *what)
{
	dprintf(out, "%s: %d %d %d %d\n", what, (int)getuid(), (int)geteuid(), (int)getgid(),
		(int)getegid());
}

static void *work(void *arg)
{
	for (int i = 0; i < 50; i++)
		dprintf(out, "%s %d\n", (const char *)arg, i);
	return arg;
}

static void give_up(int id)
{
	if (setgroups(0, NULL) || setresgid(OTHER, OTHER, OTHER) ||
	    setresuid((uid_t)id, (uid_t)id, (uid_t)id))
		say("stays");
}

static void plain(void)
{
	give_up(OTHER);
	say("plain");
	work("plain");
}

static void begets(void)
{
	pid_t child;

	give_up(OTHER);
	child = fork();
	if (!child) {
		work("grandchild");
		_exit(0);
	}
	CHECK(waitpid(child, NULL, 0) == child);
	say("begets");
}

static void threads(void)
{
	pthread_t t[3];

	give_up(OTHER - 1);
	for (int i = 0; i < 3; i++) {
		CHECK(!pthread_create(&t[i], NULL, work, "thread"));
		CHECK(!pthread_join(t[i], NULL));
	}
	say("threads");
}

static void program(void)
{
	give_up(OTHER);
	dup2(out, 1);
	execl("/bin/sh", "sh", "-c", "echo program; /bin/true; echo $?", NULL);
	_exit(1);
}

/* As servers do that give up all they can. */
static void no_files(void)
{
	struct rlimit none;

	CHECK(!getrlimit(RLIMIT_NOFILE, &none));
	none.rlim_cur = 0;
	CHECK(!setrlimit(RLIMIT_NOFILE, &none));
	give_up(OTHER);
	CHECK(!getrlimit(RLIMIT_NOFILE, &none) && !none.rlim_cur);
	CHECK(dup(0) < 0 && errno == EMFILE);
	work("without files");
}

/* To and fro: it may become root again. */
static void toggles(void)
{
	for (int i = 0; i < 5; i++) {
		if (seteuid(OTHER))
			say("stays");
		say("less");
		if (seteuid(0))
			say("stays");
		say("more");
	}
}

static void by_capset(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { 0, 0, 0 } };

	if (syscall(SYS_capset, &head, data))
		say("stays");
	say("capset");
	work("capset");
}

static void kept_caps(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, getpid() };
	struct __user_cap_data_struct data[2] = { { 1 << CAP_NET_BIND_SERVICE,
						    1 << CAP_NET_BIND_SERVICE, 0 } };

	CHECK(!prctl(PR_SET_KEEPCAPS, 1));
	give_up(OTHER);
	say("keeps");
	if (syscall(SYS_capset, &head, data))
		say("stays");
	work("less than that");
}

static void *gives_up(void *arg)
{
	give_up(OTHER);
	return work(arg);
}

/* All threads at once, as libc does it; and a program behind that. */
static void many(void)
{
	pthread_t t;
	pid_t child;

	CHECK(!pthread_create(&t, NULL, gives_up, "many"));
	CHECK(!pthread_join(t, NULL));
	say("many");
	child = fork();
	if (!child)
		program();
	CHECK(waitpid(child, NULL, 0) == child);
}

static void shares(void)
{
	pid_t child = vfork();

	if (!child) {
		syscall(SYS_setuid, OTHER);
		_exit(0);
	}
	CHECK(waitpid(child, NULL, 0) == child);
	say("shares");
}

static void killed(void)
{
	give_up(OTHER - 2);
	work("killed");
	raise(SIGKILL);
}

static void run(void (*what)(void))
{
	int status;
	pid_t child;

	CHECK((child = fork()) >= 0);
	if (!child) {
		what();
		_exit(3);
	}
	CHECK(waitpid(child, &status, 0) == child);
	printf("%x\n", status);
}

int main(void)
{
	void (*const all[])(void) = { plain, begets, threads, program, no_files, toggles,
				      by_capset, kept_caps, many, shares, killed };
	char text[100];
	FILE *in;
	int p[2];

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		CHECK(!pipe(p));
		CHECK(fcntl(p[1], F_SETPIPE_SZ, 1 << 20) > 0);
		out = p[1];
		fflush(stdout);
		run(all[i]);
		close(p[1]);
		CHECK((in = fdopen(p[0], "r")));
		while (fgets(text, sizeof(text), in))
			fputs(text, stdout);
		fclose(in);
	}
	return passed("rights");
}
