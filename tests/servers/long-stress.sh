#!/bin/sh
# Every stressor of stress-ng for a second, natively and in both tiers: the same
# status.  Some fill disks and kill what they can: this runs in namespaces of its
# own, with / read-only and a small temporary file system for /tmp.
. "$ROOT/tests/servers/lib.sh"
need stress-ng python3 unshare
[ "$(id -u)" = 0 ] || skip "needs root"

mkdir scratch
export MVE MVE_SESSION here
unshare -m -p -f --mount-proc --kill-child sh -c '
	mount -t tmpfs -o size=3g,nr_inodes=200k none scratch &&
	cp "$MVE" "$here/stress_ng.py" scratch &&
	mount --move scratch /tmp &&
	mount -t tmpfs -o size=1g none /dev/shm &&
	mount -t tmpfs -o size=100m none /var/tmp &&
	mount -o remount,bind,ro / || exit 77
	mkdir -m 700 /tmp/run && cd /tmp || exit 1
	TMPDIR=/tmp XDG_RUNTIME_DIR=/tmp/run MVE=/tmp/mve exec python3 stress_ng.py "$@"' \
	sh "$@"
status=$?
[ $status != 77 ] || skip "cannot mount in a namespace"
[ $status = 0 ] && echo "long-stress: ok"
exit $status
