# bash completion for mve: source it, or put it into
# /usr/share/bash-completion/completions/mve.
#
# Commands, options and the words that an option takes are read from --help, so
# they are always those of the mve that is completed.

# The names in the JSON on standard input: sessions of `mve ps`, versions of a status.
_mve_names()
{
	grep -oE '"name": ?"[^"]*"' | sed 's/.*: *"//; s/"$//'
}

_mve_options()
{
	"$1" $2 --help 2>/dev/null | grep -oE '(^|[][ (|,])--?[a-z][a-z-]*' |
		sed 's/^[][ (|,]*//' | sort -u
	echo --help
}

# The words behind an option: `--tier=patch|trap`; those in capitals are no words.
_mve_words()
{
	"$1" $2 --help 2>/dev/null | grep -oE -e "$3[ =][a-z|:A-Z]*\|[a-z|:A-Z]*" | head -1 |
		sed 's/^[^ =]*[ =]//' | tr '|' '\n' | sed 's/:.*/:/' | grep '^[a-z]'
}

_mve_place()
{
	local i n=0

	for ((i = 2; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in -*) ;; *) n=$((n + 1)) ;; esac
	done
	echo $n
}

_mve()
{
	local mve=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]}
	local last=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} i

	if [ "$COMP_CWORD" = 1 ]; then
		COMPREPLY=($(compgen -W "$("$mve" --help | sed -n 's/^  mve \([a-z]*\).*/\1/p')
			--help --version" -- "$current"))
		return
	fi
	for ((i = 2; i < COMP_CWORD; i++)); do
		[ "${COMP_WORDS[i]}" = -- ] || continue
		COMPREPLY=($(compgen -c -- "$current") $(compgen -f -- "$current"))
		return
	done
	# bash takes `--tier=patch` apart at the sign.
	[ "$current" = "=" ] && current=
	[ "$last" = "=" ] && last=${COMP_WORDS[COMP_CWORD-2]}
	case $command:$last in
	run:--rules | replay:--rules) COMPREPLY=($(compgen -f -X '!*.@(rules|so)' -- "$current") $(compgen -d -- "$current")) ;;
	*:--status | *:-o | *:--output) COMPREPLY=($(compgen -f -- "$current")) ;;
	run:--record) COMPREPLY=($(compgen -d -- "$current")) ;;
	update:--to | update:--xform | update:--rules | update:--reverse)
		COMPREPLY=($(compgen -f -- "$current")) ;;
	run:-f | run:--follow) COMPREPLY=($(compgen -W same -- "$current") $(compgen -c -- "$current")) ;;
	*:--*) COMPREPLY=($(compgen -W "$(_mve_words "$mve" "$command" "$last")" -- "$current")) ;;
	esac
	[ ${#COMPREPLY[@]} = 0 ] || return
	case $current in
	-*) COMPREPLY=($(compgen -W "$(_mve_options "$mve" "$command")" -- "$current")); return ;;
	esac
	case $command:$(_mve_place) in
	run:* | trace:* | ps:* | doctor:*) ;;
	replay:0 | log:0 | bisect:0) COMPREPLY=($(compgen -d -- "$current")) ;;
	log:1) COMPREPLY=($(compgen -W "show connections export verify pack" -- "$current")) ;;
	go:1) COMPREPLY=($(compgen -W end -- "$current")) ;;
	replay:* | log:* | bisect:*) ;;
	*:0) COMPREPLY=($(compgen -W "$("$mve" ps --json 2>/dev/null | _mve_names)" -- "$current")) ;;
	drop:1 | promote:1 | rules:1)
		COMPREPLY=($(compgen -W "$("$mve" status "${COMP_WORDS[2]}" --json 2>/dev/null |
			grep -B1 '"role": "follower"' | _mve_names)" -- "$current")) ;;
	rules:2) COMPREPLY=($(compgen -f -X '!*.@(rules|so)' -- "$current") $(compgen -d -- "$current")) ;;
	esac
}
complete -o filenames -F _mve mve
