/*
 * Functions in two bodies (pass/bodies.cc): in a program in which checkpoints may be opened each
 * entry is made to lead to the checked one, before anything of the program runs, once there are
 * tags for it to look at.  In one that takes none nothing is written, and libraries' functions have
 * no thunks.
 *
 * The kernel writes what we may only execute, by /proc/self/mem: code is never writable, and mve,
 * which would have to look at code that may have been written, has nothing to look at.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include "engine/checkpoint/runtime/kernel.h"
#include "engine/checkpoint/runtime/state.h"
#include "engine/checkpoint/seam/seam.h"

/* The kernel maps a file's pages sixteen at a time.  Plain bodies, which come last, begin at such a
 * place: so none of them is mapped for checked ones that run. */
__asm__(".pushsection .mve_plain, \"ax\", @progbits\n\t.balign 65536\n\t.popsection");

/* Each as far from its own place. */
struct row {
	int32_t entry, checked;
};

extern const struct row __start_mve_checked[] __attribute__((weak, visibility("hidden")));
extern const struct row __stop_mve_checked[] __attribute__((weak, visibility("hidden")));

/* Each object that names mve_checkpoint_open() defines it. */
extern const char mve_checkpoint_opens __attribute__((weak));

static uintptr_t place(const int32_t *way)
{
	return (uintptr_t)way + *way;
}

/* Where an entry says how far it jumps: behind the opcode, and a mark for indirect branches (CET).
 * Null: it is none of ours, as others have changed it. */
static uintptr_t way_of(uintptr_t entry)
{
	static const unsigned char mark[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	const unsigned char *code = (const unsigned char *)entry;

	if (!memcmp(code, mark, sizeof(mark)))
		code += sizeof(mark);
	return *code == 0xe9 ? (uintptr_t)code + 1 : 0;
}

static int lead(int memory, const struct row *row)
{
	uintptr_t at = way_of(place(&row->entry));
	int32_t way = (int32_t)(place(&row->checked) - (at + sizeof(way)));

	if (!at)
		return -EEXIST;
	return KERNEL_4(SYS_pwrite64, memory, &way, sizeof(way), at) == sizeof(way) &&
	       *(volatile int32_t *)at == way ? 0 : -EACCES;
}

static int lead_all(void)
{
	int memory = (int)KERNEL_3(SYS_open, "/proc/self/mem", O_RDWR | O_CLOEXEC, 0), error = 0;

	if (memory < 0)
		return memory;
	for (const struct row *row = __start_mve_checked; !error && row < __stop_mve_checked; row++)
		error = lead(memory, row);
	KERNEL_1(SYS_close, memory);
	return error;
}

int bodies_begin(void)
{
	if (!seam_wanted() && !&mve_checkpoint_opens) {
		state->plain = ENOTSUP;
		state->plain_why = "nothing that mve-cc has built here opens one, and it was "
				   "begun without MVE_CHECKPOINT_SEAM";
		return 0;
	}
	state->plain = (uint8_t)-tags_begin();
	state->plain_why = state->why;
	if (state->plain)
		return 0;
	state->plain = (uint8_t)-lead_all();
	state->plain_why = state->plain == EEXIST ?
			   "its functions do not begin as mve-cc has made them" :
			   "its functions cannot be made to check (/proc/self/mem)";
	return !state->plain;
}
