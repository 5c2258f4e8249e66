/*
 * What core asks of whom it runs in: inside a program copies that survive bad pointers,
 * and waits; in the monitor and in a unit test, arrays.
 */
#ifndef MVE_CORE_HOST_H
#define MVE_CORE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event;
struct path_map;
struct reader;
struct writer;

/*
 * Copies from and to the program's memory; 0 or -EFAULT: a pointer that a program passes
 * may be bad, or become bad meanwhile.  Not in a signal's handler (leave.c says why).
 */
long target_in(void *to, uint64_t from, size_t len);
/*
 * The same where a fault would be the end: in a handler of ours the signals that end such a copy
 * may be blocked, so the kernel copies.
 */
long code_read(void *to, uint64_t from, size_t len);
long target_out(uint64_t to, const void *from, size_t len);
/* A text without its zero: its length, or -EFAULT; -E2BIG: it and eight bytes have no room. */
long target_text(void *to, uint64_t from, size_t room);
/* The next event; waits for room, for as long as it takes. */
struct event *host_begin(struct writer *w, uint8_t kind, uint16_t call);
/* Waits for more of the looked-at event's payload; false: there will be none. */
bool host_more(struct reader *r);
/* Waits for a chunk that is not in memory; false: it will not come. */
bool host_chunk(const struct reader *r);
/* Where two versions are installed in two places: rows of leader's and our prefix. */
const struct path_map *host_path_maps(uint32_t *n);

#endif
