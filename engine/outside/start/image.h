/*
 * The inside image as this program carries it, and where its symbols are.
 */
#ifndef MVE_OUTSIDE_IMAGE_H
#define MVE_OUTSIDE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/abi/boot.h"

/* Offsets are from the image's first byte, in memory and in the file alike. */
struct inside_image {
	const uint8_t *bytes;
	size_t file_len;	/* bytes to copy */
	size_t memory_len;	/* bytes to map, a multiple of the page size */
	size_t data;		/* from here on it is writable */
	size_t start, boot;	/* inside_start, struct boot */
	size_t standing;	/* struct standing_fds */
	size_t own_taken;	/* bytes of own_map() */
	size_t vdso[VDSO_FUNCTIONS];
	size_t gate_net;
	size_t locks_led;	/* a byte: the lock gate takes part */
	size_t led_tids;	/* AREA_THREADS numbers: locks/before.c */
	size_t stack_from, stack_to;	/* what runs on the program's stack: .gate.stack */
	size_t lock_once;	/* where a function that is run once comes back to it */
	size_t tid_at;		/* in a block: the thread's id */
	size_t attach_run, attach_done;	/* of a program that runs (abi/attach.h) */
	size_t patch_from, patch_to;
	size_t net_from, net_to;
	size_t own_from, own_to;
	size_t musts_from, musts_to;	/* the words of each MUST */
};

/* The image; it is read once and is right, or mve was not built right. */
const struct inside_image *inside_image(void);

/*
 * What stands at a place that is so many bytes behind own_from: the words of a MUST; else
 * function, file and line, as far as they are known.  Any number may be asked for.
 */
void inside_place(uint64_t place, char *words, size_t size);

/* A sealed file with it, to be mapped; or a negative errno. */
int inside_image_fd(void);

#endif
