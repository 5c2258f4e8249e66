#!/usr/bin/env python3
"""What goes wrong in an update by a twin costs the twin alone: it is named, clients notice
nothing, and when the reason is gone the same update succeeds.

  twin_faults.py moment     a thread does not come to its point; a point within a lock; retried
  twin_faults.py becoming   the new build cannot be loaded, dies or ends while the twin becomes it;
                            what another moment does not mend is not retried
  twin_faults.py following  the new version crashes, differs, has lost a table's entries; the old
                            one crashes: the new one leads
  twin_faults.py leading    the new version crashes when it leads: the old one does again
  twin_faults.py unset      a new field is left as memory was found; its value was not said at all
  twin_faults.py freed      the transformation frees memory that a library goes on using
  twin_faults.py aborted    at its stages before the new version follows
  twin_faults.py ends       the old version crashes, or the monitor ends, while the twin changes
                            or threads stand
  twin_faults.py rules      the published rules, forward and reverse
  twin_faults.py begun      asked as soon as the server serves
  twin_faults.py reading    a build's debug information does not answer: all are served meanwhile
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import load
import served
from stages import AGAIN, GATED, KV, Session, update

sys.path.insert(0, f"{served.ROOT}/tests/takeover")
from slowfs import SlowFs       # noqa: E402

SAYS = f"{KV}/v1-v2.xf"


class Builds:
    """Versions of the threaded kv with something changed in their sources."""

    def __init__(self, work):
        self.work, self.n = work, 0

    def of(self, version, *changes):
        self.n += 1
        with open(f"{KV}/v{version}.c") as f:
            text = f.read()
        for was, now in changes:
            assert was in text, was
            text = text.replace(was, now)
        path = f"{self.work}/v{version}-{self.n}"
        with open(path + ".c", "w") as f:
            f.write(text)
        return served.build(path + ".c", path + ".so")

    def says(self, text):
        self.n += 1
        with open(f"{self.work}/{self.n}.xf", "w") as f:
            f.write(text)
        return f"{self.work}/{self.n}.xf"


def refused(s, new, text, *words, says=SAYS):
    status, said = s.mve("update", "--to", new, "--xform", says, *AGAIN, *words, ok=False)
    assert status == 1 and re.search(text, said, re.M), f"status {status}: {said}"
    assert s.stage() == "alone" and s.leader() == "v0", s.status()["update"]
    code, why = s.mve("promote", ok=False)
    assert code == 1 and re.search(f"no new version; the last update: failed: .*(?:{text})", why,
                                   re.M), why
    s.serves()


def goes(s, new, says=SAYS):
    update(s, new, "--xform", says)
    s.serves()
    s.mve("promote")
    s.until("new leads")
    s.serves()
    s.mve("commit")
    s.until("alone")
    s.first.expect("TYPE key-1", "TYPE string")


# What says that it holds until a file of that name is there.
HELD = "	if (!strcmp(key, \"hold\")) {\n" \
       "		char name[300];\n\n" \
       "		snprintf(name, sizeof(name), \"%s.held\", value);\n" \
       "		fclose(fopen(name, \"w\"));\n" \
       "		while (access(value, F_OK)) {\n" \
       "			WITHIN;\n			usleep(1000);\n		}\n	}\n"
# A PUT of the key `hold` does not come to a point, nor does who waits for the lock that it has.
HOLDS = ("	struct entry *e = find(key);\n\n	if (!value || strlen",
         "	struct entry *e = find(key);\n\n" + HELD.replace("WITHIN", "") +
         "	if (!value || strlen")


def moment(b):
    held = b.of(1, HOLDS)
    within = b.of(1, ("	pthread_mutex_lock(&table_lock);\n",
                      "	pthread_mutex_lock(&table_lock);\n" +
                      HELD.replace("WITHIN", "mve_update_point(\"within\")")))
    new = b.of(2)
    for i, (old, text) in enumerate(((held, r"thread \d+, serve, did not come to an update point; "
                                      r"it is in serve\w*: put at v1-\d+.c:\d+$"),
                                     (within, "did not come|lock is held|mutex"))):
        go = f"{b.work}/go-{i}"
        with Session(old, clients=0) as s:
            holder = s.server.client()
            holder.socket.sendall(f"PUT hold {go}\n".encode())
            until_held(go)
            status, said = s.mve("update", "--to", new, "--xform", SAYS, "--limit", "200",
                                 ok=False)
            assert status == 1 and re.search(text, said, re.M), said
            assert s.status()["update"]["stood_us"], "those that came have stood"
            s.mve("update", "--to", new, "--xform", SAYS, "--limit", "200", "--retry",
                  "10000/20", "--no-wait")
            load.until(lambda: s.status()["update"]["tried"] > 1, s.status)
            with open(go, "w"):
                pass
            assert holder.file.readline() == "OK\n"
            s.until("old leads")
            s.first.expect("GET key-1", "VALUE value 1")
            s.mve("promote")
            s.until("new leads")
            s.first.expect("GET key-1", "VALUE value 1")


def until_held(go):
    load.until(lambda: os.path.exists(f"{go}.held"), lambda: "it does not hold")


def transformed(b, old, new, says=SAYS):
    """Made beforehand: mve-xform reads both builds, too."""
    status, said = served.xform(old, new, f"{b.work}/x.so", says)
    assert status == 0, said
    return f"{b.work}/x.so"


def text_file(b):
    with open(f"{b.work}/text.so", "w") as f:
        f.write("no build\n" * 1000)
    return f.name


def becoming(b):
    old, new = b.of(1), b.of(2)
    dies = b.says(DIES)
    ends = b.of(2, ("	int listening;\n", "	int listening;\n\n	if (mve_updating())\n"
                    "		exit(3);\n"))
    aborts = b.of(2, ("	int listening;\n", "	int listening;\n\n	if (mve_updating())\n"
                      "		abort();\n"))
    after = b.of(2, ("int main(", "static void wrong(void)\n{\n	*(volatile int *)8 = 1;\n}\n\n"
                     "int main("), ("	int listening;\n", "	int listening;\n\n"
                                    "	mve_update_after(wrong);\n"))
    lost = b.of(2, ("mve_update_point(\"client\")", "mve_update_point(\"elsewhere\")"))
    spins = b.of(2, ("mve_update_point(\"client\");", "mve_update_point(\"elsewhere\");\n"
                     "		while (mve_updating()) {\n			usleep(1000);\n"
                     "			mve_update_point(\"third\");\n		}"))
    with Session(old) as s:
        refused(s, new, r"killed by SIGSEGV at address 0x8, in the transformation: "
                r"value_\d+ at \d+.xf:1$", says=dies)
        refused(s, ends, r"ended before it came to its point: main at v2-\d+.c:\d+$")
        refused(s, aborts, r"killed by SIGABRT at address 0x0, on the way to its points in the "
                r"new build: main at v2-\d+.c:\d+$")
        refused(s, after, r"killed by SIGSEGV at address 0x8, in a function of mve_update_after: "
                r"wrong at v2-\d+.c:\d+$")
        report = json.loads(s.mve("report", "--json")[1])
        assert after in report["follower"]["command"] and old in report["leader"]["command"] and \
            report["becoming"] == "in a function of mve_update_after" and \
            report["follower"]["stack"][0]["function"] == "wrong", report
        assert re.search(r"^  becomes +new\d+ (?s:.*)^  #0 +wrong ", s.mve("report")[1], re.M)
        refused(s, lost, r"thread \d+, serve, ended before it came to its point, client, in the "
                r"new build; it passed elsewhere; refused there: recvfrom$")
        refused(s, spins, r"thread \d+, serve, did not come to its point, client, in the new "
                r"build; it passed elsewhere, third; it is: serve at v2-\d+.c:\d+$", "--limit",
                "500", "--retry", "1/1")
        assert s.status()["update"]["tried"] > 1, s.status()["update"]
        made = transformed(b, old, new)
        for to, text in ((text_file(b), "invalid ELF|file too short"),
                         (b.of(2, ("int main(", "int other;\n\nint main(")),
                          "does not lead to this new build")):
            refused(s, to, text, says=made)
            assert s.status()["update"]["tried"] == 1, s.status()["update"]
        said = s.mve("update", "--to", new, "--xform", SAYS, *AGAIN, "--dry-run")[1]
        assert "would have gone well" in said, said
        assert s.stage() == "alone"
        assert s.status()["update"]["tried"] == 1, s.status()["update"]
        assert any(v["why"] == "it was a rehearsal" and not v["verdicts"]
                   for v in s.status()["versions"]), s.status()["versions"]
        s.serves()
        goes(s, new)
        s.done()


DIES = ("transform struct entry { typ = { *(volatile int *)8 = 1; return string; } }\n"
        "transform thread serve { : struct client; }\n")


def debug_apart(path):
    """Its debug information by itself, which it names; name and bytes."""
    name = f"{os.path.basename(path)}.debug"
    with tempfile.TemporaryDirectory() as work:
        served.run("objcopy", "--only-keep-debug", path, f"{work}/{name}")
        served.run("objcopy", "--strip-debug", f"--add-gnu-debuglink={work}/{name}", path)
        with open(f"{work}/{name}", "rb") as f:
            return name, f.read()


def named(s, fs, stage, text, *words):
    """While the place is read all are served; then it is told."""
    asked, fs.held = fs.asked, lambda pid: True
    with subprocess.Popen([f"{served.BIN}/mve", "update", s.name, *words], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as p:
        try:
            load.until(lambda: fs.asked > asked or p.poll() is not None, lambda: "nothing is read")
            assert s.stage() == stage, s.status()["update"]
            s.first.expect("who", "ERROR unknown request")     # that takes no lock
        finally:
            fs.release()    # else nothing of this ends
        said = p.communicate(timeout=served.HANGS_S)[0]
    assert p.returncode == 1 and re.search(text, said, re.M), said
    assert s.stage() == "alone", s.status()["update"]


def reading(b):
    if os.geteuid() or not os.path.exists("/dev/fuse") or not shutil.which("objcopy"):
        print("needs root, /dev/fuse and objcopy")
        sys.exit(77)
    old, new, go, where = b.of(1, HOLDS), b.of(2), f"{b.work}/go", f"{b.work}/.debug"
    dies = transformed(b, old, new, b.says(DIES))
    os.mkdir(where)
    fs = SlowFs(where, dict(map(debug_apart, (old, dies))))
    try:
        with Session(old, clients=0) as s:
            holder = s.server.client()
            holder.socket.sendall(f"PUT hold {go}\n".encode())
            until_held(go)
            named(s, fs, "stopping", r"it is in serve\w*: put at v1-\d+.c:\d+$", "--to", new,
                  "--xform", dies, "--limit", "200")
            with open(go, "w"):
                pass
            assert holder.file.readline() == "OK\n"
            named(s, fs, "updating", r"in the transformation: value_\d+ at \d+.xf:1$", "--to",
                  new, "--xform", dies, *AGAIN[2:])
            s.serves()
    finally:
        fs.close()


def crashes(b):
    return b.of(2, ("	struct entry *e = find(key);\n\n	if (value)\n"
                    "		return sprintf(out, \"ERROR usage: GET",
                    "	struct entry *e = find(key);\n\n	if (!strcmp(key, \"boom\"))\n"
                    "		*(volatile int *)8 = 1;\n	if (value)\n"
                    "		return sprintf(out, \"ERROR usage: GET"))


def following(b):
    old, new = b.of(1), b.of(2)
    grown = b.of(2, ("#define SIZE	1024", "#define SIZE	1030"))
    differs = b.of(2, ("VALUE %s", "VALUe %s"))
    with Session(old) as s:
        update(s, crashes(b), "--xform", SAYS)
        s.first.expect("GET boom", "NONE")
        s.until("alone")
        s.serves()
        for bad in (differs, grown):
            s.mve("update", "--to", bad, "--xform", SAYS, *AGAIN, ok=False)
            s.first.expect("GET key-1", "VALUE value 1")
            s.until("alone")
            assert s.leader() == "v0"
            s.serves()
        # Each is another program, whatever it was begun as.
        assert "itself" not in s.mve("report", "--list")[1], s.mve("report", "--list")
        update(s, new, "--xform", SAYS)
        os.kill(next(v["pid"] for v in s.status()["versions"] if v["role"] == "leader"),
                signal.SIGSEGV)
        load.until(lambda: s.leader() != "v0", s.status)
        s.until("alone")
        s.serves()
        s.first.expect("TYPE key-1", "TYPE string")
        s.done()


def leading(b):
    with Session(b.of(1)) as s:
        update(s, crashes(b), "--xform", SAYS)
        s.mve("promote")
        s.until("new leads")
        s.serves()
        s.first.expect("GET boom", "NONE")
        s.until("alone")
        assert s.leader() == "v0", s.status()
        load.until(lambda: re.search(r"crashed: SIGSEGV at 0x8: get at v2-\d+.c:\d+$",
                                     s.status()["update"]["why"]), s.status)
        report = s.mve("report")[1]
        assert re.search(r"^  led +new1 (?s:.*)^SIGSEGV at address 0x8: get at v2-\d+.c:\d+$(?s:.*)"
                         r"^  #0 +get .*\.c:\d+$(?s:.*)^  #\d+ +serve ", report, re.M), report
        s.serves()
        goes(s, b.of(2))
        s.done()


def unset(b):
    """Not said it is asked for, with both places; said wrongly it is met where it is used."""
    found = b.says("transform struct entry { typ = (enum type)0x6b6b6b6b; }\n"
                   "transform thread serve { : struct client; }\n")
    left_out = b.says("transform thread serve { : struct client; }\n")
    new = b.of(2)
    with Session(b.of(1)) as s:
        status, said = s.mve("update", "--to", new, "--xform", left_out, ok=False)
        assert status and re.search(r"v2-\d+\.c:\d+:\d+: error: `typ` is new in `struct entry`"
                                    r"(?s:.*)v1-\d+\.c:\d+:\d+:", said), f"status {status}: {said}"
        assert not s.status()["update"]["tried"], "the leader was asked"
        refused(s, new, "not the new version within 1 s; it was in the transformation$",
                "--within", "1", "--retry", "1/1",
                says=b.says(GATED % f"{b.work}/never"))
        update(s, new, "--xform", found)
        s.serves()
        s.mve("promote")
        s.until("new leads")
        s.first.expect("GET key-1", "VALUE value 1")
        s.first.expect("TYPE key-1", "ERROR unknown request")    # the old one's answer
        s.until("alone")
        assert s.leader() == "v0", s.status()
        assert "crashed: SIGSEGV" in s.status()["update"]["why"], s.status()["update"]
        s.serves()
        goes(s, new)
        s.done()


# What a PUT was goes into memory of the server's, by a stream of libc's that has its address.
NOTED = (("static unsigned long entries;\n",
          "static unsigned long entries;\nstatic char *noted;\nstatic FILE *notes;\n"),
         ("	free(e->value);\n",
          "	free(e->value);\n	if (noted) {\n		rewind(notes);\n"
          "		fprintf(notes, \"%s is %s\", key, value);\n		fflush(notes);\n	}\n"),
         ("	int listening;\n\n",
          "	int listening;\n\n	if (!mve_updating()) {\n		noted = malloc(4096);\n"
          "		notes = fmemopen(noted, 4096, \"w\");\n	}\n"))


def freed(b):
    old, new = b.of(1, *NOTED), b.of(2, *NOTED)
    with open(SAYS) as f:
        says = f.read()
    frees = b.says(says + "transform variable noted {\n"
                   "	*new = ({ extern void free(void *), *malloc(unsigned long);\n"
                   "		free(OLD(noted)); (char *)malloc(4096); });\n}\n")
    right = b.says(says)
    with Session(old) as s:
        update(s, new, "--xform", frees)
        # As published: with many clients, for one of them is given the memory.
        many = [s.server.client() for _ in range(20)]
        for i, one in enumerate(many):
            one.expect(f"PUT many-{i} value {i}", "OK")
            one.expect(f"GET many-{i}", f"VALUE value {i}")
        s.until("alone")
        assert s.leader() == "v0", s.status()["update"]
        assert re.search("crash|diverged|SIG", s.status()["update"]["why"]), s.status()["update"]
        s.serves()
        goes(s, new, right)
        s.done()


def aborted(b):
    old = b.of(1, HOLDS)
    with Session(old) as s:
        never = b.says(GATED % f"{b.work}/never")
        s.mve("update", "--to", b.of(2), "--xform", never, *AGAIN, "--no-wait")
        s.until("updating")
        s.serves()
        s.mve("abort")
        s.until("alone")
        s.serves()
        go = f"{b.work}/go-aborted"
        holder = s.server.client()
        holder.socket.sendall(f"PUT hold {go}\n".encode())
        until_held(go)
        new = b.of(2)
        for stage, limit in (("stopping", "60000"), ("alone, to be tried again", "1")):
            s.mve("update", "--to", new, "--xform", SAYS, "--limit", limit, "--retry",
                  "9/60000", "--no-wait")
            s.until(stage)
            s.mve("abort")
            s.until("alone")
        with open(go, "w"):
            pass
        assert holder.file.readline() == "OK\n"
        s.serves()
        goes(s, new)
        s.done()
    left = served.run(f"{served.BIN}/mve", "status", s.name, ok=False)
    folder = f"{os.environ['XDG_RUNTIME_DIR']}/mve/{s.name}"
    assert left[0] and not os.path.exists(folder), (left, os.listdir(folder))


def ends(b):
    gate = f"{b.work}/gate"
    says = b.says(GATED % gate)
    with Session(b.of(1)) as s:
        s.mve("update", "--to", b.of(2), "--xform", says, *AGAIN, "--no-wait")
        s.until("updating")
        # A twin that has yet to say that it is there leads in nobody's place.
        load.until(lambda: any(v["role"] == "follower" for v in s.status()["versions"]), s.status)
        s.serves()
        os.kill(next(v["pid"] for v in s.status()["versions"] if v["role"] == "leader"),
                signal.SIGSEGV)
        load.until(lambda: s.leader() != "v0", s.status)
        assert s.stage() == "updating", s.status()["update"]
        with open(gate, "w"):
            pass
        s.until("alone")
        s.serves()
        s.first.expect("TYPE key-1", "TYPE string")
        s.done()
    never = b.says(GATED % f"{b.work}/never")
    for stage in ("stopping", "updating", "old leads"):
        with Session(b.of(1, HOLDS), clients=0) as s:
            go = f"{b.work}/go-{stage[:3]}"
            holder = s.server.client()
            if stage == "stopping":
                holder.socket.sendall(f"PUT hold {go}\n".encode())
                until_held(go)
            s.mve("update", "--to", b.of(2), "--xform", SAYS if stage == "old leads" else
                  never, *AGAIN, "--limit", "60000", "--no-wait")
            s.until(stage)
            server = s.status()["server"]
            s.server.process.kill()
            s.server.process.wait()
            with open(go, "w"):
                pass
            try:
                s.first.expect("GET key-1", "VALUE value 1")
                s.server.client().expect("GET key-2", "VALUE value 2")
            finally:
                os.kill(server, signal.SIGKILL)


# What the server says of itself to mve it says late.
LATE = """#include <errno.h>
#include <stdarg.h>
#include <unistd.h>
#include "engine/abi/brief.h"

