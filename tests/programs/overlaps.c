/*
 * Two threads that agree by plain memory: `overlaps LOOPS`.  For each line one takes a lock,
 * computes for so long, and says whether the other has set a flag meanwhile, between two lines
 * of its own.  Whoever computes for another time finds another value, unless what the thread
 * does between its lock and its line is done as late as it can have been.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_US	5000

static volatile int flag;
static long loops;

static void say(const char *text)
{
	if (write(1, text, strlen(text)) < 0)
		exit(1);
}

static void *look(void *arg)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	for (volatile long i = 0; i < loops; i++)
		;
	say(flag ? "seen\n" : "not seen\n");
	return arg;
}

int main(int argc, char **argv)
{
	char line[80];

	loops = argc > 1 ? atol(argv[1]) : 0;
	say("begun\n");
	while (read(0, line, sizeof(line)) > 0) {
		pthread_t thread;

		flag = 0;
		if (pthread_create(&thread, NULL, look, NULL))
			return 1;
		usleep(FIRST_US);
		say("sets it\n");
		flag = 1;
		say("has set it\n");
		pthread_join(thread, NULL);
		say("over\n");
	}
	return 0;
}
