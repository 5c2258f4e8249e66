#!/usr/bin/env python3
"""replay.py CASE...: a session is recorded, and replayed.

program		a program that ends by itself, and its status
rooms		one that tells where its memory lies, by a build of mve whose inside is larger
looks		a thread reads a clock once more than its twin did, with a lock of its own held
redis		Redis under load; replayed twice, and with other options, which differs
killed		its recorder is killed: the server goes on; what is on disk is replayed
refused		folders that are no recordings, that others may read, that have one
itself		a program that differs from itself: what is said of the cause
foreign		what another user could have written is not run
spare		twins are kept beside the recorder, which has a row of its own
taken		another version comes to lead, twice: what goes on is recorded beside it; all are replayed
synced		--sync: what the recorder asks of the kernel, and what it does not
disk		the disk is full, and the folder cannot be written (root)
looked		what mve log says of a recording
compressed	with zstd: smaller, and as well replayed; also where there is no time for it
stopped		mve record --stop: the session goes on
large		2 GiB of stream, at full load: nothing is lost, and all is replayed
bounded		--max-size, --max-age: it ends, or its oldest parts go (--keep last)
"""
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

from recorded import HERE, MVE, NAME, NOT_WHOLE, Redis, fail, fresh, replay, run


def program():
    folder = fresh("program.log")
    p = run(MVE, "run", "--record", folder, "--", "sh", "-c", "echo one; exit 7", status=7)
    if p.stdout != "one\n" or "what clients send" not in p.stderr:
        fail(f"recorded: {p.stdout!r} {p.stderr!r}")
    if os.stat(folder).st_mode & 0o777 != 0o700 or \
       any(os.stat(f"{folder}/{f}").st_mode & 0o777 != 0o600 for f in os.listdir(folder)):
        fail("others may read it")
    calls, _ = replay(folder)
    if calls < 20:
        fail(f"{calls} calls")
    for start, said in ("+0", False), ("+100000", True):
        again, words = replay(folder, "--from", start)
        if again != calls or ("there is no image before that" in words) != said:
            fail(f"--from {start}: {again} calls, {words}")
    replay(folder, "--", "sh", "-c", "echo two; exit 7", status=1)
    # A program is found from where it was recorded, another from where we are.
    shutil.copy(shutil.which("true"), "true-here")
    folder = fresh("relative.log")
    run(MVE, "run", "--record", folder, "--", "./true-here", status=0)
    os.makedirs("elsewhere", exist_ok=True)
    run(MVE, "replay", "-n", f"{NAME}-r", f"../{folder}", "--", "../true-here", status=0,
        cwd="elsewhere")
    p = run(MVE, "replay", "-n", f"{NAME}-r", f"../{folder}", status=0, cwd="elsewhere")
    if "another build" in replay(folder)[1] + p.stderr:
        fail("it is the recorded build")
    shutil.copy(shutil.which("false"), "true-here")
    if "/true-here: another build than the recorded one" not in replay(folder, status=1)[1]:
        fail("it is not said that it is another build")


