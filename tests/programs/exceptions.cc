/*
 * C++ exceptions: thrown through frames, across threads, out of a system
 * call's wrapper that was cancelled, and out of a signal handler for a fault
 * (the unwinder walks over the signal frame).
 */
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <pthread.h>
#include <unistd.h>

static int destroyed;

struct counted {
	~counted() { destroyed++; }
};

__attribute__((noinline)) static void descend(int depth)
{
	counted c;

	if (!depth)
		throw std::runtime_error("pid " + std::to_string(getpid()));
	descend(depth - 1);
}

static void fault(int)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigprocmask(SIG_UNBLOCK, &set, nullptr);
	throw std::domain_error("fault");
}

__attribute__((noinline)) static int touch(volatile int *p)
{
	counted c;

	return *p;
}

static bool thrown_and_caught(int depth)
{
	destroyed = 0;
	try {
		descend(depth);
	} catch (const std::exception &e) {
		return destroyed == depth + 1 &&
			e.what() == "pid " + std::to_string(getpid());
	}
	return false;
}

static bool across_threads()
{
	std::exception_ptr got;

	std::thread([&] {
		try {
			descend(3);
		} catch (...) {
			got = std::current_exception();
		}
	}).join();
	try {
		std::rethrow_exception(got);
	} catch (const std::runtime_error &) {
		return true;
	}
	return false;
}

static bool out_of_a_fault()
{
	try {
		touch((volatile int *)8);
	} catch (const std::domain_error &) {
		return true;
	}
	return false;
}

static void *cancelled(void *)
{
	counted c;

	for (;;)
		pause();
}

static bool by_cancellation()
{
	pthread_t thread;

	destroyed = 0;
	if (pthread_create(&thread, nullptr, cancelled, nullptr))
		return false;
	pthread_cancel(thread);
	pthread_join(thread, nullptr);
	return destroyed <= 1;
}

int main()
{
	signal(SIGSEGV, fault);
	for (int i = 0; i < 200; i++)
		if (!thrown_and_caught(i % 20) || !across_threads() ||
		    !out_of_a_fault() || !by_cancellation())
			return 1;
	puts("exceptions: ok");
	return 0;
}
