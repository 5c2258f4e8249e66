# bash completion for rulec: source it, or put it into
# /usr/share/bash-completion/completions/rulec.
_rulec()
{
	local current=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD-1]} word command=
	local commands="check build fmt test explain graph"

	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		case " $commands " in *" $word "*) command=$word ;; esac
	done
	case $last in
	-s) COMPREPLY=($(compgen -W "old new" -- "$current")); return ;;
	-d) COMPREPLY=($(compgen -W "resolve bind check overlap" -- "$current")); return ;;
	-e | -c) return ;;
	-o) COMPREPLY=($(compgen -f -- "$current")); return ;;
	esac
	if [ -z "$command" ]; then
		COMPREPLY=($(compgen -W "$commands -W -d -h --help" -- "$current"))
	elif [ "${current#-}" != "$current" ]; then
		case $command in
		build | fmt | graph) COMPREPLY=($(compgen -W "-o" -- "$current")) ;;
		explain) COMPREPLY=($(compgen -W "-e -c -s" -- "$current")) ;;
		esac
	else
		COMPREPLY=($(compgen -f -X '!*.rules' -- "$current") $(compgen -d -- "$current"))
		[ "$command" = test ] && COMPREPLY+=($(compgen -f -X '!*.t' -- "$current"))
	fi
}
complete -o filenames -F _rulec rulec
