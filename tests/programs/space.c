/*
 * A program that limits its memory: it has as much as without mve, its limits are what it has
 * set, in children and programs, too, and they end somewhere.
 */
#include <sys/resource.h>
#include "check.h"

#define MIB		(1ul << 20)
#define SPACE		(96 * MIB)
#define SPACE_HARD	(160 * MIB)
#define SPACE_CHILD	(80 * MIB + 512)
#define DATA		(48 * MIB)

static void limit_check(int which, rlim_t now, rlim_t max)
{
	struct rlimit l = { 1, 1 };

	CHECK_EQ(getrlimit(which, &l), 0);
	CHECK_EQ(l.rlim_cur, now);
	CHECK_EQ(l.rlim_max, max);
	CHECK_EQ(prlimit(getpid(), which, NULL, &l), 0);
	CHECK_EQ(l.rlim_cur, now);
	CHECK_EQ(l.rlim_max, max);
}

static void room_check(size_t room, size_t too_much)
{
	void *at = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	CHECK_EQ(munmap(at, room), 0);
	at = mmap(NULL, too_much, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(at == MAP_FAILED && errno == ENOMEM);
}

static void ended_well(pid_t pid)
{
	int status;

	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static void child_check(void)
{
	pid_t pid = fork();

	if (!pid) {
		limit_check(RLIMIT_AS, SPACE, SPACE_HARD);
		room_check(SPACE / 2, 2048 * MIB);
		_exit(0);
	}
	ended_well(pid);
}

/* A vfork's child sets a limit of its own for the program that it starts. */
static void program_check(char *self)
{
	struct rlimit l = { SPACE_CHILD, SPACE_HARD };
	pid_t pid = vfork();

	if (!pid) {
		setrlimit(RLIMIT_AS, &l);
		execl(self, self, "begun", NULL);
		_exit(1);
	}
	ended_well(pid);
	limit_check(RLIMIT_AS, SPACE, SPACE_HARD);
}

int main(int argc, char **argv)
{
	struct rlimit space = { SPACE, SPACE_HARD }, data = { DATA, RLIM_INFINITY }, was;

	if (argc > 1) {
		limit_check(RLIMIT_AS, SPACE_CHILD, SPACE_HARD);
		room_check(SPACE_CHILD / 2, 2048 * MIB);
		return 0;
	}
	CHECK_EQ(setrlimit(RLIMIT_AS, &space), 0);
	limit_check(RLIMIT_AS, SPACE, SPACE_HARD);
	room_check(SPACE / 2, 2048 * MIB);
	child_check();
	program_check(argv[0]);
	CHECK_EQ(prlimit(0, RLIMIT_DATA, &data, &was), 0);
	CHECK_EQ(was.rlim_cur, RLIM_INFINITY);
	limit_check(RLIMIT_DATA, DATA, RLIM_INFINITY);
	room_check(DATA / 2, 2 * DATA);
	space.rlim_cur = SPACE_HARD;
	CHECK_EQ(setrlimit(RLIMIT_AS, &space), 0);
	limit_check(RLIMIT_AS, SPACE_HARD, SPACE_HARD);
	return passed("space");
}
