/*
 * The memory of tags, log and stacks: reserved once, at the first checkpoint, and touched only
 * where the program is.
 */
#ifndef MVE_CHECKPOINT_SETUP_H
#define MVE_CHECKPOINT_SETUP_H

/* All tags are of no epoch. */
void tags_wipe(void);

/* seam/bodies.c, before anything of the program runs: whether checked bodies of functions run. */
int bodies_begin(void);

#endif
