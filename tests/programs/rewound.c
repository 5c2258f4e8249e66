/*
 * Answers lines, and says of each what it finds in a word of its memory, which nothing in it
 * ever changes, one of its own or in memory that processes share: `rewound [THREADS [LINE [shared]]]`.  With THREADS the lines are answered by so many
 * threads, in turn; from the LINE-th on it says something else, as another build would.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile uint32_t own, *word = &own;
static long differs_at;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long lines, threads;

static void answer(long line, long who)
{
	char text[80];
	int n;

	if (*word > 1)
		*(volatile uint32_t *)(uintptr_t)*word = 0;
	n = snprintf(text, sizeof(text), "line %ld by %ld: %u%s\n", line, who, *word,
		     differs_at && line >= differs_at ? " else" : "");

	if (write(1, text, (size_t)n) != n)
		exit(1);
}

static void *work(void *arg)
{
	long me = (long)arg, line = me + 1;

	for (;; line += threads) {
		pthread_mutex_lock(&mutex);
		while (lines < line)
			pthread_cond_wait(&changed, &mutex);
		answer(line, me);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;
	char byte;

	threads = argc > 1 ? atol(argv[1]) : 0;
	differs_at = argc > 2 ? atol(argv[2]) : 0;
	if (argc > 3)
		word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	dprintf(1, "word at %p\n", (void *)word);
	for (long i = 0; i < threads; i++)
		if (pthread_create(&t, NULL, work, (void *)i))
			return 1;
	while (read(0, &byte, 1) == 1) {
		if (byte != '\n')
			continue;
		pthread_mutex_lock(&mutex);
		lines++;
		if (!threads)
			answer(lines, 0);
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&mutex);
	}
	return 0;
}
