/*
 * Boards: the machine code that a patched site jumps to.  board.c has the
 * layout; engine/abi/thread.h has the contract with the gate.
 */
#ifndef MVE_OUTSIDE_BOARD_H
#define MVE_OUTSIDE_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "engine/abi/boot.h"
#include "engine/outside/plan/plan.h"

#define BOARD_ALIGN	16
#define BOARD_MAX	160	/* no board is longer */

/*
 * Boards are as long as BOARD_ALIGN says, so a room that is not would be overrun by its last
 * one: whoever is told of a room by a process asks this first.
 */
static inline bool board_room_fits(const struct board_room *room)
{
	return room->used <= room->len && !((room->used | room->len) % BOARD_ALIGN);
}

/*
 * Writes the board of a patched site.  `window` is the site's whole window as
 * the program has it; `site` and `board` are the run-time addresses of the
 * syscall instruction and of the board.  The size in bytes, or -ERANGE when
 * something is out of a displacement's reach, -ENOSPC when cap is too small,
 * -EINVAL when the bytes are not those of such a site.
 */
long board_emit(const struct plan_site *s, const uint8_t *window, uint64_t site, uint64_t board,
		uint8_t *out, size_t cap);

/*
 * The five bytes for the start of the window, site - s->before.  0 or -ERANGE.
 */
int board_jump(const struct plan_site *s, uint64_t site, uint64_t board, uint8_t jump[SITE_JUMP]);

/*
 * Where the gate resumes after a call from this board, as an offset into it;
 * the eight bytes before it hold the site's end.
 */
#define BOARD_CALL_BYTES	23	/* lea, jmp *%gs:T_GATE, .quad */

static inline unsigned board_resume(const struct plan_site *s)
{
	return s->before + BOARD_CALL_BYTES;
}

#endif
