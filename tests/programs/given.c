/*
 * What one thread gives and another takes by calls that lead through no lock: the end of a pipe,
 * bytes that the kernel moves, a queue, a semaphore or lock of the system's, a connection, a
 * signal, a timer.  What was done before is found behind: a value in plain memory.
 */
#include <mqueue.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "check.h"

#define ROUNDS	20

static int null, at[2], side[2], listener, queue, sems;
static mqd_t messages;
static uint32_t value;
static sem_t begun, seen;

/* A follower's thread that waits for nobody is long past it meanwhile. */
static void work(void)
{
	for (volatile int i = 0; i < 60000; i++)
		;
}

static void pipe_new(void)
{
	CHECK_EQ(pipe(at), 0);
}

static void pair_new(void)
{
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, at), 0);
}

static void end_close(void)
{
	CHECK_EQ(close(at[1]), 0);
}

static void end_close_range(void)
{
	CHECK_EQ(syscall(SYS_close_range, at[1], at[1], 0), 0);
}

static void end_replace(void)
{
	CHECK_EQ(dup2(null, at[1]), at[1]);
}

static void end_shut(void)
{
	CHECK_EQ(shutdown(at[1], SHUT_WR), 0);
}

static void end_meet(void)
{
	char c;

	CHECK_EQ(read(at[0], &c, 1), 0);
}

static void pipes_new(void)
{
	CHECK_EQ(pipe(side), 0);
	pipe_new();
	CHECK_EQ(write(side[1], "abc", 3), 3);
}

static void byte_write(void)
{
	CHECK_EQ(write(at[1], "x", 1), 1);
}

static void byte_splice(void)
{
	CHECK_EQ(splice(side[0], NULL, at[1], NULL, 1, 0), 1);
}

static void byte_tee(void)
{
	CHECK_EQ(tee(side[0], at[1], 1, 0), 1);
}

static void byte_read(void)
{
	char c;

	CHECK_EQ(read(at[0], &c, 1), 1);
}

static void byte_splice_in(void)
{
	CHECK_EQ(splice(at[0], NULL, null, NULL, 1, 0), 1);
}

static void message_give(void)
{
	CHECK_EQ(mq_send(messages, "x", 1, 0), 0);
}

static void message_take(void)
{
	char room[8];

	CHECK_EQ(mq_receive(messages, room, sizeof(room), NULL), 1);
}

static void queue_give(void)
{
	struct { long type; char c; } m = { 1, 'x' };

	CHECK_EQ(msgsnd(queue, &m, 1, 0), 0);
}

static void queue_take(void)
{
	struct { long type; char c; } m;

	CHECK_EQ(msgrcv(queue, &m, 1, 0, 0), 1);
}

static void sem_change(short by)
{
	struct sembuf change = { 0, by, 0 };

	CHECK_EQ(semop(sems, &change, 1), 0);
}

static void sem_give(void)
{
	sem_change(1);
}

static void sem_take(void)
{
	sem_change(-1);
}

static void files_new(void)
{
	for (int i = 0; i < 2; i++)
		CHECK((at[i] = open("given", O_RDWR | O_CREAT, 0600)) >= 0);
	CHECK_EQ(flock(at[1], LOCK_EX), 0);
}

static void lock_give(void)
{
	CHECK_EQ(flock(at[1], LOCK_UN), 0);
}

static void lock_take(void)
{
	CHECK_EQ(flock(at[0], LOCK_EX), 0);
}

static void connection_give(void)
{
	struct sockaddr_in to;
	socklen_t size = sizeof(to);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK_EQ(getsockname(listener, (struct sockaddr *)&to, &size), 0);
	CHECK_EQ(connect(fd, (struct sockaddr *)&to, size), 0);
	CHECK_EQ(close(fd), 0);
}

static void connection_take(void)
{
	int fd = accept(listener, NULL, NULL);

	CHECK(fd >= 0);
	CHECK_EQ(close(fd), 0);
}

static void signals_new(void)
{
	sigset_t set;

	CHECK_EQ(sigemptyset(&set) | sigaddset(&set, SIGUSR1), 0);
	CHECK((at[0] = signalfd(-1, &set, 0)) >= 0);
	CHECK((at[1] = dup(null)) >= 0);
}

static void signal_give(void)
{
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
}

