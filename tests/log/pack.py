#!/usr/bin/env python3
"""pack.py: a recording has its program, its libraries and what it maps, and replays without them.

The program is a small one of ours, with a library of its own and a file that it maps; a script
begins it.  What is packed is taken away, made another, damaged.
"""
import json
import os
import shutil
import subprocess

from kv import fail, mve

LOG = os.path.abspath("pack.log")
PLACE = os.path.abspath("place")

LIBRARY = "int tripled(int a) { return a * 3 + ONE; }\n"
PROGRAM = r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
int tripled(int);
int main(void)
{
	const char *m = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, open("data", O_RDONLY), 0);

	printf("%d %.5s\n", tripled(4), m);
	return 3;
}
"""


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def made(one):
    shutil.rmtree(PLACE, ignore_errors=True)
    for d in ("bin", "lib", "work"):
        os.makedirs(f"{PLACE}/{d}")
    write("lib.c", LIBRARY.replace("ONE", str(one)))
    write("program.c", PROGRAM)
    lib = f"{PLACE}/lib/libtripled.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,-soname,libtripled.so.1", "lib.c", "-o",
                    f"{lib}.2"], check=True)
    os.symlink("libtripled.so.1.2", lib)
    subprocess.run(["gcc", "program.c", lib, f"-Wl,-rpath,{PLACE}/lib", "-o",
                    f"{PLACE}/bin/program"], check=True)
    write(f"{PLACE}/bin/script", f"#!/bin/sh\nexec {PLACE}/bin/program\n")
    os.chmod(f"{PLACE}/bin/script", 0o755)
    write(f"{PLACE}/work/data", "hello world\n" * 400)


def replayed(status=0, *words):
    p = mve("replay", LOG, *words, status=status)
    if status == 0 and "equal" not in p.stdout:
        fail(p.stdout)
    return p.stderr


def packed():
    said = json.loads(mve("log", LOG, "pack", "--json").stdout)
    return said, {f["path"]: f for f in said["files"]}


def verified(*texts):
    """What is not whole is named, each thing; nothing: all of it is."""
    p = mve("log", LOG, "verify", status=1 if texts else 0)
    lines = [line for line in p.stderr.splitlines() if "not whole" in line]
    if len(lines) != len(texts) or not all(t in line for t, line in zip(texts, lines)):
        fail(f"verify says {p.stdout!r} {p.stderr!r}")
    said = json.loads(mve("log", LOG, "verify", "--json", status=p.returncode).stdout)
    if said["whole"] != (not texts) or len(said["damage"]) != len(texts):
        fail(said)
    return p.stdout


made(1)
shutil.rmtree(LOG, ignore_errors=True)
p = mve("run", "--record", LOG, "--", "../bin/script", status=3, cwd=f"{PLACE}/work")
if p.stdout != "13 hello\n":
    fail(p.stdout)
if "packed" in verified():
    fail("nothing is packed")
said, paths = packed()
for name in ("bin/program", "bin/script", "lib/libtripled.so.1.2", "lib/libtripled.so.1",
             "work/data"):
    if f"{PLACE}/{name}" not in paths:
        fail(f"{name} is not packed: {sorted(paths)}")
if said["missing"] or os.stat(f"{LOG}/files").st_mode & 0o77:
    fail(said)
if "its own" in replayed():
    fail("what is here is not taken from here")
if f"{len(paths)} packed files" not in verified():
    fail("what is packed is not looked at")

# All of it is away; then another stands in its place; then a part of it is missing.
if subprocess.run(["unshare", "-m", "true"]).returncode and \
   subprocess.run(["unshare", "-Um", "true"]).returncode:
    print("SKIP: no mount namespace can be made here")
    raise SystemExit(77)
shutil.rmtree(PLACE)
if "its own" not in replayed() or os.path.exists(PLACE):
    fail("it is not replayed from what it has")
made(2)
if "its own" not in replayed():
    fail("another library is taken")
with open(f"{PLACE}/work/data") as f:
    if f.read(5) != "hello":
        fail("a file of the machine has changed")
os.unlink(f"{PLACE}/lib/libtripled.so.1")
write(f"{PLACE}/work/data", "HELLO")
replayed()
if os.path.exists(f"{PLACE}/lib/libtripled.so.1"):
    fail("something is left in a folder of the machine")

# Where a link is to be there is a file, or a folder with something in it, which stay what they are.
made(2)
LINK = f"{PLACE}/lib/libtripled.so.1"
os.unlink(LINK)
write(LINK, "no library")
if "its own" not in replayed() or open(LINK).read() != "no library":
    fail("a file in a link's place")
os.unlink(LINK)
os.mkdir(LINK)
write(f"{LINK}/more", "")
if "its own" not in replayed() or os.listdir(LINK) != ["more"]:
    fail("a folder in a link's place")
shutil.rmtree(LINK)

# Packed again, what is missing here, or another, stays as it is packed.
for place in (lambda: None, lambda: made(2), lambda: shutil.rmtree(PLACE)):
    place()
    again, paths_now = packed()
    if again["missing"] or paths_now != paths:
        fail(f"packed again it has {again}")
    replayed()
made(1)

# Damaged: refused by name, whatever it is.
sum_of = paths[f"{PLACE}/lib/libtripled.so.1.2"]["sha256"]
with open(f"{LOG}/files/{sum_of}", "r+b") as f:
    f.seek(100)
    f.write(b"?")
verified(f"its file {sum_of} is damaged: {PLACE}/lib/libtripled.so.1.2")
packed()        # it is here as it was
verified()
with open(f"{LOG}/files/{sum_of}", "r+b") as f:
    f.seek(100)
    f.write(b"?")
made(2)
if f"its file {sum_of} is damaged" not in replayed(3):
    fail("a damaged file is taken")
os.unlink(f"{LOG}/files/{sum_of}")
if sum_of not in replayed(3):
    fail("a missing file is not named")
verified(f"its file {sum_of} is missing: {PLACE}/lib/libtripled.so.1.2")
with open(f"{LOG}/files.json") as f:
    index = f.read()
for bad in (index[:len(index) // 2], index.replace('"version": 1', '"version": 2'),
            index.replace(sum_of, "../../" + sum_of[6:]), "[]", ""):
    write(f"{LOG}/files.json", bad)
    if "files.json: damaged" not in replayed(3):
        fail(bad)
    verified("files.json: damaged")

# What cannot be replayed is not packed.
if "not packed" not in mve("log", LOG, "pack", status=3).stderr:
    fail("it is packed, and damaged")
os.unlink(f"{LOG}/files.json")
if "not packed" not in mve("log", LOG, "pack", status=1).stderr:
    fail("it is packed, and differs")

# Another build that does the same is named, not packed, and takes no right one's place.
made(1)
shutil.rmtree(LOG)
mve("run", "--record", LOG, "--", f"{PLACE}/bin/program", status=3, cwd=f"{PLACE}/work")
OTHER = f"{PLACE}/bin/program: another build than the recorded one lies there"
if "another build" in replayed():
    fail("it is the recorded build")
shutil.move(f"{PLACE}/bin/program", "recorded")
write("program.c", PROGRAM + "int more = 1;\n")
subprocess.run(["gcc", "program.c", f"{PLACE}/lib/libtripled.so.1", f"-Wl,-rpath,{PLACE}/lib",
                "-o", f"{PLACE}/bin/program"], check=True)
if OTHER not in replayed() or "another build" in replayed(0, "--", f"{PLACE}/bin/program"):
    fail("another build is equal, and nothing is said of it")
if OTHER not in mve("log", LOG, "pack", status=1).stderr or os.path.exists(f"{LOG}/files.json"):
    fail("another build is packed")
os.rename(f"{PLACE}/bin/program", "other")
shutil.copy("recorded", f"{PLACE}/bin/program")
_, paths = packed()
shutil.copy("other", f"{PLACE}/bin/program")
if "another build" in replayed() or packed()[1] != paths:
    fail("another build takes the place of what is packed")
verified()
shutil.rmtree(PLACE)
print("pack: ok")
