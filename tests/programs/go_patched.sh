#!/bin/sh
# Go's calls are patched in each of its ways to link, stripped ones included: its files keep
# a table of their functions (plan_go.c).
. "$(dirname "$0")/../lib.sh"

here=$ROOT/tests/programs
export GO111MODULE=off
mkdir plain c
cp "$here/go_calls.go" plain/
cp "$here/go_calls.go" c/
printf 'package main\nfunc fromC() int { return 1 }\n' >plain/from.go
printf 'package main\n// #include <unistd.h>\n// static int p(void) { return getppid(); }\nimport "C"\nfunc fromC() int { return int(C.p()) }\n' >c/from.go

# way FOLDER CGO ARGUMENTS...: nearly all sites of the program are patched.
way()
{
	folder=$1 cgo=$2
	shift 2
	(cd $folder && CGO_ENABLED=$cgo go build -o ../program "$@" .) >built 2>&1 ||
		fail "go build $*: $(cat built)"
	MVE_LOG=patch "$MVE" run -n "$MVE_SESSION" -- ./program >out 2>err || fail "$*: $(cat err)"
	grep -q "go_calls: ok" out || fail "$*: $(cat out)"
	sed -n 's,.*/program: \([0-9]*\) patched\, \([0-9]*\) left.*,\1 \2,p' err >sites
	read patched left <sites
	[ "${patched:-0}" -gt $((10 * left)) ] || fail "$folder $*: $(cat sites): $(cat err)"
}

way plain 0
way plain 0 -ldflags "-s -w"
way plain 0 -buildmode=pie -ldflags "-s -w"
way c 1 -ldflags "-s -w"
way c 1 -buildmode=pie -ldflags "-s -w"
echo "go_patched: ok"
