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

complete_words()
{
	bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _rulec; echo "${COMPREPLY[@]}"' \
		bash "$ROOT/tools/completion/rulec.bash" "$@"
}
[ "$(complete_words rulec ex)" = explain ] || fail "commands"
[ "$(complete_words rulec explain x.rules -s o)" = old ] || fail "stages"
touch a.rules a.t
complete_words rulec test a | grep -q 'a.rules.*a.t\|a.t.*a.rules' || fail "files"
complete_words rulec check a | grep -q 'a\.t' && fail "check completes tests"
clean
