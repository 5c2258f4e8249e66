#!/bin/sh
# Every rule that the papers print, and every kind of right side, on running
# programs: the follower ends as its leader does, and without the rule it does not.
. "$ROOT/tests/rules/lib.sh"
export XDG_CACHE_HOME="$PWD"
n=0

# run TIER WHAT ARGS: both versions; 0: the follower came to the same end.
run()
{
	tier=$1 what=$2
	shift 2
	timeout 20 "$MVE" run -n "$MVE_SESSION" --tier="$tier" --status now.json \
		-f "$TESTS/printed $what new" "$@" -- "$TESTS/printed" "$what" >out 2>err </dev/null ||
		fail "$what, $tier: the leader: $(cat out err)"
	grep -q "printed: ok" out || fail "$what, $tier: the leader: $(cat out err)"
	grep -q "ended as the leader did" now.json
}

# holds WHAT: by the rules on standard input, and not without them.
holds()
{
	cat >"$1.rules"
	for tier in patch trap; do
		run $tier "$1" --rules "$1.rules" || fail "$1, $tier: $(cat err)"
	done
	case $1 in
	group | begin | order | within) ;;	# queries, and calls that no event is made of
	*) ! run patch "$1" || fail "$1: the same without the rule" ;;
	esac
	[ ! -e log.txt ] || fail "$1: the follower has written a file"
	n=$((n + 1))
}

# paper WHAT TEXT: the rule of tests/rules/paper.rules that has TEXT, to its blank line.
paper()
{
	awk -v text="$2" 'BEGIN { RS = ""; ORS = "\n\n" } index($0, text) || /^#include/ ||
		/^\/\/.*\n#include/' "$RULES/paper.rules" >one
	grep -qFe "$2" one || fail "no rule with $2"
	holds "$1" <one
}

cp "$RULES/paper.h" .
paper ftp "rule vsftpd"
paper dup "dup(_), lseek"
paper reorder "rule reorder"
paper group "group ids"
paper skip "/etc/skip"
paper log "log.txt"
paper count "-> (ret) { \$(ret) = \$(count)"
paper begin "begin =>"

holds discard <<'END'
rule telemetry @discard nothing => sendto(_, "telemetry…", _, _, _, _)
END
holds pread <<'END'
rule pread @discard read(fd, s, _) => pread64(fd, buf, _, _) -> (ret) {
	$(buf) = $(s);
	$(ret) = view_len($(s));
}
END
holds result <<'END'
rule denied openat(_, "/etc/passwd", _, _) as o => o -> { $(ret) = -EACCES; }
END
holds order <<'END'
getuid() as u, getgid() as g => g, u
END
holds within <<'END'
rule two @within 50ms read(_), write(_) => read(_, "z", 1), write(_)
END
holds threads <<'END'
rule turned write(_, "first…", _) as a, write(_, "second…", _) as b => b, a
END
holds clock <<'END'
rule denied clock_gettime(CLOCK_MONOTONIC, _) as c => c -> { $(ret) = -EPERM; }
END
holds then <<'END'
rule polite @then loud write(fd, "hello", n) as w => write(fd, _, _) -> { $(w.buf) = "hello, please"; }
rule loud write(_, "hello, …", _) as w => write(_, _, _) -> { $(ret) = 77; }
END
holds regex <<'END'
let set = /^SET (?<key>\w+) (?<value>.*)\n$/
rule set read(_, ~ set, _) as r => r -> { $(r.buf) = "SET $key STRING $value\n"; }
END
holds message <<'END'
rule sent sendmsg(fd, m, f) { $(m) == "old" } => sendmsg(fd, m, f) -> { $(m) = "newer"; }
rule written writev(fd, v, n) { $(v) == "old" } => writev(fd, v, n) -> { $(v) = "newer"; }
rule got recvmsg(fd, m, f) { $(m) == "oldold" } => recvmsg(fd, m, f) -> { $(m) = "NEWTEXT"; }
END
# own_files.rules is for what a rule opened; the leader's file is sought in by another rule.
holds seek <<'END'
use "own_files.rules"
rule small @discard
	pread64(fd, s, n, off) as r
	=> lseek(fd, off, SEEK_SET) -> (at) { $(at) = $(off); },
	   read(fd, t, n) -> (ret) {
		$(t) = $(s);
		$(ret) = $(r.ret);
	}
END
# Replaced in the middle of a rule: that is followed to its end, then the others hold.
echo 'open(_, _, _) => dup(_), lseek(_, _, _)' >first.rules
echo 'rule other write(1, "old end…", _) => write(1, "new end…", _)' >second.rules
"$MVE" run -n "$MVE_SESSION" --status now.json -f "$TESTS/printed halfway new" \
	--rules first.rules -- "$TESTS/printed" halfway >run.out 2>run.err </dev/null &
pid=$!
for i in $(seq 100); do
	follower=$("$MVE" status "$MVE_SESSION" --json 2>/dev/null |
		sed -n '/"role": "follower"/,$s/.*"pid": \([0-9]*\).*/\1/p' | head -1)
	grep -q "^202 .* 0x1234 " "/proc/${follower:-none}/syscall" 2>/dev/null && break
	sleep 0.1
done
expect 0 "$MVE" rules "$MVE_SESSION" f1 second.rules
wait $pid || fail "halfway: the leader: $(cat run.err)"
grep -q "ended as the leader did" now.json || fail "halfway: $(cat run.err)"
echo "$n kinds of rules"
