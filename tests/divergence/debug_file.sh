#!/bin/sh
# A build names the file of its debug information: it is read with the version's rights, if it
# is a regular one.  Else a report's stack has names and no lines.
. "$ROOT/tests/lib.sh"

cat >named.c <<'EOF'
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) static long say(void)
{
	static const char text[] = { '0' + VERSION, '\n' };

	return write(1, text, 2);
}

int main(int argc, char **argv)
{
	if (argc > 1 && argv[1][0] == 'n' && setresuid(65534, 65534, 65534))
		perror("setresuid");
	return say() != 2;
}
EOF
chmod 755 .

# build ID: both, their debug information apart.
build()
{
	for version in 1 2; do
		gcc -O1 -g -Wl,--build-id="$1" -D_GNU_SOURCE -DVERSION=$version -o v$version \
			named.c 2>err || fail "gcc: $(cat err)"
		rm -f v$version.debug
		objcopy --only-keep-debug v$version v$version.debug &&
			objcopy --strip-debug --add-gnu-debuglink=v$version.debug v$version ||
			fail objcopy
	done
}

# named WAY PATTERN: the stack's functions, innermost first, each with its line or 0.
named()
{
	"$MVE" run -n "$MVE_SESSION" -f "./v2 $1" -- ./v1 "$1" >out 2>err || fail "$(cat err)"
	"$MVE" report --json "$MVE_SESSION" >report.json || fail "no report: $(cat err)"
	got=$(python3 -c 'import json, sys
for f in json.load(sys.stdin)["follower"]["stack"]:
    print(f.get("function", "?"), f.get("line", 0), end=" ")' <report.json)
	echo "$got" | grep -qE "$2" || fail "$id, $1: $got"
}

for id in sha1 none; do
	build $id
	named root "say [1-9].* main [1-9]"
	mkdir -p .debug
	mv v2.debug .debug
	named root "say [1-9].* main [1-9]"
	mv .debug/v2.debug other
	{ cat v1.debug; echo; } >v2.debug	# of another id, or sum
	named root "say 0 .*main 0 "
	rm v2.debug
	mkfifo v2.debug
	named root "say 0 .*main 0 "
	rm v2.debug
	mv other v2.debug
	[ "$(id -u)" = 0 ] || continue
	named nobody "say [1-9].* main [1-9]"
	chmod 600 v2.debug
	named nobody "say 0 .*main 0 "
	named root "say [1-9].* main [1-9]"
done
clean
echo "debug_file: ok"
