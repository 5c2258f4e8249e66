/*
 * The rows of the table, each by its name: for code that the compiler is to make for a row.
 * To be included first: rows name constants of their own, which other headers' macros change.
 */
#ifndef MVE_ABI_ROWS_H
#define MVE_ABI_ROWS_H

#include "engine/abi/table.h"

#define SYSCALL(nr, name, class, ...) \
	static const struct call_desc row_##name = CALL_ROW(nr, name, class, __VA_ARGS__);
#include "engine/abi/syscalls.def"

#endif
