#!/bin/sh
# ways.sh ROUNDS: random.c with the ways that ours is compared with.
set -eu
rounds=$1
cc=$ROOT/build/checkpoint/mve-cc
[ -x "$cc" ] || { echo "mve-cc is not built"; exit 77; }
"$cc" -O2 -mve-undo "$ROOT/tests/checkpoint/random.c" -o undo
"$cc" -O2 -mve-no-checks "$ROOT/tests/checkpoint/random.c" -o pages

# way NAME PROGRAM DEPTH [alone]: by a pipe, for with fork it is not the first process that ends it.
way()
{
	MVE_CHECKPOINT_WAY=$1 "./$2" "$rounds" 0 "$3" ${4-} 2>&1 | cat >out
	grep -q '^random: ok$' out || { echo "$1:"; cat out; exit 1; }
}

way undo undo 4 alone
way scan pages 4
GLIBC_TUNABLES=glibc.pthread.rseq=0 way mprotect pages 1
way fork pages 1

# More than are opened until memory is looked for anew, each dropped, with pages that it left as
# they were; the kernel writes to some, between.
cat >drops.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <mve/checkpoint.h>
static char pages[64 * 4096];
int main(void)
{
	clearenv();
	for (int n = 0; n < 600; n++) {
		if (mve_checkpoint_open())
			return puts(mve_checkpoint_why());
		pages[n % 64 * 4096]++;
		mve_checkpoint_drop();
		if (getcwd(pages + (n + 1) % 64 * 4096 + 16, 1000) == NULL)
			return puts("what the kernel writes is shut");
	}
	if (mve_checkpoint_open() == 1)
		return puts(pages[63 * 4096] == 9 ? "ok" : "another value");
	pages[63 * 4096] = 0;
	mve_checkpoint_restore();
}
END
"$cc" -D_GNU_SOURCE -O2 -mve-no-checks drops.c -o drops
for name in scan mprotect; do
	GLIBC_TUNABLES=glibc.pthread.rseq=0 MVE_CHECKPOINT_WAY=$name ./drops >out || true
	grep -q '^ok$' out || { echo "$name, dropped:"; cat out; exit 1; }
done

# A request that comes in two pieces, with nothing between them that ends one.
cat >pieces.c <<'END'
#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
static char pages[4 * 4096];
int main(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	int listens = socket(AF_INET, SOCK_STREAM, 0), to = socket(AF_INET, SOCK_STREAM, 0), fd;

	if (bind(listens, (void *)&at, size) || listen(listens, 1) ||
	    getsockname(listens, (void *)&at, &size) || connect(to, (void *)&at, size) ||
	    write(to, "ab", 2) != 2 || (fd = accept(listens, NULL, NULL)) < 0)
		return 1;
	for (int n = 1; n < 3; n++)
		if (read(fd, pages + n * 4096 + 100, 1) != 1)
			return puts("a piece is not read");
	return puts("ok") < 0;
}
END
"$cc" -D_GNU_SOURCE -O2 -mve-no-checks pieces.c -o pieces
for name in scan mprotect fork; do
	GLIBC_TUNABLES=glibc.pthread.rseq=0 MVE_CHECKPOINT_SEAM=1 MVE_CHECKPOINT_WAY=$name ./pieces |
		cat >out
	grep -q '^ok$' out || { echo "$name, in pieces:"; cat out; exit 1; }
done
! MVE_CHECKPOINT_WAY=none ./pages 1 >out 2>&1 || { echo "a way that there is not"; exit 1; }
grep -q "no such way" out
echo "ways: ok"
