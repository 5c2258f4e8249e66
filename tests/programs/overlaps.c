/*
 * Two threads that agree by plain memory: `overlaps WAITS`.  For each line one takes a lock and
 * says, between two lines of the other, whether that has set a flag: as it was when it had taken
 * the lock where the line begins with `e`, else as it is when it has waited for it, if WAITS is
 * not 0.  Who does not wait finds that only if what a thread does between two calls is done as
 * late, or as early, as it can have been.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_US	5000

static volatile int begun, flag;
static int waits, early;

static void say(const char *text)
{
	if (write(1, text, strlen(text)) < 0)
		exit(1);
}

static void *look(void *arg)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	int seen;

	begun = 1;
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	seen = flag;
	while (waits && !flag)
		;
	say((early ? seen : flag) ? "seen\n" : "not seen\n");
	return arg;
}

int main(int argc, char **argv)
{
	char line[80];

	waits = argc > 1 && atoi(argv[1]);
	say("begun\n");
	while (read(0, line, sizeof(line)) > 0) {
		pthread_t thread;

		begun = flag = 0;
		early = line[0] == 'e';
		if (pthread_create(&thread, NULL, look, NULL))
			return 1;
		while (!begun)
			;
		usleep(FIRST_US);
		say("sets it\n");
		flag = 1;
		say("has set it\n");
		pthread_join(thread, NULL);
		say("over\n");
	}
	return 0;
}
