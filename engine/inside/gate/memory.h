/* Memory of our own, and the program's, where a bad pointer is a result. */
#ifndef MVE_INSIDE_MEMORY_H
#define MVE_INSIDE_MEMORY_H

/* The program's memory, whose pointers may be bad */
/* Zeroed memory of our own; an address or a negative errno. */
long own_map(uint64_t len);
/* The same, shared with children. */
long own_share(uint64_t len);
long copy_in(void *to, uint64_t from, size_t len);
long copy_out(uint64_t to, const void *from, size_t len);
void bytes_copy(void *to, const void *from, size_t len);
void bytes_zero(void *to, size_t len);

#endif
