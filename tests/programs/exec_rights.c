/*
 * Programs that have other rights than who executes them: root that gave up a capability gets
 * it back by an execve, and a program that is root's by its file is executed by somebody
 * else.  Each is as held as who executed it, its end is its parent's to see, and what it
 * does counts; an execve that fails changes nothing.
 */
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "check.h"

#define NOBODY		65534
#define TIMES		20

static char self[PATH_MAX];
/* In the run's own folder, which goes with it: a follower may execute it long after us. */
static const char copy[] = "exec_rights.copy";

static void capability_drop(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];

	CHECK_EQ(syscall(SYS_capget, &head, data), 0);
	data[0].permitted &= ~(1u << CAP_NET_RAW);
	data[0].effective = data[0].permitted;
	CHECK_EQ(syscall(SYS_capset, &head, data), 0);
}

static bool capability_is(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];

	CHECK_EQ(syscall(SYS_capget, &head, data), 0);
	return data[0].permitted >> CAP_NET_RAW & 1;
}

/* Of the code that is mapped what has no path: the program is held, or it is not. */
static char is_held(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[PATH_MAX + 100];
	bool held = false;

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		held |= strstr(line, "mve-inside") != NULL;
	fclose(f);
	return held ? 'y' : 'n';
}

static void execute(const char *program, const char *what)
{
	char held[2] = { is_held() };

	execl(program, program, what, held, NULL);
	check_failed(__FILE__, __LINE__, what);
}

/* The program that was executed. */
static int program(const char *what, char held)
{
	CHECK_EQ(is_held(), held);
	if (!strcmp(what, "root")) {
		CHECK_EQ(getuid(), NOBODY);
		CHECK_EQ(geteuid(), 0);
	} else {
		CHECK(capability_is());
	}
	if (!strcmp(what, "again")) {
		capability_drop();
		execute("/proc/self/exe", "back");
	}
	CHECK_EQ(write(1, what, strlen(what)), (long)strlen(what));
	CHECK_EQ(write(1, "\n", 1), 1);
	return 7;
}

static void child(const char *path, const char *what)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (!pid) {
		capability_drop();
		CHECK(!capability_is());
		CHECK_FAILS(execl("/nowhere/at/all", "none", NULL), ENOENT);
		CHECK_FAILS(execl("/", "none", NULL), EACCES);
		if (!strcmp(what, "root")) {
			CHECK_EQ(setgid(NOBODY), 0);
			CHECK_EQ(setuid(NOBODY), 0);
		}
		execute(path, what);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 7 << 8);
}

static void copy_make(void)
{
	static char buf[1 << 16];
	int from = open(self, O_RDONLY), to;
	ssize_t n;

	CHECK_EQ(chmod(".", 0755), 0);
	unlink(copy);
	to = open(copy, O_WRONLY | O_CREAT | O_EXCL, 0755);
	CHECK(from >= 0 && to >= 0);
	while ((n = read(from, buf, sizeof(buf))) > 0)
		CHECK_EQ(write(to, buf, (size_t)n), n);
	CHECK_EQ(fchmod(to, 04755), 0);
	close(from);
	close(to);
}

int main(int argc, char **argv)
{
	struct statvfs fs;

	if (argc == 3)
		return program(argv[1], argv[2][0]);
	CHECK(realpath("/proc/self/exe", self));
	if (!capability_is())
		skip("needs CAP_NET_RAW");
	CHECK_EQ(statvfs(".", &fs), 0);
	if (fs.f_flag & ST_NOSUID)
		skip("no setuid programs here");
	copy_make();
	for (int i = 0; i < TIMES; i++) {
		child(self, "back");
		child(self, "again");
		child(copy, "root");
	}
	capability_drop();
	CHECK(!capability_is());
	return passed("exec_rights");
}
