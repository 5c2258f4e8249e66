#!/bin/sh
# lead.sh: of a program that mve-cc has linked a body calls bodies of its kind, in other modules,
# too; what is kept as an address, wrapped or a library's is what it was.
set -eu
cc=$ROOT/build/checkpoint/mve-cc
[ -x "$cc" ] || { echo "mve-cc is not built"; exit 77; }

cat >all.h <<'END'
typedef int change(int *at);
change one, two, odd;
extern change *const table[2];
int by_pointer(change *f, int *at);
int many(int *at, ...);
END
cat >one.c <<'END'
#include "all.h"
int one(int *at) { return *at += 1; }
int two(int *at) { int got = one(at); return *at += got; }
change *const table[2] = { one, two };
int by_pointer(change *f, int *at) { return f == one ? 100 + f(at) : f(at); }
END
cat >main.c <<'END'
#include <stdio.h>
#include <string.h>
#include <mve/checkpoint.h>
#include "all.h"

/* As many arguments as there are: in one body. */
int many(int *at, ...) { int first = one(at); return first + two(at); }

static int value = 1;

__attribute__((noinline)) static int all(void)
{
	return table[0] == one && by_pointer(one, &value) == 102 && two(&value) == 6 &&
	       by_pointer(table[1], &value) == 14 && many(&value, 1) == 15 + 32 &&
	       odd(&value) == 33 && value == 33;
}

int main(void)
{
#ifdef OPENS
	int got = mve_checkpoint_open();

	if (got < 0)
		return puts(mve_checkpoint_why());
	if (got == 0) {
		if (!all())
			return puts("it is wrong under a checkpoint");
		mve_checkpoint_restore();
	}
	if (value != 1)
		return puts("it did not go back");
	mve_checkpoint_drop();
#endif
	if (!all())
		return puts("it is wrong");
	puts("right");
	return 0;
}
END
cat >odd.c <<'END'
#include "all.h"
int odd(int *at) { return *at += 2; }
END
cat >wrapped.c <<'END'
#include "all.h"
int __wrap_odd(int *at) { return one(at); }
END

# calls PROGRAM: those in bodies of both kinds that go to entries
calls()
{
	objdump -d --no-show-raw-insn -j .mve_plain -j .mve_text "$1" |
		sed -n 's/.*[[:space:]]\(call\|jmp\)[[:space:]].*<\(one\|two\|odd\|by_pointer\)>$/\2/p'
}

for flags in "-O2" "-O2 -fcf-protection" "-O1 -fno-plt" "-O2 -g -Wl,-S" "-O2 -Wl,-O1,-s"; do
	for opens in "" -DOPENS; do
		for source in one odd main wrapped; do
			"$cc" $flags $opens -c $source.c
		done
		"$cc" $flags one.o main.o wrapped.o odd.o -Wl,--wrap=odd -o program
		[ "$(./program)" = right ] || { echo "$flags $opens:"; ./program; exit 1; }
		[ -z "$(calls program)" ] || { echo "$flags $opens: to entries:"; calls program; exit 1; }
		strip program
		[ "$(./program)" = right ] || { echo "$flags $opens, stripped:"; ./program; exit 1; }
	done
done
"$cc" -O2 -c one.c && "$cc" -O2 -c odd.c
clang-19 -O2 -fPIE -c main.c -I"${cc%/*}/include"
"$cc" one.o odd.o main.o -Wl,--defsym=__wrap_odd=one -Wl,--wrap=odd
[ "$(./a.out)" = right ] || { echo "with a module of another compiler:"; ./a.out; exit 1; }
echo "lead: ok"
