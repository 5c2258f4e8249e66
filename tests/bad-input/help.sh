#!/bin/sh
# Help is found where one looks for it, and every way to ask for it says the same.
. "$ROOT/tests/lib.sh"

says()
{
	"$MVE" "$@" >out 2>err || fail "$*: status $?: $(cat err)"
	[ -s out ] && [ ! -s err ] || fail "$*: says nothing, or complains: $(cat err)"
}

says --help
cp out usage
for way in -h help; do
	says $way
	cmp -s out usage || fail "$way is not --help"
done
commands=$(sed -n 's/^  mve \([a-z]*\).*/\1/p' usage)
[ "$(echo "$commands" | wc -l)" -ge 13 ] || fail "few commands are listed: $commands"
for command in $commands; do
	says $command --help
	grep -q "^usage: mve $command" out || fail "$command --help: $(head -1 out)"
	cp out text
	says $command -h
	cmp -s out text || fail "$command -h is not its --help"
	says help $command
	cmp -s out text || fail "help $command is not its --help"
	[ "$(wc -L <text)" -le 80 ] || fail "$command --help: a line of $(wc -L <text) columns"
done
says --version
cp out text
for way in version -V; do
	says $way
	cmp -s out text || fail "$way is not --version"
done
refused 2 "frobnicate" "$MVE" help frobnicate
clean
