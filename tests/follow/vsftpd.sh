#!/bin/sh
# vsftpd: a process for each visitor: login, list, get, put, delete.
. "$ROOT/tests/follow/lib.sh"
need vsftpd python3
[ "$(id -u)" = 0 ] || skip "needs root"

mkdir -p ftp/in empty
chmod 755 ftp empty
chmod 777 ftp/in
chown www-data ftp/in
echo "hello from ftp" >ftp/hello
seq 1 100000 | head -c 500000 >ftp/big
# It gives up after ten ports that are taken: not among those of clients that have ended.
cat >vsftpd.conf <<-END
listen=YES
listen_ipv6=NO
listen_address=127.0.0.1
listen_port=$port
background=NO
anonymous_enable=YES
no_anon_password=YES
anon_root=$folder/ftp
anon_upload_enable=YES
anon_other_write_enable=YES
anon_umask=022
write_enable=YES
local_enable=NO
secure_chroot_dir=$folder/empty
seccomp_sandbox=NO
ftp_username=www-data
connect_from_port_20=NO
pasv_min_port=12000
pasv_max_port=32000
xferlog_enable=NO
END
lead vsftpd "$folder/vsftpd.conf"
up
# $unknown: a command that this version refuses.
client ftp_load "$port" "$seconds" ftp $unknown
clients_end
leave "$(cat ftp_load.out) requests"
