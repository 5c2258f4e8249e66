#!/bin/sh
# ftp.sh SECONDS: a command that only the new version of vsftpd knows is unknown to both
# while the old one leads (rules/vsftpd/unknown.rules); without the rule they differ. The
# old version is the new one's program with another name in the place of STOU.
. "$ROOT/tests/lib.sh"

follower=$("$ROOT/servers/fetch" vsftpd 3.0.5 2>fetch.err) || skip "$(cat fetch.err)"
[ -z "$FETCH_ONLY" ] || exit 0
sed 's/STOU/ST0U/g' "${follower##* }" >vsftpd-old && chmod 755 vsftpd-old
cmp -s "${follower##* }" vsftpd-old && fail "vsftpd does not know STOU"
case $follower in
*\ *) leader="${follower% *} $PWD/vsftpd-old" ;;
*) leader=$PWD/vsftpd-old ;;
esac
rules="--rules $ROOT/rules/vsftpd/unknown.rules"
unknown=STOU
set -- "${1:-5}"
. "$ROOT/tests/follow/vsftpd.sh"
