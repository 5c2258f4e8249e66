#!/bin/sh
# What lies in the cache is native code, and plans by which code is changed: nothing that
# another user can have put there is believed, nothing in it is waited for, and no folder
# that everybody may write is asked.
. "$ROOT/tests/lib.sh"

[ "$(id -u)" = 0 ] || skip "needs root, to have another user beside it"
command -v setpriv >/dev/null || skip "needs setpriv"
other=65534
as_other()
{
	setpriv --reuid=$other --regid=$other --clear-groups "$@"
}

echo "rule never getppid() => nothing" >strict.rules
echo "rule all write(_, _, _) => write(_, _, _)" >planted.rules
"$ROOT/build/rulec" build planted.rules -o planted.so || fail "cannot build the rules"

run()
{
	timeout 60 "$MVE" run -n "$MVE_SESSION" -f same --rules strict.rules -- true >out 2>err </dev/null
}

# 1. A system's unit: neither HOME nor XDG_CACHE_HOME.  No folder in /tmp is made or used.
before=$(ls -A /tmp /var/tmp | grep '^mve-cache' || true)
env -u HOME -u XDG_CACHE_HOME timeout 60 "$MVE" run -n "$MVE_SESSION" -f same \
	--rules strict.rules -- true 2>err || fail "without HOME: status $?: $(cat err)"
[ "$before" = "$(ls -A /tmp /var/tmp | grep '^mve-cache' || true)" ] ||
	fail "a cache in the folder for temporary files"

# 2. The name that the object has, in a cache of our own.
export XDG_CACHE_HOME="$PWD/cache"
run || fail "with a new cache: $(cat err)"
name=$(cd cache/mve && ls ./*.so) || fail "nothing is kept"
cp "cache/mve/$name" good.so
spoiled()
{
	[ ! cache/mve/"$name" -nt stamp ] || fail "$1: the planted object was used"
}

# 3. Another user writes there: what he put there is not used, and mve says whose it is.
plant()
{
	rm -rf cache/mve
	mkdir -p cache/mve
	chmod 755 cache
	cp planted.so planted-by-other.so
	chown $other planted-by-other.so
	mv planted-by-other.so "cache/mve/$name"
	touch -d '2 days ago' "cache/mve/$name"
	touch -d '1 day ago' stamp
}
plant
chown $other cache/mve
run && fail "a folder of another user's is used"
grep -q "$PWD/cache/mve: it belongs to another user" err || fail "not named: $(cat err)"
spoiled "another user's folder"

plant
chmod 777 cache/mve
run && fail "a folder that all may write is used"
grep -q "$PWD/cache/mve: it is open to other users" err || fail "not named: $(cat err)"
spoiled "a folder that all may write"

# 4. The folder is ours, the file is not (it was open for a while).
plant
chmod 700 cache/mve
run || fail "another user's file: $(cat err)"
cmp -s "cache/mve/$name" good.so || fail "another user's object was not replaced"

# 5. A link, a pipe, a folder in its place: no wait, no trust.
for kind in link pipe folder; do
	rm -rf "cache/mve/$name"
	case $kind in
	link) ln -s "$PWD/planted.so" "cache/mve/$name" ;;
	pipe) mkfifo "cache/mve/$name" ;;
	folder) mkdir "cache/mve/$name" ;;
	esac
	run || fail "a $kind in its place: status $?: $(cat err)"
done

# 6. A link in the folder's place leads nowhere.
rm -rf cache/mve elsewhere
mkdir -m 700 elsewhere
ln -s "$PWD/elsewhere" cache/mve
run && fail "a link in the folder's place is followed"
[ -z "$(ls -A elsewhere)" ] || fail "something was written behind a link"
rm cache/mve

# 7. Plans: pipes and strangers' files in their place.
run || fail "again: $(cat err)"
for plan in cache/mve/plans/*.plan; do
	rm "$plan"
	mkfifo "$plan"
done
run || fail "pipes in the plans' place: status $?: $(cat err)"
chown -R $other cache/mve/plans
run || fail "another user's plans: status $?: $(cat err)"

# 8. Reports: into a folder that another user made nothing is written.
export XDG_STATE_HOME="$PWD/state"
mkdir -p state
chmod 777 state
as_other mkdir -m 777 state/mve
"$MVE" report "$MVE_SESSION" >out 2>err && fail "reports of another user's"
grep -q "state/mve: it belongs to another user" err || fail "reports: not named: $(cat err)"
clean
