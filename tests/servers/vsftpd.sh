#!/bin/sh
# vsftpd: a process for each session; anonymous login, list, get, put; with its
# seccomp sandbox (which the kernel here may refuse to a native one) and without.
. "$ROOT/tests/servers/lib.sh"
need vsftpd python3
[ "$(id -u)" = 0 ] || skip "needs root"

session()	# sandbox YES|NO
{
	name=$MVE_SESSION-$mode-$1
	port=$(free_port)
	sed -e "s,@PORT@,$port,; s,@FOLDER@,$folder,; s,@SANDBOX@,$1," >"$1.conf" <<-END
	listen=YES
	listen_ipv6=NO
	listen_address=127.0.0.1
	listen_port=@PORT@
	background=NO
	anonymous_enable=YES
	no_anon_password=YES
	anon_root=@FOLDER@/ftp
	anon_upload_enable=YES
	anon_umask=022
	write_enable=YES
	local_enable=NO
	secure_chroot_dir=@FOLDER@/empty
	seccomp_sandbox=@SANDBOX@
	ftp_username=www-data
	connect_from_port_20=NO
	pasv_min_port=12000
	pasv_max_port=32000
	xferlog_enable=NO
	END
	start vsftpd "$folder/$1.conf"
	up
	echo "sandbox $1"
	python3 "$here/vsftpd_client.py" "$port"
	held_all
	finish
	session_ended
}

work()
{
	rm -rf ftp
	mkdir -p ftp/in empty
	chmod 755 . ftp empty
	chmod 777 ftp/in
	chown www-data ftp/in
	echo "hello from ftp" >ftp/hello
	head -c 500000 /dev/zero | tr '\0' q >ftp/big
	session NO
	session YES
}

in_each_mode work
