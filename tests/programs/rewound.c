/*
 * Answers lines, and says of each what it finds in a word of its memory, which nothing in it
 * ever changes, one of its own or in memory that processes share:
 * `rewound [THREADS [LINE [shared|forks]]]`.  With THREADS the lines are answered by so many
 * threads, or processes, in turn; from the LINE-th on it says something else, as another
 * build would.  Where it finds LOCKS it says nothing, but takes two locks in another order.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* At one place in builds of each kind. */
#define WORD_AT	((void *)0x20000000)

static volatile uint32_t *word;
static long differs_at;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long lines, threads;

#define LOCKS	2

/* Whoever answers holds `mutex`. */
static void locks_take(int first)
{
	static pthread_mutex_t lock[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };

	pthread_mutex_lock(&lock[first]);
	pthread_mutex_lock(&lock[!first]);
	pthread_mutex_unlock(&lock[!first]);
	pthread_mutex_unlock(&lock[first]);
}

static void answer(long line, long who)
{
	char text[80];
	int n;

	if (threads)
		locks_take(*word == LOCKS);
	if (*word > LOCKS)
		*(volatile uint32_t *)(uintptr_t)*word = 0;
	n = snprintf(text, sizeof(text), "line %ld by %ld: %u%s\n", line, who,
		     *word == LOCKS ? 0 : *word,
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

#define WORKERS	8

static volatile sig_atomic_t ended;

static void on_child(int sig)
{
	(void)sig;
	ended = 1;
}

/* Says how each worker has ended that has, when it has heard so by a signal. */
static void workers_reap(pid_t *pids)
{
	int status;
	pid_t pid;

	if (!ended)
		return;
	ended = 0;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (long i = 0; i < threads; i++)
			if (pids[i] == pid) {
				pids[i] = 0;
				dprintf(1, "worker %ld: %s %d\n", i,
					WIFSIGNALED(status) ? "signal" : "status",
					WIFSIGNALED(status) ? WTERMSIG(status) :
					WEXITSTATUS(status));
			}
}

static void worker_run(long me, int to, int back, pid_t parent)
{
	while (read(to, &lines, sizeof(lines)) == sizeof(lines) && lines > 0) {
		if (getppid() != parent)
			exit(1);
		answer(lines, me);
		if (write(back, "", 1) != 1)
			break;
	}
	_exit(7);
}

/*
 * Each process that answers is told the line by a pipe, and says when it has; one that is told
 * 0, for an x that is read, ends.  One at least is to be left.
 */
static void by_processes(void)
{
	int to[WORKERS][2], back[2];
	pid_t pids[WORKERS], parent = getpid();
	long end = 0;
	char byte;

	if (threads > WORKERS || pipe(back) || signal(SIGCHLD, on_child) == SIG_ERR)
		exit(1);
	for (long i = 0; i < threads; i++) {
		if (pipe(to[i]))
			exit(1);
		pids[i] = fork();
		if (!pids[i])
			worker_run(i, to[i][0], back[1], parent);
	}
	while (read(0, &byte, 1) == 1) {
		long who = lines % threads;

		workers_reap(pids);
		while (!pids[who])
			who = (who + 1) % threads;
		if (byte == 'x' && write(to[who][1], &end, sizeof(end)) > 0)
			continue;
		lines++;
		if (write(to[who][1], &lines, sizeof(lines)) < 0 || read(back[0], &byte, 1) != 1)
			exit(1);
	}
	for (long i = 0; i < threads; i++)
		if (pids[i])
			kill(pids[i], SIGTERM);
}

int main(int argc, char **argv)
{
	pthread_t t;
	char byte;

	threads = argc > 1 ? atol(argv[1]) : 0;
	differs_at = argc > 2 ? atol(argv[2]) : 0;
	word = mmap(WORD_AT, 4096, PROT_READ | PROT_WRITE,
		    (argc > 3 ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
		    -1, 0);
	if (word != WORD_AT)
		return 1;
	dprintf(1, "word at %p\n", (void *)word);
	if (argc > 3 && !strcmp(argv[3], "forks")) {
		by_processes();
		return 0;
	}
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
