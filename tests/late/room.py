#!/usr/bin/env python3
"""room.py: a server in a cgroup that has no room for a copy of it.  mve, which is in another one,
comes to it; a twin is refused by name, and where there is no room for mve it does not come at all.
The server lives on."""
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MVE = os.environ.get("MVE", os.path.join(ROOT, "build/mve"))
SOURCE = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define SIZE (100l << 20)
int main(void)
{
	char *p = malloc(SIZE);

	memset(p, 1, SIZE);
	for (long i = write(1, "ready", 5); ; i++, usleep(500))
		p[i * 16384 % SIZE]++;
}
"""
HAS_MIB, SPARE_MIB = 100, 60
LIMITS = ("memory.max", "memory.limit_in_bytes")


def skip(why):
    print(why)
    sys.exit(77)


def hierarchy():
    """The folder of our own cgroup that counts memory; version 1's, if there is one."""
    with open("/proc/self/cgroup") as f:
        ours = dict(line.strip().split(":", 2)[1:] for line in f)
    roots = ("/sys/fs/cgroup/memory" + ours.get("memory", "/none"),
             "/sys/fs/cgroup" + ours.get("", "/none"))
    return next((r for r in roots if os.access(r + "/cgroup.procs", os.W_OK)), None)


def limited(folder, mib):
    for name in LIMITS:
        if os.path.exists(f"{folder}/{name}"):
            with open(f"{folder}/{name}", "w") as f:
                f.write(str(mib << 20))
            return True
    return False


def enter(folder):
    with open(folder + "/cgroup.procs", "w") as f:
        f.write(str(os.getpid()))


def attached(server, name):
    mve = subprocess.Popen([MVE, "attach", "-n", name, str(server.pid)], stderr=subprocess.PIPE,
                           text=True)
    return mve, mve.stderr.readline()


def main():
    above = hierarchy()
    folder = f"{above}/mve-room-{os.getpid()}"
    try:
        os.mkdir(folder)
    except OSError as e:
        skip(f"no cgroup of our own: {e}")
    server = mve = None
    try:
        if not limited(folder, HAS_MIB + SPARE_MIB):
            skip("its memory cannot be limited")
        subprocess.run(["gcc", "-x", "c", "-o", "room", "-"], input=SOURCE, text=True, check=True)
        server = subprocess.Popen(["./room"], stdout=subprocess.PIPE,
                                  preexec_fn=lambda: enter(folder))
        assert server.stdout.read(5) == b"ready"
        name = f"room-{os.getpid()}"
        mve, said = attached(server, name)
        assert "holds pid" in said, said
        done = subprocess.run([MVE, "follow", name], capture_output=True, text=True, check=False)
        assert done.returncode == 1 and "it may come to cost" in done.stderr, done
        subprocess.run([MVE, "detach", name], check=True, stdout=subprocess.DEVNULL)
        mve.wait()
        with open(folder + ("/memory.current" if os.path.exists(folder + "/memory.current")
                            else "/memory.usage_in_bytes")) as f:
            used = int(f.read()) >> 20
        assert limited(folder, used + 4)
        mve, said = attached(server, name)
        assert "too little memory" in said, said
        time.sleep(0.2)
        assert server.poll() is None, "the server has ended"
    finally:
        for one in (server, mve):
            if one and one.poll() is None:
                one.kill()
                one.wait()
        os.rmdir(folder)
    print("room: ok")


main()
