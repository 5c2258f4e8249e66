#!/bin/sh
# The editor's syntax file loads and knows what is what; completion completes.
. "$ROOT/tests/rules/lib.sh"

if command -v vim >/dev/null && vim --version | grep -q '+syntax'; then
	cp "$ROOT/rules/kv/kv.rules" .
	vim -u NONE -es -N --cmd "set runtimepath+=$ROOT/tools/vim" \
		-c 'syntax on' -c 'filetype on' -c 'edit kv.rules' -c 'redir! > names' \
		-c 'echo synIDattr(synID(6, 1, 1), "name")' \
		-c 'echo synIDattr(synID(9, 1, 1), "name")' -c 'redir END' -c 'qa!' </dev/null
	grep -q rulesKeyword names || fail "vim: $(cat names)"
fi

# It knows every attribute that rulec does.
echo '@no_such getpid() => nothing' >no_such.rules
expect 1 "$RULEC" check no_such.rules
for name in $(grep "^hint: there are" err | tr -d , | grep -o '@[a-z]*'); do
	grep "^syntax match rulesAttribute" "$ROOT/tools/vim/syntax/mverules.vim" |
		grep -q "[(|]${name#@}\\\\" || fail "vim does not know $name"
	n=$((${n:-0} + 1))
done
[ "${n:-0}" -ge 10 ] || fail "attributes: $(cat err)"

# What bash would complete: PROGRAM WORDS..., the last one begun.
complete_words()
{
	bash -O extglob -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
		_$(basename "$1"); [ ${#COMPREPLY[@]} = 0 ] || printf "%s\n" "${COMPREPLY[@]}"' \
		bash "$ROOT/tools/completion/$(basename "$1").bash" "$@" | sort -u
}

# options TEXT: all that it names.
options()
{
	grep -oE "(^|[^a-zA-Z0-9-])--?[a-zA-Z][a-z-]*" | grep -oE -e '--?[a-zA-Z].*' | sort -u
}

same()
{
	[ "$2" = "$3" ] || fail "$1: $(printf '%s\n-- and not --\n%s\n' "$2" "$3")"
}

# rulec
[ "$(complete_words "$RULEC" ex)" = explain ] || fail "commands"
[ "$(complete_words "$RULEC" explain x.rules -s o)" = old ] || fail "stages"
touch a.rules a.t
[ "$(complete_words "$RULEC" test a | tr '\n' ' ')" = "a.rules a.t " ] || fail "files"
complete_words "$RULEC" check a | grep -q 'a\.t' && fail "check completes tests"
"$RULEC" --help >help
same "rulec's commands" "$(complete_words "$RULEC" '' | grep -v ^-)" \
	"$(sed -n 's/^       rulec \([a-z]*\) .*/\1/p' help | sort)"
for command in '' $(sed -n 's/^       rulec \([a-z]*\) .*/\1/p' help); do
	complete_words "$RULEC" $command - | grep ^-
done | sort -u >completed
same "rulec's options" "$(cat completed)" "$(options <help)"

# mve: each command's options are those of its --help.
MVE=${MVE:-$ROOT/build/mve}
commands=$("$MVE" --help | sed -n 's/^  mve \([a-z]*\).*/\1/p' | sort)
same "mve's commands" "$(complete_words "$MVE" '' | grep -v ^-)" "$commands"
[ "$(echo "$commands" | wc -l)" -gt 10 ] || fail "mve --help: $commands"
for command in $commands; do
	same "mve $command" "$(complete_words "$MVE" $command -)" \
		"$( ("$MVE" $command --help; echo --help) | options)"
done
same "a tier" "$(complete_words "$MVE" run --tier = t)" trap
same "a policy" "$(complete_words "$MVE" run -f same --on-divergence '' | tr '\n' ' ')" \
	"alarm: ignore promote retry stop "
same "rules" "$(complete_words "$MVE" run -f same --rules a)" a.rules
complete_words "$MVE" run -- tru | grep -qx true || fail "a command"
"$MVE" run -n "$MVE_SESSION" -f 'sleep 20' --name second -- sleep 20 >/dev/null 2>&1 &
# Both are there: a session is listed when it has begun, and its follower is one a while later.
both_are_there()
{
	"$MVE" ps --json | grep -q "\"name\": *\"$MVE_SESSION\"" &&
		"$MVE" status "$MVE_SESSION" --json 2>/dev/null | grep -A1 '"second"' |
		grep -q '"role": "follower"'
}
until both_are_there; do
	kill -0 $! 2>/dev/null || fail "the session has ended"
	sleep 0.05
done
same "a session" "$(complete_words "$MVE" stop "$MVE_SESSION")" "$MVE_SESSION"
same "a follower" "$(complete_words "$MVE" drop "$MVE_SESSION" '')" second
"$MVE" stop "$MVE_SESSION" --kill >/dev/null 2>&1
wait

# The manual pages have every command and option, and are well formed.
# page PAGE: as text, with hyphens that are only that.
page()
{
	if command -v groff >/dev/null; then
		groff -man -Tascii -P-cbou -ww -z "$1" 2>warnings
		[ ! -s warnings ] || fail "$1: $(head -3 warnings)"
	fi
	sed 's/\\-/-/g; s/\\f[BIRP]//g' "$1"
}
page "$ROOT/docs/rulec.1" >rulec.txt
page "$ROOT/docs/mve.1" >mve.txt
for option in $(options <help); do
	grep -qE -e "(^|[^a-z-])$option([^a-z-]|$)" rulec.txt || fail "rulec.1 lacks $option"
done
for command in $commands; do
	grep -q "^\.SS mve.* $command" mve.txt || fail "mve.1 lacks $command"
	for option in $("$MVE" $command --help | options); do
		grep -qE -e "(^|[^a-z-])$option([^a-z-]|$)" mve.txt || fail "mve.1 lacks $option"
	done
done
clean
