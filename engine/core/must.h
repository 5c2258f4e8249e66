/*
 * Our own mistakes.  MUST(cond) says what always holds; where it does not, an idea of ours is
 * wrong, and it says which: file, line and the condition.  It is compiled in always, so the
 * condition costs little and does nothing.
 *
 * Only what we alone write may stand in one.  What another process, another uid or the
 * program can have written is checked and refused where it is read: nobody else is to end us.
 *
 * What happens then is up to who is the host (must_failed): the inside ends its version or
 * leaves the call (inside/crash/failed.c), a program of ours ends with status 70.
 */
#ifndef MVE_CORE_MUST_H
#define MVE_CORE_MUST_H

#define MUST_TEXT(a)	#a
#define MUST_LINE(a)	MUST_TEXT(a)

#if __STDC_HOSTED__
#define MUST_SECTION
__attribute__((cold, noreturn)) void must_failed(const char *place);
#else
/* By itself, so that the monitor can tell from a place's address what stands there. */
#define MUST_SECTION	__attribute__((section(".musts")))
__attribute__((cold, visibility("hidden"))) void must_failed(const char *place);
#endif

#define MUST(cond) \
	do { \
		static const char must_place[] MUST_SECTION = \
			__FILE__ ":" MUST_LINE(__LINE__) ": " #cond; \
		if (__builtin_expect(!(cond), 0)) \
			must_failed(must_place); \
	} while (0)

#endif