TELLS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
int main(void)
{
	void *own = mmap(0, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *shared = mmap(0, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return printf("%p %p %p %p\\n", own, shared, malloc(1 << 20), (void *)printf) < 0;
}
"""
# Of elf.h: a shared object of this machine, a part that is loaded and can be read and written.
ET_DYN, EM_X86_64, PT_LOAD, PF_READ_WRITE = 3, 62, 1, 6


def inside_widened(path, more):
    """Writes another mve, as if its inside had more of what can be written."""
    with open(MVE, "rb") as f:
        mve = bytearray(f.read())
    widened, at = 0, mve.find(b"\x7fELF", 1)
    while at >= 0:
        if struct.unpack_from("<HH", mve, at + 16) == (ET_DYN, EM_X86_64):
            first, = struct.unpack_from("<Q", mve, at + 32)
            count, = struct.unpack_from("<H", mve, at + 56)
            for row in range(at + first, at + first + 56 * count, 56):
                if struct.unpack_from("<II", mve, row) == (PT_LOAD, PF_READ_WRITE):
                    was, = struct.unpack_from("<Q", mve, row + 40)
                    struct.pack_into("<Q", mve, row + 40, was + more)
                    widened += 1
        at = mve.find(b"\x7fELF", at + 1)
    if widened != 1:
        fail(f"{widened} insides in {MVE}")
    with open(path, "wb") as f:
        f.write(mve)
    os.chmod(path, 0o755)


def rooms():
    run("gcc", "-x", "c", "-o", "tells", "-", input=TELLS, status=0)
    folder = fresh("rooms.log")
    run(MVE, "run", "--record", folder, "--", "./tells", status=0)
    calls, _ = replay(folder)
    for more in (0x6000, 0x80000):
        inside_widened("mve-wide", more)
        p = run("./mve-wide", "replay", "-n", f"{NAME}-r", folder, status=0)
        if p.stdout != f"replayed {calls} calls, equal\n":
            fail(f"with {more} bytes more: {p.stdout}{p.stderr}")


# A thread reads a clock as often as is asked for, while the first one waits for its lock.
LOOKS = r"""
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_int taken, free_now, never;

static void await(atomic_int *word)
{
	while (!*word)
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

static void wake(atomic_int *word)
{
	*word = 1;
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *reader(void *times)
{
	struct timespec now;

	wake(&taken);
	for (int i = 0; i < atoi(times); i++)
		clock_gettime(CLOCK_MONOTONIC, &now);
	wake(&free_now);
	await(&never);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc != 2 || pthread_create(&thread, NULL, reader, argv[1]))
		return 1;
	await(&taken);
	await(&free_now);
	return write(1, "free\n", 5) != 5;
}
"""


def looks():
    run("gcc", "-x", "c", "-pthread", "-o", "looks", "-", input=LOOKS, status=0)
    folder = fresh("looks.log")
    run(MVE, "run", "--record", folder, "--", "./looks", "1", status=0)
    calls, _ = replay(folder)
    if replay(folder, "--", "./looks", "2")[0] != calls:
        fail("not all is replayed")


def redis():
    folder = fresh("redis.log")
    r = Redis(folder)
    r.load(2000)
    said = r.end()
    if "the recording ends" in said:
        fail(said)
    calls, _ = replay(folder)
    if calls < 4000 or replay(folder)[0] != calls:
        fail(f"{calls} calls")
    _, said = replay(folder, "--", *r.words, "--maxclients", "77", status=1)
    if "epoll_wait" not in said:
        fail(f"no word of what differs: {said}")


def child_named(pid, name):
    for p in run("pgrep", "-P", str(pid)).stdout.split():
        try:
            with open(f"/proc/{p}/comm") as f:
                if f.read() == f"{name}\n":
                    return int(p)
        except OSError:         # one that has ended meanwhile
            pass
    fail(f"no {name}")


def killed():
    folder = fresh("killed.log")
    r = Redis(folder, "--ring", "1M")
    r.load(500)
    waited(lambda: json.loads(run(MVE, "log", folder, "--json", status=0).stdout)["calls"] > 1000,
           "it is written")
    os.kill(child_named(r.mve.pid, "mve-record"), signal.SIGKILL)
    r.load(3000)        # more than the ring has room for
    said = r.end()
    if "the recording ends: its recorder was killed" not in said:
        fail(said)
    calls, said = replay(folder, status=NOT_WHOLE)
    if calls < 1000 or "its end is missing" not in said:
        fail(f"{calls} calls: {said}")
    p = run(MVE, "replay", "-n", f"{NAME}-r", "--partial", folder, status=0)
    if f"replayed {calls} calls, equal up to there\n" != p.stdout:
        fail(f"{calls} calls: {p.stdout}")
    if "its end is missing" not in run(MVE, "log", folder, "verify", status=1).stderr:
        fail("it is whole")


def no(words, text, status):
    p = run(MVE, *words, status=status)
    if text not in p.stderr or "hint:" not in p.stderr or p.stdout:
        fail(f"{words}: {p.stdout} {p.stderr}")


def refused():
    folder = fresh("refused.log")
    os.mkdir(folder)

    no(["replay", folder], "No such file", NOT_WHOLE)
    no(["replay", "nowhere.log"], "No such file", 2)
    no(["replay"], "no recording is given", 2)
    with open(f"{folder}/000000.log", "wb") as f:
        f.write(b"something else" * 100)
    no(["replay", folder], "not a recording", NOT_WHOLE)
    no(["run", "--record", folder, "--", "true"], "open to other users", 3)
    os.chmod(folder, 0o700)
    no(["run", "--record", folder, "--", "true"], "a recording is there", 2)
    no(["run", "--record", "nowhere/log", "--", "true"], "No such file", 3)
    no(["run", "--record", ".", "--", "true"], "not the name of a folder", 2)
    no(["run", "--record", "x.log", "--stateless", "--mark", "accept", "--", "true"],
       "do not go together", 2)


CAUSES = {
    "several": "it writes memory that is shared (anonymous), which others may write",
    "threads": "it has 2 threads, which may agree by plain memory",
}
ITSELF = "the program differs from itself"


def itself_build(built):
    subprocess.run(["gcc", "-O1", f"-DBUILT={built}", "-o", f"itself-{built}",
                    os.path.join(HERE, "itself.c")], check=True)
    os.rename(f"itself-{built}", "itself")      # the one that runs stays what it is


def itself():
    itself_build(1)
    for how, why in CAUSES.items():
        folder = fresh(f"itself-{how}.log")
        run(MVE, "run", "--record", folder, "--", "./itself", how, status=0)
        said = replay(folder, status=1)[1]
        if f"{ITSELF}: {why}" not in said:
            fail(f"{how}: {said}")
        # Beside its leader it may be equal.
        said = run(MVE, "run", "-n", f"{NAME}-i", "-f", "same", "--", "./itself", how).stderr
        if "diverged" in said and f"{ITSELF}: {why}" not in said:
            fail(f"{how}, beside its leader: {said}")
    renewed()


def renewed():
    """Its file is another by then: what differs is a finding."""
    folder = fresh("renewed.log")
    run(MVE, "run", "--record", folder, "--", "./itself", "alone", status=0,
        stdin=subprocess.DEVNULL)
    with open("renewed.err", "w+") as err:
        leader = subprocess.Popen([MVE, "run", "-n", f"{NAME}-l", "--from-start", "--",
                                   "./itself", "alone"], stdin=subprocess.PIPE, stderr=err)
        waited(lambda: not run(MVE, "status", f"{NAME}-l").returncode, "it does not begin")
        itself_build(2)
        run(MVE, "follow", f"{NAME}-l", "--from-start", "--", "./itself", "alone", status=0)
        leader.communicate(b"", 60)
        err.seek(0)
        for said in err.read(), replay(folder, status=1)[1]:
            if "diverged" not in said or ITSELF in said:
                fail(said)


def foreign():
    folder = fresh("foreign.log")
    run(MVE, "run", "--record", folder, "--", "sh", "-c", "echo one", status=0)
    segment = f"{folder}/000000.log"
    for path, mode, text in ((folder, 0o720, "other users can write it (mode 0720)"),
                             (segment, 0o602, "000000.log: other users can write it (mode 0602)")):
        was = os.stat(path).st_mode & 0o777
        os.chmod(path, mode)
        no(["replay", folder], text, NOT_WHOLE)
        no(["bisect", folder, "--", "true"], text, NOT_WHOLE)
        os.chmod(path, was)
    for path in (segment, folder) if not os.geteuid() else ():
        os.chown(path, 65534, -1)
        no(["replay", folder], "it belongs to another user (65534)", NOT_WHOLE)
        run("cp", "-r", folder, fresh("copied.log"), status=0)
        replay("copied.log")
        # It is looked at as ever.
        run(MVE, "log", folder, "show", status=0)
        os.chown(path, 0, -1)
    replay(folder)


def twins():
    said = json.loads(run(MVE, "status", NAME, "--json", status=0).stdout)
    return [v["name"] for v in said["versions"] if v["role"] == "follower"]


def twins_wait(n, but=None):
    for _ in range(600):
        if len(twins()) == n and but not in twins():
            return
        time.sleep(0.05)
    fail(f"{n} twins do not come: {twins()}")


def spare():
    folder = fresh("spare.log")
    r = Redis(folder, "--spare", "4", "--ring", "1M", "--full-ms", "3000")
    for _ in range(3):          # the next has a row that nobody had, if one is left
        twins_wait(4)
        was = twins()[-1]
        run(MVE, "drop", NAME, was, status=0)
        twins_wait(4, was)
    r.load(300)
    # Nobody else's end was the recorder's: what it has not read is kept, or it is told.
    recorder = child_named(r.mve.pid, "mve-record")
    os.kill(recorder, signal.SIGSTOP)
    r.load(3000)
    os.kill(recorder, signal.SIGCONT)
    said = r.end()
    if "the recording ends: a whole ring behind" not in said:
        fail(said)
    if replay(folder)[0] < 600:
        fail("not all is replayed")


def goes_on(folder):
    def image():
        now = recording_now()
        return now["folder"].endswith(folder) and now.get("image", {}).get("state") == "written"

    waited(image, f"the image in {folder} is written")


def taken():
    folder = fresh("taken.log")
    parts = [f"{folder}.{n}" for n in (3, 4)]
    for part in parts:
        fresh(part)
    os.makedirs(f"{folder}.2", exist_ok=True)       # somebody else's
    # f1 has memory of its own where its leader has a file, shared.
    r = Redis(folder, "-f", "same", "--spare", "1")
    r.load(200)
    for part in parts:
        twins_wait(2 if part == parts[0] else 1)
        if part == parts[0]:
            run(MVE, "promote", NAME, "f1", "--wait", status=0)
        else:
            os.kill(json.loads(run(MVE, "status", NAME, "--json", status=0).stdout)["server"],
                    signal.SIGSEGV)
        r.load(200)
        goes_on(part)
        r.load(200)
    said = r.end()
    if said.count("the recording ends: another version leads") != 2 or \
       said.count("recorded again, to") != 2:
        fail(said)
    for part in (folder, *parts):
        if replay(part)[0] < 400:
            fail(f"not all is replayed: {part}")


def waited(what, why):
    for _ in range(6000):
        if what():
            return
        time.sleep(0.05)
    fail(f"not in five minutes: {why}")


def synced_times():
    with open("synced.txt") as f:
        return sum(line.startswith("fdatasync") for line in f)


def syncs(least, *options):
    """How often the recorder has asked for what it wrote to be on the disk; in how long."""
    folder = fresh("synced.log")
    r = Redis(folder, *options)
    recorder = child_named(r.mve.pid, "mve-record")
    began = time.monotonic()
    trace = subprocess.Popen(["strace", "-qq", "-o", "synced.txt", "-e", "fdatasync", "-p",
                              str(recorder)])
    waited(lambda: "TracerPid:\t0" not in open(f"/proc/{recorder}/status").read(), "strace")
    for n in range(1, 5):
        r.load(50)
        waited(lambda: not least or synced_times() >= n, f"it is on the disk {n} times")
    said = r.end()
    trace.wait(60)
    if "the recording ends" in said or replay(folder)[0] < 400:
        fail(said)
    return synced_times(), time.monotonic() - began


def synced():
    none, (second, took), call = syncs(0)[0], syncs(4, "--sync", "second"), \
        syncs(4, "--sync", "call")[0]
    if none != 1 or second > took + 2 or call < 4:
        fail(f"synced {none}, {second} in {took} s, {call} times")
    for words in (["--sync", "often", "--record", "x.log"], ["--sync", "call"]):
        run(MVE, "run", *words, "--", "true", status=2)


def again_full(here):
    """Where there is no room for a beginning nothing is left: the folder can be taken later."""
    words = ["run", "--record", f"{here}/again", "--", "true"]
    subprocess.run(["dd", "if=/dev/zero", f"of={here}/rest", "bs=4k"], capture_output=True)
    if "No space left" not in run(MVE, *words, status=3).stderr:
        fail("there is room")
    run("mount", "-o", "remount,size=4m", here, status=0)
    run(MVE, *words, status=0)
    shutil.rmtree(f"{here}/again")


def disk():
    here = os.path.abspath("disk")
    os.makedirs(here, exist_ok=True)
    run("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", here, status=0)
    try:
        folder = f"{here}/log"
        r = Redis(folder)
        r.load(6000)
        said = r.end()
        if "the recording ends: cannot write: No space left on device" not in said:
            fail(said)
        again_full(here)
        run("mount", "-o", "remount,ro", here, status=0)
        calls, _ = replay(folder, status=NOT_WHOLE)
        if calls < 1000:
            fail(f"{calls} calls")
        if run(MVE, "log", folder, status=0).stdout.count("calls") < 1:
            fail("no summary")
        p = run(MVE, "run", "--record", f"{here}/other", "--", "true", status=3)
        if "Read-only file system" not in p.stderr:
            fail(p.stderr)
    finally:
        run("umount", "-l", here)


def looked():
    folder = fresh("looked.log")
    os.environ["LOOKED"] = "a \x01 word"
    run(MVE, "run", "--record", folder, "--", "sh", "-c", "echo one; /bin/echo two", status=0)
    del os.environ["LOOKED"]
    s = json.loads(run(MVE, "log", folder, "--json", status=0).stdout)
    names = {c["name"]: c["calls"] for c in s["by_name"]}
    if s["processes"] != 2 or not s["whole"] or s["segments"] != 1 or \
       not any(word.startswith("LOOKED=a ") for word in s["program"]["env"]) or \
       s["program"]["argv"][0] != "sh" or \
       names["execve"] != 1 or names["exit_group"] != 2 or sum(names.values()) != s["calls"]:
        fail(s)
    shown = run(MVE, "log", folder, "show", "--call", "write", status=0).stdout.splitlines()
    if len(shown) != 2 or 'write(1, "two\\n", 4)' not in shown[1]:
        fail(shown)
    if s["calls"] != len(run(MVE, "log", folder, "show", status=0).stdout.splitlines()) - \
       s["signals"]:
        fail("not all calls are shown")
    lines = [json.loads(line) for line in
             run(MVE, "log", folder, "show", "--json", status=0).stdout.splitlines()]
    if len(lines) != s["calls"] + s["signals"] or \
       [e["text"].split() for e in lines if e.get("call") == "write"][1] != shown[1].split()[3:]:
        fail("what is shown as JSON is other")
    if "whole" not in run(MVE, "log", folder, "verify", status=0).stdout:
        fail("it is not verified")
    with open(f"{folder}/000000.log", "r+b") as f:
        f.truncate(s["bytes"] - 100)
    if "cut short" not in run(MVE, "log", folder, "verify", status=1).stderr:
        fail("a cut is not seen")
    if "in 1 segment" not in run(MVE, "log", folder, status=0).stdout:
        fail("where it is cut there is no segment")
    for words in (["verify", "x"], ["look"], ["--pid", "x"], ["--call", "nocall"],
                  ["verify", "--call", "write"], ["connections", "--event", "3"], ["--pid", "3"],
                  ["show", "--pcap", "x"], ["pack", "--conn", "1"]):
        run(MVE, "log", folder, *words, status=2)
    for words, text in ((["show", "--event", "99999"], "no such event: 99999"),
                        (["show", "--conn", "7"], "no such connection: 7"),
                        (["connections", "--conn", "7"], "no such connection: 7"),
                        (["export", "--pcap", "seven.pcap", "--conn", "7"],
                         "no such connection: 7")):
        if text not in run(MVE, "log", folder, *words, status=1).stderr:
            fail(f"{words}: not said: {text}")
    if os.path.exists("seven.pcap"):
        fail("packets of no connection are left")
    no(["replay", "--used", "nowhere/used", folder], "cannot write what was used", 3)
    no(["replay", "--on-divergence", "promote", folder], "a recording leads nobody", 2)


def bytes_of(folder):
    size = 0
    for name in os.listdir(folder):
        try:
            size += os.stat(f"{folder}/{name}").st_size
        except FileNotFoundError:       # dropped meanwhile
            pass
    return size


def compressed():
    sizes = []
    for options in ([], ["--compress", "1"], ["--compress", "19", "--ring", "1M",
                                              "--when-full", "block"]):
        folder = fresh("compressed.log")
        r = Redis(folder, *options)
        r.load(2000)
        said = r.end()
        if "the recording ends" in said or replay(folder)[0] < 4000:
            fail(said)
        run(MVE, "log", folder, "verify", status=0)
        sizes.append(bytes_of(folder))
    if sizes[1] > sizes[0] / 2:
        fail(f"{sizes} bytes")
    for words in (["--compress", "3"], ["--record", "x.log", "--compress", "20"]):
        run(MVE, "run", *words, "--", "true", status=2)


def stopped():
    folder = fresh("stopped.log")

    def shows(what):
        # No status is asked for: a frame may be half written now.
        return what in run(MVE, "log", folder, "show", "--call", "read").stdout

    r = Redis(folder, "--ring", "1M")
    r.load(500)
    r.ask("SET before 1")
    waited(lambda: shows("SET before"), "it is written")
    if "has ended: as was asked" not in run(MVE, "record", NAME, "--stop", status=0).stdout:
        fail("it is not said that it has ended")
    # All of it is there, and another may begin.
    run(MVE, "log", folder, "verify", status=0)
    run(MVE, "record", NAME, fresh("behind.log"), status=0)
    run(MVE, "record", NAME, "--stop", status=0)
    r.ask("SET behind 1")
    r.load(3000)        # more than the ring has room for
    if "mve record NAME DIR begins one" not in run(MVE, "record", NAME, "--stop", status=1).stderr:
        fail("no hint where nothing is recorded")
    run(MVE, "record", NAME, status=2)
    said = r.end()
    if "the recording ends: as was asked" not in said:
        fail(said)
    calls, said = replay(folder)
    if calls < 1000 or "not whole" in said or not shows("SET before") or shows("SET behind"):
        fail(f"{calls} calls: {said}")


def filled(r, folder, n):
    most = 0
    for i in range(n):
        text = "v" * 200000
        r.link.sendall(f"*3\r\n$3\r\nSET\r\n$6\r\nbig{i % 1000:03}\r\n${len(text)}\r\n{text}\r\n".encode())
        if r.link.recv(4096) != b"+OK\r\n":
            fail("a SET fails")
        most = max(most, bytes_of(folder))
    return most


def recording_now():
    return json.loads(run(MVE, "status", NAME, "--json", status=0).stdout)["recording"]


def large():
    folder = fresh("large.log")
    r = Redis(folder, "--when-full", "block")
    while recording_now()["bytes"] < 2 << 30:
        filled(r, folder, 1000)
    said = r.end()
    if "the recording ends" in said:
        fail(said)
    run(MVE, "log", folder, "verify", status=0)
    calls, again = replay(folder)[0], replay(folder)[0]
    print(f"{bytes_of(folder)} bytes, {calls} calls", file=sys.stderr)
    if calls < 20000 or calls != again:
        fail(f"{calls} calls, {again}")
    fresh(folder)


def bounded():
    # It ends, and is as good as any.
    folder = fresh("bounded.log")
    r = Redis(folder, "--max-size", "32M")
    most = filled(r, folder, 250)
    waited(lambda: not recording_now()["active"], "it ends")
    now = recording_now()
    said = r.end()
    if most > 32 << 20 or "the recording ends" not in said or "--max-size" not in said or \
       "--max-size" not in now["ended"] or now["bytes"] < 16 << 20:
        fail(f"{most} bytes; {now}; {said}")
    if replay(folder)[0] < 100:
        fail("not all is replayed")
    # Its oldest parts go: what is left is the end.
    folder = fresh("bounded.log")
    r = Redis(folder, "--max-size", "32M", "--keep", "last")
    most = filled(r, folder, 400)
    waited(lambda: recording_now()["dropped"], "it drops some")
    now = recording_now()
    said = r.end()
    if max(most, bytes_of(folder)) > 32 << 20 or "the recording ends" in said:
        fail(f"{most} bytes; {now}; {said}")
    s = json.loads(run(MVE, "log", folder, "--json", status=0).stdout)
    if not s["whole"] or s["dropped"] < now["dropped"] or s["bytes"] != bytes_of(folder):
        fail(s)
    shown = run(MVE, "log", folder, "show", status=0).stdout
    if "big399" not in shown or "big000" in shown:
        fail("what is shown is not the end")
    run(MVE, "log", folder, "verify", status=0)
    run(MVE, "log", folder, "export", "--pcap", "bounded.pcap", status=0)
    if "its beginning is not there" not in run(MVE, "replay", folder, status=NOT_WHOLE).stderr:
        fail("what has no beginning is replayed")
    if "segments before them: it can be looked at, not replayed" not in \
       run(MVE, "log", folder, status=0).stdout:
        fail("it is not said that it cannot be replayed")
    # One that is in the midst is missing.
    segments = sorted(os.listdir(folder))
    os.unlink(f"{folder}/{segments[1]}")
    if json.loads(run(MVE, "log", folder, "--json", status=0).stdout)["events"] >= s["events"]:
        fail("a part that is missing is not missed")
    # By age.
    folder = fresh("bounded.log")
    r = Redis(folder, "--max-age", "2s", "--keep", "last")
    waited(lambda: recording_now()["dropped"] > 8, "old segments go")
    if recording_now()["segments"] > 11:
        fail(recording_now())
    r.end()
    folder = fresh("bounded.log")
    r = Redis(folder, "--max-age", "2s")
    waited(lambda: not recording_now()["active"], "it ends")
    if "--max-age" not in r.end() or replay(folder)[0] < 100:
        fail("it does not end with its time")
    for words in (["--max-size", "1M", "--record", "x.log"], ["--max-age", "1y"],
                  ["--keep", "last", "--record", "x.log"], ["--keep", "last"]):
        run(MVE, "run", *words, "--", "true", status=2)


for case in sys.argv[1:]:
    globals()[case]()
print("replay: ok")
