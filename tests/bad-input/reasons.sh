#!/bin/sh
# A message names the object once, as its user knows it, and the reason.
. "$ROOT/tests/lib.sh"

run="$MVE run -n $MVE_SESSION"
refused 2 "cannot read the rules: ./none.rules: No such file" \
	$run -f same --rules ./none.rules -- true
refused 2 "cannot read the rules: $PWD: it is no file" $run -f same --rules "$PWD" -- true
mkfifo pipe
for what in "$PWD" ./pipe /dev/zero; do
	refused 2 "cannot read the reply: $what: it is no file" \
		timeout 20 $run --rollback --reply "$what" -- true
done

printf '#!/none/such\n' >script
chmod 755 script
refused 127 "$PWD/script: its interpreter is not found" $run -- "$PWD/script"

# Processes of a limit: what is to be raised.
for what in "n 16:open files" "v 200000:ulimit -v"; do
	sh -c "ulimit -${what%%:*}; exec $run -f same -- true" >out 2>err </dev/null
	[ $? = 3 ] || fail "ulimit -${what%%:*}: $(cat err)"
	grep -q "^hint: .*${what#*:}" err || fail "ulimit -${what%%:*}: $(cat err)"
	clean
done

# Whatever the limit is: the program runs, with its follower, or it is said what is too low.
for limit in 14 17 20 22 24 26 30 36 44 64; do
	timeout 20 sh -c "ulimit -n $limit; exec $run -f same -- sh -c 'exit 9'" >out 2>err \
		</dev/null
	status=$?
	case $status in
	3) grep -q "^hint: .*open files" err || fail "ulimit -n $limit: $(cat err)" ;;
	9) [ ! -s err ] || fail "ulimit -n $limit: $(cat err)" ;;
	*) fail "ulimit -n $limit: status $status: $(cat err)" ;;
	esac
	clean
done
[ $status = 9 ] || fail "64 descriptors are not enough"

if unshare -m true 2>/dev/null; then
	refused 3 "cannot begin a session: /proc: it is not there" \
		unshare -m sh -c "umount -l /proc; exec $run -- true"
fi

# A 32-bit program that the server starts: the path is the server's.
printf '\177ELF\1\1\1\0\0\0\0\0\0\0\0\0\2\0\3\0\1\0\0\0' >old
head -c 100 /dev/zero >>old
chmod 755 old
$run -- sh -c "$PWD/old; true" >out 2>err
grep -q "^mve: cannot hold a program: $PWD/old: it is a 32-bit" err || fail "32 bits: $(cat err)"

# Those of a session, which goes on.
no()
{
	code=$1 text=$2
	shift 2
	"$@" >out 2>err
	[ $? = "$code" ] && grep -q -- "$text" err || fail "$*: $(cat err)"
}
$run -f same -- sleep 20 &
until "$MVE" status "$MVE_SESSION" 2>/dev/null | grep -q f1; do sleep 0.1; done
no 1 "cannot drop: none: no such follower$" "$MVE" drop "$MVE_SESSION" none
no 1 "cannot promote: v0: it leads$" "$MVE" promote "$MVE_SESSION" v0
no 1 "started without --stateless" "$MVE" follow "$MVE_SESSION" -- true
for value in 0 x; do
	no 2 "not a value of --seconds: $value" "$MVE" audit "$MVE_SESSION" --seconds $value
done
no 2 "not a value of --interval: 0" "$MVE" top "$MVE_SESSION" --interval 0
"$MVE" promote "$MVE_SESSION" f1 --keep --wait || fail "f1 does not lead"
"$MVE" drop "$MVE_SESSION" v0 2>/dev/null
! "$MVE" status "$MVE_SESSION" | grep -q "pid 0" || fail "a pid of nobody"
"$MVE" stop "$MVE_SESSION" || fail "it cannot be stopped"
wait
clean

# Who was replaced is said to be that.
$run -f same -- sleep 20 2>err.run &
until "$MVE" status "$MVE_SESSION" 2>/dev/null | grep -q f1; do sleep 0.1; done
"$MVE" promote "$MVE_SESSION" f1 --wait || fail "f1 does not lead"
no 1 "cannot promote: v0: it has ended: replaced$" "$MVE" promote "$MVE_SESSION" v0
grep -q "f1 leads (v0 replaced)" err.run || fail "$(cat err.run)"
"$MVE" stop "$MVE_SESSION" || fail "it cannot be stopped"
wait
clean
