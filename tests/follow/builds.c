/*
 * A program whose builds differ in where they lie: memory of all kinds, a thread, a file,
 * what it finds in its environment.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char zeroed[100000], data[] = "data";

static void *other(void *arg)
{
	char *large = malloc(1 << 20);

	memset(large, 7, 1 << 20);
	snprintf(arg, 100, "%d %s", large[12345], data);
	free(large);
	return NULL;
}

int main(int argc, char **argv)
{
	char said[100], *small[100];
	pthread_t thread;
	struct stat st;

	for (int i = 0; i < 100; i++)
		memset(small[i] = malloc(100 + 100 * i), i, 100);
	pthread_create(&thread, NULL, other, said);
	pthread_join(thread, NULL);
	stat("/", &st);
	printf("%s %s %d %d %d\n", argc > 1 ? argv[1] : "", said, small[99][50],
	       zeroed[99999], getenv("HOME") != NULL);
	fflush(stdout);
	usleep(50000);
	printf("and on\n");
	return 5;
}
