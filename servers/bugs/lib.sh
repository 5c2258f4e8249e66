# What is common to bugs that a native server survives and a sanitizer sees;
# sourced.  Each has a folder here: its bug.sh says what it is and sets
#
#	server, without, change	 the edition that has it, as servers/build takes them
#	report, function	 words of AddressSanitizer's report, and where it points
#	alive, reply		 a request that any healthy server answers with this
#	arguments()		 writes what the server needs into the folder that is
#				 current and sets $words, what stands behind the
#				 program, to serve $port; $spare is a second free one
#
# and `request` there is what is sent: the bytes as they are.  bug.sh may define
# bug_begin, started before the server; its pid in $helpers.

bugs=$root/servers/bugs
bug_names()
{
	for one in "$bugs"/*/bug.sh; do
		basename "$(dirname "$one")"
	done
}

# bug_load NAME: false when there is no such bug.
bug_load()
{
	bug=$1 without='' change='' helpers=''
	[ -f "$bugs/$bug/bug.sh" ] || return
	bug_begin() { :; }
	. "$bugs/$bug/bug.sh"
}

# bug_program EDITION: the server with the bug, built if need be.
bug_program()
{
	if [ "$server" = httpd ]; then
		make -s -C "$root" httpds >&2 || return
		[ "$1" = plain ] && echo "$root/build/servers/httpd" ||
			echo "$root/build/servers/httpd-$1"
	else
		"$root/servers/build" "$server" "$1" ${without:+--without "$without"} \
			${change:+--patch "$bugs/$bug/$change"}
	fi
}

# bug_send FILE: sends it and shows what came back.
bug_send()
{
	python3 "$bugs/send.py" "$port" "$1"
}

# bug_alive: does the server answer as a healthy one?
bug_alive()
{
	printf "$alive" | python3 "$bugs/send.py" "$port" - | grep -qa "$reply"
}