long syscall(long number, ...)
{
	long arg[6], result;
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(ap, long);
	va_end(ap);
	if (number == UPDATE_CALL && arg[0] == UPDATE_HELLO)
		sleep(1);
	register long r10 __asm__("r10") = arg[3], r8 __asm__("r8") = arg[4], r9 __asm__("r9") = arg[5];
	__asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(arg[0]), "S"(arg[1]),
			 "d"(arg[2]), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	errno = result < 0 ? (int)-result : errno;
	return result < 0 ? -1 : result;
}
"""


def begun(b):
    with open(f"{b.work}/late.c", "w") as f:
        f.write(LATE)
    os.environ["LD_PRELOAD"] = served.build(f"{b.work}/late.c", f"{b.work}/late.so")
    with Session(b.of(1)) as s:
        del os.environ["LD_PRELOAD"]
        goes(s, b.of(2))
        s.done()


def rules(b):
    with Session(b.of(1)) as s:
        update(s, b.of(2), "--xform", SAYS, "--rules", f"{served.ROOT}/rules/kv/kv.rules")
        s.first.expect("PUT-number one 1", "ERROR unknown request")
        s.first.expect("TYPE key-1", "ERROR unknown request")
        s.first.expect("PUT two words of it", "OK")
        s.first.expect("GET one", "NONE")
        s.serves()
        assert s.stage() == "old leads", s.status()["update"]
        s.mve("promote")
        s.until("new leads")
        s.first.expect("PUT-string three all of it", "OK")
        s.first.expect("GET three", "VALUE all of it")
        s.first.expect("GET two", "VALUE words of it")
        s.serves()
        assert s.stage() == "new leads", s.status()["update"]
        # The old version has nothing for it: it ends, and the new one is alone.
        s.first.expect("PUT-number four 4", "OK")
        s.first.expect("TYPE four", "TYPE number")
        s.until("alone")
        assert s.leader() != "v0"
        said = s.mve("commit")[1]       # nothing is left to be given up
        assert re.search(r"the update: done: v0 ended: .*diverged", said), said
        assert s.mve("commit")[1] == said
        assert s.mve("abort", ok=False)[0] == 1
        s.serves()
        s.done()


def main():
    what = sys.argv[1]
    with tempfile.TemporaryDirectory() as work:
        {"moment": moment, "becoming": becoming, "following": following, "leading": leading,
         "unset": unset, "freed": freed, "aborted": aborted, "ends": ends, "rules": rules,
         "begun": begun, "reading": reading}[what](Builds(work))
    print(f"update_{what}: ok")


main()
