/*
 * Ordinary work for a sanitizer's runtime to watch: heap, threads, signals,
 * fork, files.  Built once with each sanitizer; `sanitized bad` does what
 * that one must report.
 */
#include <pthread.h>
#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long total, racing;
static volatile sig_atomic_t handled;

static void handler(int sig)
{
	handled++;
}

static void *work(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		char *p = malloc(i + 1);
		memset(p, i, i + 1);
		pthread_mutex_lock(&mutex);
		total += (unsigned char)p[i];
		pthread_mutex_unlock(&mutex);
		free(p);
	}
	return NULL;
}

UNUSED static void *race(void *arg)
{
	for (int i = 0; i < 100000; i++)
		racing++;
	return NULL;
}

static void in_threads(void *(*fn)(void *))
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, fn, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void child(void)
{
	char *p = malloc(100);

	p[99] = 1;
	free(p);
}

static void files(void)
{
	char text[64] = "";
	FILE *f = fopen("sanitized.txt", "w+");

	CHECK(f && fprintf(f, "some %s\n", "text") == 10);
	rewind(f);
	CHECK(fgets(text, sizeof(text), f));
	CHECK(!strcmp(text, "some text\n"));
	fclose(f);
	unlink("sanitized.txt");
}

static void misbehave(int by)
{
	volatile int *p = malloc(4 * sizeof(int));
	UNUSED int index = 4 + by;

#if defined(__SANITIZE_ADDRESS__)
	p[index] = 1;
#elif defined(__SANITIZE_THREAD__)
	in_threads(race);
#elif defined(UNDEFINED)
	printf("%d\n", (INT_MAX - index) + 2 * index);
#elif defined(__clang__)
	if (p[index - 3])
		printf("a choice by an unknown value\n");
#endif
	free((void *)p);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		misbehave(argc - 2);
		return passed("sanitized");
	}
	on_signal(SIGUSR1, handler, SA_RESTART);
	for (int i = 0; i < 100; i++)
		raise(SIGUSR1);
	CHECK_EQ(handled, 100);
	in_threads(work);
	CHECK_EQ(total, 4 * (3 * 32640 + 26796));
	for (int i = 0; i < 5; i++)
		IN_CHILD(child);
	files();
	return passed("sanitized");
}
