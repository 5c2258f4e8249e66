#!/bin/sh
# A program that is started with other words, and an end with another status: the report has
# both sides' calls, as of any other.
. "$ROOT/tests/lib.sh"

cat >life.c <<'EOF'
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc > 1 && argv[1][0] == 'x')
		execl("/bin/true", "true", argv[1], (char *)0);
	_exit(argc > 1 ? argv[1][0] - '0' : 0);
}
EOF
gcc -O1 -o life life.c 2>err || fail "gcc: $(cat err)"

# differs LEADERS FOLLOWERS WORDS: what is said, and what stands in the report.
differs()
{
	"$MVE" run -n "$MVE_SESSION" -f "./life $2" -- ./life "$1" >out 2>err
	grep -q "f1: diverged: $3" err || fail "$2: $(cat err)"
	"$MVE" report "$MVE_SESSION" --json >report.json
	python3 - "$1" "$2" report.json <<'EOF' || fail "$2: $(cat report.json)"
import json, sys
report = json.load(open(sys.argv[3]))
for side, word in (("leader", sys.argv[1]), ("follower", sys.argv[2])):
    assert word in report[side]["call"], side
assert not report["window"][-1]["same"]
EOF
	clean
}

differs 3 4 "exit_group(4) argument status is 4, the leader's 3"
differs xa xb 'execve("/bin/true", \["true", "xb"\]'
