/*
 * What C++ runs once, and its locks: statics of a function, std::call_once whose
 * function throws, and std::condition_variable.  Who came first goes to a file, so
 * that a follower whose threads came in another order would write something else.
 */
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>
#include <x86intrin.h>

static const int THREADS = 4, ROUNDS = 100;

static std::mutex mutex;
static std::string text;

static void check(bool what, const char *which)
{
	if (!what) {
		fprintf(stderr, "statics: %s does not hold\n", which);
		_exit(1);
	}
}

static void dawdle()
{
	for (unsigned long n = __rdtsc() >> 4 & 1023; n; n--)
		_mm_pause();
}

static void note(char c)
{
	std::lock_guard<std::mutex> lock(mutex);
	text += c;
}

/* --- statics: as many as there are values of N ----------------------------------- */

static thread_local char self;

struct first {
	char who;

	first() : who(self)
	{
		dawdle();
		check(close(-1) < 0, "close");
		note(who);
	}
};

template <int N> char once_static()
{
	dawdle();
	static first f;
	return f.who;
}

template <int N> void statics(std::string &seen)
{
	if constexpr (N > 0) {
		statics<N - 1>(seen);
		seen += once_static<N>();
	}
}

/* --- call_once: the first ones throw ------------------------------------------------ */

static std::once_flag flags[ROUNDS];
static int tries[ROUNDS];

static void once_or_throw(int i, char who)
{
	dawdle();
	note(who);
	if (++tries[i] < 3)
		throw std::runtime_error("again");
}

static void call_once(char who)
{
	for (int i = 0; i < ROUNDS; i++) {
		bool done = false;

		while (!done) {
			try {
				std::call_once(flags[i], once_or_throw, i, who);
				done = true;
			} catch (const std::runtime_error &) {
				note('!');
			}
		}
		check(tries[i] == 3, "call_once");
	}
}

/* --- a queue, with waits that time out ------------------------------------------------- */

static std::condition_variable ready;
static std::mutex queue_mutex;
static std::shared_mutex table_mutex;
static int queued, table;

static void queue_round(char who, int i)
{
	std::unique_lock<std::mutex> lock(queue_mutex);

	if (who % 2) {
		queued++;
		ready.notify_one();
	} else {
		while (!queued)
			if (ready.wait_for(lock, std::chrono::milliseconds(1)) ==
			    std::cv_status::timeout)
				note('t');
		queued--;
	}
	note(who);
	lock.unlock();
	if (i % 4) {
		std::shared_lock<std::shared_mutex> reads(table_mutex);
		note((char)('0' + table % 10));
	} else {
		std::unique_lock<std::shared_mutex> writes(table_mutex);
		table++;
	}
	dawdle();
}

int main()
{
	std::vector<std::thread> threads;
	std::string seen[THREADS];

	for (int n = 0; n < THREADS; n++)
		threads.emplace_back([n, &seen] {
			self = (char)('a' + n);
			statics<ROUNDS>(seen[n]);
			call_once(self);
			for (int i = 0; i < ROUNDS; i++)
				queue_round(self, i);
		});
	for (auto &t : threads)
		t.join();
	for (int n = 1; n < THREADS; n++)
		check(seen[n] == seen[0], "statics");
	int fd = open("statics.log", O_WRONLY | O_CREAT, 0600);
	text = seen[0] + text;
	check(write(fd, text.data(), text.size()) == (ssize_t)text.size(), "write");
	close(fd);
	puts("statics: ok");
	return 0;
}
