/*
 * System V segments that are attached well and badly, again and elsewhere, by a child that
 * did not find them attached, and more of them than anybody keeps.  Each result is printed.
 */
#include <sys/shm.h>

#include "tests/programs/check.h"

#define MANY	80

static void said(const char *call, long result)
{
	printf("%s: %s %d\n", call, result == -1 ? "fails" : "ok", result == -1 ? errno : 0);
	fflush(stdout);
}

#define SAID(call) said(#call, (long)(call))

static void fails(int id)
{
	char *at;

	SAID(shmat(id + 1234567, NULL, 0));
	SAID(shmat(id, (void *)1, 0));
	SAID(shmdt((void *)0x1000));
	at = shmat(id, NULL, 0);
	SAID(shmdt(at + 1));
	SAID(shmdt(at));
	SAID(shmdt(at));
}

static void twice(int id)
{
	char *at = shmat(id, NULL, 0), *again = shmat(id, NULL, SHM_RDONLY);
	struct shmid_ds ds;

	CHECK(at != again && again != (void *)-1);
	strcpy(at, "hello");
	CHECK(!strcmp(again, "hello") && !shmctl(id, IPC_STAT, &ds));
	printf("attached: %ld\n", (long)ds.shm_nattch);
	CHECK(!shmctl(id, IPC_RMID, NULL));
	SAID(shmdt(at));
	CHECK(!strcmp(again, "hello"));
	SAID(shmdt(again));
	SAID(shmat(id, NULL, 0));
}

static void child(int id)
{
	char *at;

	if (!fork()) {
		at = shmat(id, NULL, 0);
		strcpy(at, "the child was here");
		_exit(shmdt(at));
	}
	wait(NULL);
	at = shmat(id, NULL, 0);
	printf("child: %s\n", at);
	CHECK(!shmdt(at));
}

static void placed(int id)
{
	char *free_at = mmap(NULL, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at;

	CHECK(!munmap(free_at, 1 << 16));
	at = shmat(id, free_at + 0x1234, SHM_RND);
	CHECK_EQ(at, free_at + 0x1000);
	SAID(shmat(id, at, 0));
	CHECK_EQ(shmat(id, at, SHM_REMAP), at);
	strcpy(at, "placed");
	CHECK(!shmdt(at));
}

static void many(void)
{
	for (int i = 0; i < MANY; i++) {
		int id = shmget(IPC_PRIVATE, 4096, 0600);
		char *at = shmat(id, NULL, 0);

		CHECK(at != (void *)-1 && !shmctl(id, IPC_RMID, NULL));
		at[4095] = (char)i;
		CHECK(!shmdt(at));
	}
}

int main(void)
{
	int id = shmget(IPC_PRIVATE, 8192, 0600), other = shmget(IPC_PRIVATE, 10000, 0600);

	CHECK(id >= 0 && other >= 0);
	fails(id);
	child(other);
	placed(other);
	twice(id);
	many();
	CHECK(!shmctl(other, IPC_RMID, NULL));
	return passed("segments");
}
