#!/bin/sh
# dropbear: logs in with a key, runs commands with and without a terminal,
# copies a file through; a process for each session.
. "$ROOT/tests/servers/lib.sh"
need dropbear dropbearkey dbclient
[ "$(id -u)" = 0 ] || skip "needs root: dropbear logs its own user in"

ssh()
{
	dbclient -y -y -i "$folder/key" -p "$port" "$@" 2>ssh.err
}

work()
{
	HOME=$folder
	export HOME
	dropbearkey -t ed25519 -f host >/dev/null 2>&1
	dropbearkey -t ed25519 -f key 2>/dev/null | grep ^ssh- >"$top/keys"
	mkdir auth && cp "$top/keys" auth/authorized_keys
	chmod 700 auth && chmod 600 auth/authorized_keys
	# Only the user's own ~/.ssh is looked at; -D names another where it is known.
	if dropbear -h 2>&1 | grep -q -- ' -D'; then
		set -- -D "$folder/auth"
	else
		home=$(getent passwd root | cut -d: -f6)
		[ ! -e "$home/.ssh/authorized_keys" ] || skip "$home/.ssh/authorized_keys is in use"
		mkdir -p "$home/.ssh" && chmod 700 "$home/.ssh"
		cp -p auth/authorized_keys "$home/.ssh/authorized_keys"
		chmod go-w "$home"
		trap 'end_rest; rm -f "$home/.ssh/authorized_keys"' EXIT
	fi
	start dropbear -F -E -r "$folder/host" -p "127.0.0.1:$port" -P "$folder/pid" -s "$@"
	up
	ssh root@127.0.0.1 'echo hello; id -u; exit 3'
	echo "status $?"
	ssh -t root@127.0.0.1 'tty | tr -d 0-9; stty size' </dev/null
	head -c 2000000 /dev/zero | tr '\0' z | ssh root@127.0.0.1 cksum
	held_from
	# More than its window comes to no end now and then, natively, too, on a busy machine.
	ssh root@127.0.0.1 'head -c 15000 /dev/zero' | cksum
	ssh root@127.0.0.1 'for i in 1 2 3; do sh -c "echo \$PPID >/dev/null; echo $i"; done | sort -r'
	held_all
	finish
}

in_each_mode work
