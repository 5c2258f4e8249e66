/* ld: -shared -fPIC */
/* Not a test: the library that dlopen.c loads.  It makes calls of its own. */
#include "check.h"

static long pid_at_load;

__attribute__((constructor)) static void loaded(void)
{
	pid_at_load = raw0(SYS_getpid);
}

__attribute__((destructor)) static void unloaded(void)
{
	raw0(SYS_sched_yield);
}

long plugin_pid_at_load(void)
{
	return pid_at_load;
}

long plugin_call(long nr, long a, long b, long c)
{
	return raw3(nr, a, b, c);
}

long plugin_getpid(void)
{
	long ret;

	asm volatile("mov $39, %%eax; syscall" : "=a"(ret) : : "rcx", "r11");
	return ret;
}