static void signal_take(void)
{
	struct signalfd_siginfo info;

	CHECK_EQ(read(at[0], &info, sizeof(info)), sizeof(info));
}

static void timer_new(void)
{
	CHECK((at[0] = timerfd_create(CLOCK_MONOTONIC, 0)) >= 0);
	CHECK((at[1] = dup(null)) >= 0);
}

static void timer_give(void)
{
	struct itimerspec soon = { .it_value = { 0, 1000 } };

	CHECK_EQ(timerfd_settime(at[0], 0, &soon, NULL), 0);
}

static void timer_take(void)
{
	uint64_t ticks;

	CHECK_EQ(read(at[0], &ticks, sizeof(ticks)), sizeof(ticks));
}

static const struct way {
	void (*make)(void), (*give)(void), (*take)(void);
} ways[] = {
	{ pipe_new, end_close, end_meet },
	{ pipe_new, end_close_range, end_meet },
	{ pipe_new, end_replace, end_meet },
	{ pair_new, end_close, end_meet },
	{ pair_new, end_shut, end_meet },
	{ pipes_new, byte_splice, byte_read },
	{ pipes_new, byte_tee, byte_read },
	{ pipe_new, byte_write, byte_splice_in },
	{ pipe_new, message_give, message_take },
	{ pipe_new, queue_give, queue_take },
	{ pipe_new, sem_give, sem_take },
	{ files_new, lock_give, lock_take },
	{ pipe_new, connection_give, connection_take },
	{ signals_new, signal_give, signal_take },
	{ timer_new, timer_give, timer_take },
};

static const struct way *way_of(uint32_t round)
{
	return &ways[round % COUNT(ways)];
}

static void *taker(void *none)
{
	for (uint32_t i = 0; i < ROUNDS * COUNT(ways); i++) {
		CHECK_EQ(sem_wait(&begun), 0);
		way_of(i)->take();
		CHECK_EQ(write(null, &value, sizeof(value)), sizeof(value));
		CHECK_EQ(sem_post(&seen), 0);
	}
	return none;
}

static void give_all(void)
{
	for (uint32_t i = 0; i < ROUNDS * COUNT(ways); i++) {
		const struct timespec soon = { 0, 100000 };

		way_of(i)->make();
		CHECK_EQ(sem_post(&begun), 0);
		/* The other sleeps in its call, and one that was slept for is behind that. */
		CHECK_EQ(nanosleep(&soon, NULL), 0);
		work();
		value = i + 1;
		way_of(i)->give();
		CHECK_EQ(sem_wait(&seen), 0);
		CHECK_EQ(syscall(SYS_close_range, null + 5, ~0u, 0), 0);
	}
}

static void shared_new(void)
{
	struct sockaddr_in any = { AF_INET, 0, { htonl(INADDR_LOOPBACK) }, { 0 } };
	struct mq_attr few = { .mq_maxmsg = 4, .mq_msgsize = 8 };
	char name[40];

	CHECK((null = open("/dev/null", O_RDWR)) >= 0);
	snprintf(name, sizeof(name), "/mve-given-%d", getpid());
	CHECK((messages = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &few)) >= 0);
	CHECK_EQ(mq_unlink(name), 0);
	CHECK((queue = msgget(IPC_PRIVATE, 0600)) >= 0);
	CHECK((sems = semget(IPC_PRIVATE, 1, 0600)) >= 0);
	CHECK((listener = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
	CHECK_EQ(bind(listener, (struct sockaddr *)&any, sizeof(any)), 0);
	CHECK_EQ(listen(listener, 4), 0);
	CHECK(messages < null + 5 && listener < null + 5);
}

int main(void)
{
	sigset_t set;
	pthread_t thread;

	CHECK_EQ(sigemptyset(&set) | sigaddset(&set, SIGUSR1), 0);
	CHECK_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	shared_new();
	CHECK_EQ(sem_init(&begun, 0, 0) | sem_init(&seen, 0, 0), 0);
	CHECK_EQ(pthread_create(&thread, NULL, taker, NULL), 0);
	give_all();
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(msgctl(queue, IPC_RMID, NULL), 0);
	CHECK_EQ(semctl(sems, 0, IPC_RMID), 0);
	CHECK_EQ(unlink("given"), 0);
	return passed("given");
}
