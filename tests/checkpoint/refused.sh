#!/bin/sh
# refused.sh: who cannot have checkpoints is told why, and goes on.
set -eu
cc=$ROOT/build/checkpoint/mve-cc
[ -x "$cc" ] || { echo "mve-cc is not built"; exit 77; }
cat >one.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <mve/checkpoint.h>
int main(void)
{
	char *block = realloc(malloc(100), 100000), *page = aligned_alloc(64, 640);
	int got = mve_checkpoint_open();

	if (!block || !page || (long)page % 64)
		return 1;
	free(block);
	free(page);
	printf("%d: %s\n", got, mve_checkpoint_why());
	return got == 0;
}
END

# says WORDS COMMAND...
says()
{
	words=$1
	shift
	"$@" >said 2>&1 || { echo "$*: exit $?"; cat said; exit 1; }
	grep -q "$words" said || { echo "$*: does not say \"$words\":"; cat said; exit 1; }
}

"$cc" -O2 one.c -o one
if ./one >said; then cat said; exit 1; fi
at=${cc%/*}
"${MVE_CLANG:-clang-19}" -fPIE -pie -I"$at/include" one.c "$at/libmve-checkpoint-128.a" -o not
says "not built by mve-cc" ./not
cat >hidden.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <mve/checkpoint.h>
int main(void)
{
	int (*open)(void) = dlsym(RTLD_DEFAULT, "mve_checkpoint_" "open");
	int got = open ? open() : 0;

	printf("%d: %s\n", got, mve_checkpoint_why());
	return got >= 0;
}
END
"$cc" -O2 hidden.c -o hidden
says "nothing that mve-cc has built here opens one" ./hidden
cat >early.c <<"END"
#include <stdlib.h>
int main(void)
{
	abort();
}
END
"$cc" -O2 early.c -o early
says "or before the first" sh -c "! MVE_CHECKPOINT_SEAM=1 ./early"
says "do not fit" sh -c 'ulimit -v 4000000; ./one'
says "no tags" sh -c 'ulimit -s unlimited; ./one'
for how in -static -static-pie -no-pie -fno-pie; do
	says "position independent" sh -c "! '$cc' $how one.c -o other"
done
says "no such flag" sh -c "! '$cc' -mve-nonsense one.c"
says "no such flag" sh -c "! '$cc' -mve-region=63 one.c"
for what in address undefined,thread memory; do
	says "shadow" sh -c "! '$cc' -fsanitize=$what one.c"
done
says "undefined reference to .mve_checkpoint_region_64" sh -c "'$cc' -mve-region=64 -c one.c &&
	! '$cc' one.o -o other"
echo "refused: ok"
