/*
 * The way of mprotect: all memory is read-only while a checkpoint is open; a write faults, and the
 * handler puts the page into the log and lets it be written.  Checkpoints do not lie within one
 * another.  What the kernel is to write is touched before the call (pass/known.def).
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <unistd.h>
#include "engine/checkpoint/ways/pages.h"
#include "engine/checkpoint/ways/ranges.h"
#include "engine/checkpoint/runtime/save.h"
#include "engine/checkpoint/ways/ways.h"

#define PAGE	4096ul

struct page {
	uintptr_t at;
	unsigned char bytes[PAGE];
};

#define COPIES		((struct page *)LOG_AT)
#define LOG_PAGES	(LOG_MAX / sizeof(struct page))

static struct ranges *const ranges = (void *)PAGES_AT;

static const struct range *range_of(uintptr_t at)
{
	for (int n = 0; n < ranges->number; n++)
		if (at >= ranges->r[n].begin && at < ranges->r[n].end)
			return &ranges->r[n];
	return NULL;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr & -PAGE;
	size_t n = state->head;

	(void)context;
	if (!range_of(at) || n >= LOG_PAGES) {
		signal(sig, SIG_DFL);
		return;
	}
	COPIES[n].at = at;
	memcpy(COPIES[n].bytes, (void *)at, PAGE);
	state->head = n + 1;
	mprotect((void *)at, PAGE, PROT_READ | PROT_WRITE);
}

int protect_begin(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER };

	if (__rseq_size)
		return fail(EBUSY, "the kernel writes to a thread's memory "
			    "(GLIBC_TUNABLES=glibc.pthread.rseq=0)");
	return sigaction(SIGSEGV, &action, NULL) ? fail(errno, "no handler") : 0;
}

static void all_protect(int prot)
{
	for (int n = 0; n < ranges->number; n++) {
		struct range r = ranges->r[n];

		mprotect((void *)r.begin, r.end - r.begin, prot);
	}
}

/* This process' maps, which it may not open later. */
static int maps = -1;

void protect_own(void)
{
	if (way->begin != protect_begin || (maps >= 0 && process->has_pages))
		return;
	close(maps);
	maps = number_high(ranges_open());
	process->has_pages = 1;
}

static int read_anew(void)
{
	protect_own();
	return maps < 0 ? maps : ranges_read(ranges, maps, 1);
}

int protect_open(struct level *level)
{
	(void)level;
	if (state->depth)
		return fail(EMFILE, "the way of mprotect has one checkpoint at a time");
	if (state->counts.opened % 256 == 0) {	/* what was mapped meanwhile */
		if (read_anew())
			return fail(E2BIG, "the program's memory is not known");
	}
	all_protect(PROT_READ);
	return 0;
}

void protect_restore(const struct level *level)
{
	(void)level;
	all_protect(PROT_READ | PROT_WRITE);
	while (state->head > 0) {
		struct page *page = &COPIES[--state->head];

		memcpy((void *)page->at, page->bytes, PAGE);
	}
}

/* The kernel writes without a handler, and is not waited for when none is open. */
void protect_drop(const struct level *level)
{
	(void)level;
	all_protect(PROT_READ | PROT_WRITE);
}

/* Writes to a range what it holds: before the kernel writes there, which has no handler. */
SAVES void mve_checkpoint_touch(const void *at, size_t size)
{
	uintptr_t p = (uintptr_t)at, end = p + size;

	if (!state->epoch || way->begin != protect_begin)
		return;
	for (; p < end; p = (p | (PAGE - 1)) + 1)
		*(volatile char *)p = *(volatile char *)p;
}
