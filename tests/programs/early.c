/*
 * System calls made before main (preinit array, ifunc resolver, constructor)
 * and after it (atexit, destructor of a thread variable, destructor).
 */
#include "check.h"

static long in_preinit, in_constructor, in_init, in_resolver;

static long own_getpid(void)
{
	return raw0(SYS_getpid);
}

static void preinit(int argc, char **argv, char **env)
{
	in_preinit = own_getpid();
}

static void init(int argc, char **argv, char **env)
{
	in_init = own_getpid();
}

__attribute__((section(".preinit_array"), used))
static void (*preinit_entry)(int, char **, char **) = preinit;
__attribute__((section(".init_array"), used))
static void (*init_entry)(int, char **, char **) = init;

__attribute__((constructor(101))) static void constructor(void)
{
	in_constructor = own_getpid();
}

static int answer(void)
{
	return 42;
}

/* Runs while relocations are applied: nothing but its own code is ready. */
static int (*resolve(void))(void)
{
	long pid;

	asm volatile("syscall" : "=a"(pid) : "0"(SYS_getpid)
		     : "rcx", "r11", "memory");
	in_resolver = pid;
	return answer;
}

int resolved(void) __attribute__((ifunc("resolve")));

__attribute__((destructor)) static void last(void)
{
	if (own_getpid() == in_constructor)
		raw3(SYS_write, 1, "early: ok\n", 10);
}

static void at_exit(void)
{
	CHECK_EQ(own_getpid(), in_constructor);
}

int main(void)
{
	CHECK_EQ(resolved(), 42);
	CHECK_EQ(in_preinit, getpid());
	CHECK_EQ(in_constructor, getpid());
	CHECK_EQ(in_init, getpid());
	CHECK(in_resolver == getpid() || in_resolver == 0);
	atexit(at_exit);
	return 0;
}
