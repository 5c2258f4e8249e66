/*
 * A server whose threads hold mutexes that name their owner to the kernel, since before another
 * version leads: owners PORT.  Each line is a word, and is answered in a line:
 *
 *    end      the thread that holds a robust mutex ends: what the next one to lock it is told
 *    kill     the same of a process that kills itself, and of memory that both share
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lines.h"

struct mutex {
	pthread_mutex_t mutex;
	sem_t held, end;
};

static struct mutex *ended, *killed;
static pthread_t holder;
static pid_t child;

static struct mutex *make(void)
{
	struct mutex *m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (m == MAP_FAILED || pthread_mutex_init(&m->mutex, &attr) || sem_init(&m->held, 1, 0) ||
	    sem_init(&m->end, 1, 0))
		exit(1);
	return m;
}

static void *hold(void *arg)
{
	struct mutex *m = arg;

	pthread_mutex_lock(&m->mutex);
	sem_post(&m->held);
	while (sem_wait(&m->end))
		;
	return NULL;
}

static void serve(FILE *peer)
{
	char line[64];

	while (fgets(line, sizeof(line), peer)) {
		struct mutex *m = *line == 'e' ? ended : killed;
		int got;

		sem_post(&m->end);
		if (m == ended)
			pthread_join(holder, NULL);
		else
			waitpid(child, NULL, 0);
		got = pthread_mutex_lock(&m->mutex);
		fprintf(peer, "%s\n", got ? strerror(got) : "nobody held it");
		pthread_mutex_consistent(&m->mutex);
		pthread_mutex_unlock(&m->mutex);
	}
}

int main(int argc, char **argv)
{
	ended = make();
	killed = make();
	child = fork();
	if (!child) {
		hold(killed);
		raise(SIGKILL);
	}
	if (pthread_create(&holder, NULL, hold, ended))
		return 1;
	sem_wait(&ended->held);
	sem_wait(&killed->held);
	return lines_serve(argv[argc - 1], serve);
}
