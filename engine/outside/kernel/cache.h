/*
 * What the user's cache keeps and for how long: what was not used for 30 days is removed
 * when the next of its kind is written.
 */
#ifndef MVE_OUTSIDE_CACHE_H
#define MVE_OUTSIDE_CACHE_H

/* The file was of use now. */
void cache_use(int folder, const char *name);
/* Removes what is old of the open folder's files whose names have `suffix` in them. */
void cache_clean(int folder, const char *suffix);

#endif
