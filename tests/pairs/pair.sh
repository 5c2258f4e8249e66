#!/bin/sh
# pair.sh SCRIPT PACKAGE LEADER FOLLOWER SECONDS [COMMAND]: SCRIPT of tests/follow, with
# two versions of PACKAGE (servers/fetch has what may be asked for) and the rules for
# the pair, if there is such a file: rules/SCRIPT/OLDER-NEWER.rules, or for two updates of
# one release rules/SCRIPT/updates.rules.
script=$1 package=$2 first=$3 second=$4 seconds=$5 command=$6

. "$ROOT/tests/lib.sh"

# fetch OPTION...: as servers/fetch does.
fetch()
{
	"$ROOT/servers/fetch" "$@" 2>fetch.err || skip "$(cat fetch.err)"
}

# start_of VERSION: the words that start it.
start_of()
{
	# shellcheck disable=SC2086 # none is no word
	words=$(fetch "$package" "$1" $command) || skip "$words"
	if [ "$script" = lighttpd ]; then
		words="$words -m $(fetch --root "$package" "$1")/usr/lib/lighttpd"
	fi
	echo "$words"
}

# more_of VERSION: what is said to a follower alone: a default that has changed.
more_of()
{
	case $script-$1 in
	redis-8.*) echo --max-new-connections-per-cycle 1000 ;;
	esac
}

follower_more=$(more_of "$second")
leader=$(start_of "$first") || skip "$leader"
follower=$(start_of "$second") || skip "$follower"
[ -z "$FETCH_ONLY" ] || exit 0
# release_of VERSION: without what Debian has put around it.
release_of()
{
	echo "$1" | sed 's/^[0-9]*://; s/-.*//'
}

older=$(printf '%s\n%s\n' "$first" "$second" | sort -V | head -1)
oldest=$(release_of "$older")
rules=
if [ "$older" = "$first" ]; then
	file=$first-$second.rules
else
	file=$second-$first.rules
	rules=--older
fi
if [ "$(release_of "$first")" = "$(release_of "$second")" ]; then
	file=updates.rules
	oldest=
fi
if [ -f "$ROOT/rules/$script/$file" ]; then
	rules="--rules $ROOT/rules/$script/$file $rules"
else
	rules=
fi
# $oldest: what releases that differ have in common.
set -- "$seconds"
. "$ROOT/tests/follow/$script.sh"
