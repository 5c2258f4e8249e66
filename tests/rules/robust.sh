#!/bin/sh
# rulec that is killed, or has no room or right to write: the output is the old one
# or the new one, never a part; what is wrong is said, with status 3.
. "$ROOT/tests/rules/lib.sh"

# Small disks are mounted in a namespace that ends with this shell.
if [ -z "$ROBUST_DISK" ] && [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
	ROBUST_DISK=1 exec unshare -m "$0"
fi

cp "$ROOT"/rules/kv/kv.rules "$ROOT"/rules/kv/kv.h .
# took FILE: milliseconds that a build of it takes.
took()
{
	began=$(date +%s%N)
	expect 0 "$RULEC" build kv.rules -o "$1"
	echo $((($(date +%s%N) - began) / 1000000))
}

so_ms=$(took new.so) c_ms=$(took new.c)
echo "the old output" >old

# whole FILE: it is the old one or the new one of its kind.
whole()
{
	cmp -s "$1" old || cmp -s "$1" "new.${1##*.}" || fail "half of $1 is there"
}

# Killed at a random moment of the build.
killed=0
for i in $(seq 1 60); do
	kind=$([ $((i % 3)) = 0 ] && echo c || echo so)
	most=$([ $kind = c ] && echo "$c_ms" || echo "$so_ms")
	cp old "out.$kind"
	"$RULEC" build kv.rules -o "out.$kind" >/dev/null 2>&1 &
	pid=$!
	sleep "$(od -An -N1 -tu1 /dev/urandom | awk "{ print \$1 * $most / 256000 }")"
	kill -9 $pid 2>/dev/null && killed=$((killed + 1))
	wait $pid 2>/dev/null
	whole "out.$kind"
done
[ $killed -gt 10 ] || fail "only $killed were killed in time"
rm -rf tmp/* out.*

# Ended in a nicer way, it leaves nothing at all.
for sig in INT TERM HUP; do
	"$RULEC" build kv.rules -o out.so >/dev/null 2>&1 &
	pid=$!
	sleep 0.05
	kill -$sig $pid 2>/dev/null
	wait $pid 2>/dev/null
	[ -z "$(ls -A tmp)" ] || fail "left behind after $sig: $(ls -A tmp)"
	rm -f out.so
done
[ -z "$(ls out.* 2>/dev/null)" ] || fail "left behind: $(ls out.*)"

# Warnings are errors: no output then.
expect 1 "$RULEC" -W build "$RULES/bad/overlap.rules" -o out.so
[ ! -e out.so ] || fail "-W leaves an output"

# What is no file is written to, not replaced.
[ "$(id -u)" != 0 ] || mknod -m 666 null c 1 3 2>/dev/null
if [ -c null ]; then
	expect 0 "$RULEC" graph kv.rules -o null
	[ -c null ] || fail "a device was replaced"
fi
expect 3 "$RULEC" graph kv.rules -o /dev/full
grep -q "^rulec: cannot write: /dev/full: No space" err || fail "$(cat err)"
timeout 20 "$RULEC" fmt kv.rules >/dev/full 2>err
[ $? = 3 ] && grep -q "^rulec: cannot write: standard output: No space" err || fail "$(cat err)"

clean
[ -n "$ROBUST_DISK" ] || exit 0
mkdir -p disk

# disk SIZE: an empty one of that size.
disk()
{
	umount disk 2>/dev/null
	mount -t tmpfs -o "size=$1,mode=700" none disk || exit 0
}

# No room for the output: the old one stays.
for kind in so c; do
	disk 8k
	cp old "disk/out.$kind"
	head -c 4096 /dev/zero >disk/filler
	expect 3 "$RULEC" build kv.rules -o "disk/out.$kind"
	grep -q "^rulec: cannot write: disk/out.$kind: No space" err || fail "$(cat err)"
	cmp -s "disk/out.$kind" old || fail "the old output is gone"
	[ "$(ls disk | wc -l)" = 2 ] || fail "left behind: $(ls disk)"
done

# No room to work in, at any stage: never the rules' fault.
rooms=0
for size in 4k 8k 16k 32k 48k 64k 80k 96k 128k 160k 256k 512k 2m; do
	disk $size
	cp old out.so
	TMPDIR=$PWD/disk timeout 60 "$RULEC" build kv.rules -o out.so >out 2>err
	status=$?
	case $status in
	0) rooms=$((rooms + 1)) ;;
	3) grep -q "^rulec: " err || fail "$size: it does not say why" ;;
	*) fail "$size: status $status: $(cat err)" ;;
	esac
	whole out.so
	[ -z "$(ls -A disk)" ] || fail "$size: left behind: $(ls -A disk)"
done
[ $rooms -ge 1 ] && [ $rooms -le 10 ] || fail "$rooms of the sizes were enough"

mount -o remount,ro disk
expect 3 "$RULEC" build kv.rules -o disk/out.so
grep -q "^rulec: cannot write: disk/out.so: Read-only" err || fail "$(cat err)"
expect 3 env TMPDIR="$PWD/disk" "$RULEC" build kv.rules -o out.so
grep -q "^rulec: cannot make a folder: .*: Read-only" err || fail "$(cat err)"
