/*
 * Updates by a twin: what mve asks of a server in a session (engine/abi/brief.h).
 *
 * A thread of ours waits for an order.  In the leader: all threads come to their points, mve
 * copies the process, and they go on, whatever becomes of the copy; without a word they do after
 * STANDS_MS.  In the copy the order is another: the state is brought into the new build, where
 * the threads begin anew and stand at their points; they go on when mve lets them follow.
 *
 * This thread has no lane under mve: nobody who follows hears of its calls.
 */
#include "engine/update/session.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/abi/brief.h"
#include "engine/core/pairs.h"
#include "engine/update/control.h"
#include "engine/update/state/epoll.h"
#include "engine/update/points.h"
#include "engine/update/word.h"

/* Limit (live update): ms that a leader's threads stand without a word. Beyond: they go on. */
#define STANDS_MS	2000

static struct update_words *words;
static char *path;
static const char *given;	/* the same, as the command has it */
static bool stands;	/* all threads do; a twin's copy of it says so, too */
static bool twin;	/* this is one, and changes */
static uint32_t silent;	/* a lock: our thread has yet to say that it is there */

static long ask_at(enum update_ask what, const void *text, uint64_t at)
{
	return syscall(UPDATE_CALL, (long)what, text, at);
}

static long ask(enum update_ask what, const void *text)
{
	return ask_at(what, text, 0);
}

void session_does(const char *what)
{
	if (twin)
		ask(UPDATE_DOES, what);
}

const char *session_refused(void)
{
	static char name[UPDATE_NAME];

	return twin && ask(UPDATE_REFUSED_IS, name) == 0 ? name : NULL;
}

uint64_t session_place_of(int tid)
{
	return twin ? UPDATE_THREAD | (uint64_t)tid : 0;
}

bool session_is_twin(void)
{
	return twin;
}

void session_epoll_own(int set, int fd, uint64_t kernels, uint64_t *own)
{
	struct update_epoll e = { set, fd, kernels, kernels };

	if (words && ask(UPDATE_EPOLL_OWN, &e) == 0)
		*own = e.own;
}

bool session_epoll_is(int set, int fd, uint64_t kernels, uint64_t own)
{
	struct update_epoll e = { set, fd, kernels, own };

	return ask(UPDATE_EPOLL_IS, &e) == 0;
}

void session_point(void)
{
	if (words)
		ask(UPDATE_POINT, NULL);
}

static void stand(unsigned limit_ms)
{
	char why[UPDATE_TEXT] = "";

	stands = update_stop(limit_ms, why, sizeof(why));
	if (!stands)
		points_go_on();
	ask_at(stands ? UPDATE_STANDS : UPDATE_LATE, why, stands ? 0 : points_late_at());
}

/* The old build serves on: libraries' notes are as the new one's will be. */
static void go_on(void)
{
	stands = false;
	points_call(POINT_ABORT, update_image());
	points_go_on();
	epoll_forget();
}

/* Of a twin; whatever goes wrong, it ends. */
static void change(void)
{
	char why[UPDATE_TEXT] = "its threads did not stand any more", *told = NULL;
	size_t n = 0;
	FILE *tell = open_memstream(&told, &n);
	enum update_end end = UPDATE_LATER;

	twin = true;
	if (stands && tell)
		end = update_twin(words->to, words->xform, words->limit_ms, tell, why, sizeof(why));
	if (tell)
		fclose(tell);
	if (end == UPDATE_DONE && told)
		ask(UPDATE_SAYS, told);
	if (end != UPDATE_DONE || ask(UPDATE_IS_NEW, "")) {
		ask_at(end == UPDATE_REFUSED ? UPDATE_NEVER : UPDATE_FAILS, why, points_late_at());
		_exit(1);
	}
	free(told);
	stands = twin = false;
	epoll_forget();
	points_go_on();
}

static void order(uint32_t word)
{
	switch (update_order_of(word)) {
	case UPDATE_STAND:
		if (!stands)
			stand(words->limit_ms);
		break;
	case UPDATE_CHANGE:
		change();
		break;
	default:
		if (stands)
			go_on();
	}
}

static void *hear(void *arg)
{
	uint32_t done = 0, word;

	(void)arg;
	words = (struct update_words *)ask_at(UPDATE_HELLO, path, (uint64_t)given);
	if ((long)words < 0 && (long)words > -4096)
		words = NULL;
	word_unlock(&silent);
	while (words) {
		word = CONSUME(update_order, &words->order);
		if (word != done) {
			order(word);
			done = word;
			continue;
		}
		if (!word_wait(&words->order, word, WORD_SHARED, stands ? STANDS_MS : 0) &&
		    stands) {
			ask(UPDATE_SERVES, "");
			go_on();
		}
	}
	return NULL;
}

/* Known to mve before the server serves: who asks then is not told that it is not prepared. */
void session_begin(const char *build)
{
	sigset_t all, before;
	pthread_t id;

	given = build;
	path = realpath(build, NULL);
	/* No question at all: natively there is no such call. */
	if (!path || (ask(UPDATE_ASKS, NULL) < 0 && errno == ENOSYS))
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	word_lock(&silent);
	if (pthread_create(&id, NULL, hear, NULL) == 0) {
		pthread_detach(id);
		word_lock(&silent);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}
