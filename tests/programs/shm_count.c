/*
 * A System V segment with a key, and a memfd: whoever runs this counts once, so a
 * second count in the leader's memory is a follower's.
 */
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	key_t key = 0x6d760000 + (getpid() & 0xffff);
	int id = shmget(key, 4096, IPC_CREAT | 0600), fd = memfd_create("count", 0), status;
	int *n = id < 0 ? (void *)-1 : shmat(id, NULL, 0), *m;

	if (n == (void *)-1 || fd < 0 || ftruncate(fd, 4096))
		return 1;
	m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m == MAP_FAILED)
		return 2;
	if (!fork()) {
		__atomic_fetch_add(n, 1, __ATOMIC_SEQ_CST);
		_exit(0);
	}
	wait(&status);
	usleep(100000);		/* a follower would count by now */
	*m += 1;
	printf("shm %d, memfd %d\n", *n, *m);
	shmctl(id, IPC_RMID, NULL);
	puts(*n == 1 && *m == 1 && !shmdt(n) ? "shm_count: ok" : "shm_count: wrong");
	return 0;
}
