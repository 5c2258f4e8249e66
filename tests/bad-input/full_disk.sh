#!/bin/sh
# A session folder on a full disk: 3, and nothing is started or left.
. "$ROOT/tests/lib.sh"

[ "$(id -u)" = 0 ] || skip "needs root, to mount"
unshare -m true 2>/dev/null || skip "needs unshare -m"

# Inside a mount namespace of its own, so that the mount ends with it.
if [ -z "$MVE_FULL_DISK" ]; then
	mkdir -p full
	MVE_FULL_DISK=1 exec unshare -m "$0"
fi
mount -t tmpfs -o size=4k,mode=700 none full || skip "cannot mount a tmpfs"
head -c 4096 /dev/zero >full/filler
XDG_RUNTIME_DIR=$PWD/full
refused 3 "" "$MVE" run -n "$MVE_SESSION" -- touch "$PWD/started"
[ ! -e started ] || fail "the program was started"

# Room for nothing but the folder itself.
rm full/filler
mkdir -p full/mve
head -c 4096 /dev/zero >full/mve/.filler 2>/dev/null
mv full/mve/.filler full/filler
timeout 20 "$MVE" run -n "$MVE_SESSION" -- touch "$PWD/started" >out 2>err
status=$?
if [ $status != 0 ]; then
	[ $status = 3 ] || fail "status $status: $(cat err)"
	[ ! -e started ] || fail "refused, and the program was started"
fi
clean

# A full inode table.
umount full
mount -t tmpfs -o nr_inodes=1,mode=700 none full || exit 0
refused 3 "" "$MVE" run -n "$MVE_SESSION" -- touch "$PWD/started"
