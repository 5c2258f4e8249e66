/*
 * What libc writes of the program's own goes back: globals and blocks that it is given, by whatever
 * name the headers call the function (built with _FORTIFY_SOURCE they are others).
 */
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <regex.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>
#include <mve/checkpoint.h>

#define ROOM	1024

/* All that is written lies here, or in a block of the heap. */
static union {
	char text[ROOM];
	struct {
		char begin[300];
		int number;
		double real;
		char word[40];
		char *string;
		struct addrinfo *addresses;
		struct itimerval timer;
		struct tm date;
		regmatch_t match[3];
		sem_t free;
		pthread_spinlock_t latch;
		eventfd_t events;
		struct tms times;
	};
} all;

static char was[ROOM], *block, block_was[100];
static volatile size_t some = 30;
static const char *volatile from = "a text that is not short, and has words";
static volatile int which;

static void copied(void)
{
	switch (which++) {
	case 0: memcpy(all.text, from, some); break;
	case 1: memmove(all.text, all.text + 1, some); break;
	case 2: mempcpy(all.text, from, some); break;
	case 3: memset(all.text, 'x', some); break;
	case 4: strcpy(all.text, from); break;
	case 5: stpcpy(all.text, from); break;
	case 6: strncpy(all.text, from, some); break;
	case 7: stpncpy(all.text, from, some); break;
	case 8: strcat(all.text, from); break;
	default: strncat(all.text, from, some);
	}
}

static void printed(void)
{
	snprintf(all.text, some, "%s", from);
	sprintf(all.word, "%zu", some);
	if (asprintf(&all.string, "%s", from) < 0)
		exit(1);
}

static void scanned(void)
{
	if (sscanf("7 2.5 word", "%d %lf %39s", &all.number, &all.real, all.word) != 3 ||
	    sscanf("and", "%s", block) != 1)
		exit(1);
}

static void split(void)
{
	char *rest;

	strtok(all.text, " ");
	if (!strtok_r(block, " ", &rest) || !strptime("12:30", "%H:%M", &all.date))
		exit(1);
}

static void matched(void)
{
	regex_t is;

	if (regcomp(&is, "t(e)xt", REG_EXTENDED) || regexec(&is, from, 3, all.match, 0))
		exit(1);
	regfree(&is);
}

static void by_kernel(void)
{
	int fd = eventfd(5, 0);

	if (eventfd_read(fd, &all.events) || getitimer(ITIMER_REAL, &all.timer) ||
	    times(&all.times) == (clock_t)-1 ||
	    readlinkat(AT_FDCWD, "/proc/self/exe", all.word, sizeof(all.word)) < 0)
		exit(1);
	close(fd);
}

static void read_in(void)
{
	FILE *file = fmemopen((char *)from, 20, "r");

	if (!file || fread(all.text, 1, some, file) != 20)
		exit(1);
	fclose(file);
}

static void locked(void)
{
	if (sem_trywait(&all.free) || pthread_spin_lock(&all.latch))
		exit(1);
}

static void named(void)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST };

	if (getaddrinfo("127.0.0.1", NULL, &hints, &all.addresses))
		exit(1);
}

static __attribute__((noinline)) void taken_back(const char *name, void (*writes)(void))
{
	int got = mve_checkpoint_open();

	if (got < 0 || (got == 1 && (memcmp(was, all.text, ROOM) || memcmp(block_was, block, 100)))) {
		printf("%s: not as it was: %s\n", name, mve_checkpoint_why());
		exit(1);
	}
	if (got == 1)
		return;
	writes();
	mve_checkpoint_restore();
}

int main(void)
{
	block = strcpy(calloc(1, 100), "some words");
	strcpy(all.text, "as it was");
	sem_init(&all.free, 0, 2);
	pthread_spin_init(&all.latch, 0);
	memset(&all.timer, 1, sizeof(all.timer));
	memset(&all.times, 1, sizeof(all.times));
	memcpy(was, all.text, ROOM);
	memcpy(block_was, block, 100);
	for (int n = 0; n < 10; n++) {
		which = n;
		taken_back("copied", copied);
	}
	taken_back("printed", printed);
	taken_back("scanned", scanned);
	taken_back("split", split);
	taken_back("matched", matched);
	taken_back("by the kernel", by_kernel);
	taken_back("read in", read_in);
	taken_back("locked", locked);
	taken_back("named", named);
	puts("written: ok");
}
