/*
 * Sanitizers' runtimes: which code of a process is theirs, and which of its calls
 * they make for themselves.
 */
#ifndef MVE_OUTSIDE_RUNTIME_H
#define MVE_OUTSIDE_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/abi/boot.h"
#include "engine/outside/kernel/maps.h"

#define RUNTIME_RANGES	5	/* of one program */

/* A library that is one; libc, through which they call; and the dynamic loader. */
bool runtime_is_library(const char *path);
bool runtime_is_libc(const char *path);
bool runtime_is_loader(const char *path);

/*
 * The runtime that is linked into a program, as addresses of the process; how many
 * ranges, 0: it has none.
 */
unsigned runtime_in_program(pid_t pid, const struct map *m,
			    struct code_range_at range[RUNTIME_RANGES]);

/* Where the eh_frame_hdr of the mapped file is in the process; or 0. */
uint64_t runtime_unwind(pid_t pid, const struct map *m);

/* What the runtime of checkpoints has in a program (engine/abi/rollback.h), as addresses of the
 * process; `contract` is 0 where the program was not built with it. */
struct checkpoint_runtime {
	uint64_t contract;
	struct code_range_at kernel;
};
struct checkpoint_runtime runtime_of_checkpoints(pid_t pid, const struct map *m);

/* It is of this mve's build, and not something else of its name; where rolling back is asked for
 * there is a word of one that is of another. */
bool runtime_checkpoints_fit(pid_t pid, const struct checkpoint_runtime *r, bool asked);

/* TSan's interceptor of sigaction, if the mapped file has TSan in it; or 0. */
uint64_t runtime_sigaction(pid_t pid, const struct map *m);

/*
 * Call number nr came to libc from a runtime; the return addresses are in libc's outermost
 * frame, in the runtime's innermost and its outermost.  Does it call for itself?
 */
bool runtime_calls(pid_t pid, uint64_t nr, uint64_t libc, uint64_t inner, uint64_t outer);

#endif
