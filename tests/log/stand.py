#!/usr/bin/env python3
"""stand.py: a replay stands at the event asked for, and goes on from there.

servers/kv is recorded, with two requests.  Its replay is to stand at the first one's read, which
a debugger sees; then at its answer, then to go to the end, equal.  Times and the last call are
places, too; what is behind it, or is none, is refused.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from kv import MVE, build, connect, fail, free_port, mve, record

LOG = "stand.log"
NAME = f"stand-{os.getpid()}"


def numbers(text):
    """Events whose line has this."""
    return [int(line.split()[0]) for line in mve("log", LOG, "show").stdout.splitlines()
            if text in line]


class Replay:
    def __init__(self, until):
        self.out = open("stand.out", "w+")
        self.mve = subprocess.Popen([MVE, "replay", "-n", NAME, "--until", until, LOG],
                                    stdout=self.out, stderr=subprocess.STDOUT)
        for _ in range(1200):
            p = subprocess.run([MVE, "status", NAME, "--json"], capture_output=True, text=True)
            self.at = json.loads(p.stdout).get("replay", {}) if not p.returncode else {}
            if self.at.get("stands") or self.mve.poll() is not None:
                return
            time.sleep(0.05)
        fail(f"it never stands: {self.said()}")

    def said(self):
        self.out.seek(0)
        return self.out.read()

    def end(self):
        mve("go", NAME, "end")
        if self.mve.wait(100) or "it ends before" in self.said() or \
           not re.search(r"^replayed \d+ calls, equal$", self.said(), re.M):
            fail(self.said())


def stack(pid):
    p = subprocess.run(["gdb", "-nx", "-q", "-batch", "-p", str(pid), "-ex", "bt"],
                       capture_output=True, text=True, timeout=200, stdin=subprocess.DEVNULL)
    return p.stdout


def stands(r, event, function):
    if r.at.get("event") != event:
        fail(f"it stands at {r.at}, not at {event}: {r.said()}")
    seen = stack(r.at["pid"])
    if not re.search(rf"^#\d+ .*\b{function} ", seen, re.M) or " main " not in seen:
        fail(f"no {function}: {seen}")


def until():
    asked, answered = numbers('"PUT a b'), numbers('"OK')
    if len(asked) != 1 or len(answered) != 1:
        fail(mve("log", LOG, "show").stdout)
    r = Replay(str(asked[0]))
    stands(r, asked[0], "main")
    said = mve("go", NAME, str(answered[0])).stdout
    if not re.match(rf"stands at event {answered[0]}: pid {r.at['pid']},", said):
        fail(said)
    # It does not go back by itself; a word that is no event is none.
    if "behind that event" not in mve("go", NAME, str(asked[0]), status=1).stderr:
        fail("it goes back")
    for word in ("somewhere", "+2", "2x", "0"):
        mve("go", NAME, word, status=2)
    r.end()
    # Who ends it hears that, and nothing of what it had yet to read.
    for sig in signal.SIGTERM, signal.SIGINT:
        r = Replay(str(asked[0]))
        r.mve.send_signal(sig)
        if r.mve.wait(100) != 3 or "not whole" in r.said() or "equal" in r.said() or \
           "not replayed to the end: it was ended before that" not in r.said():
            fail(f"{sig}: {r.mve.returncode} {r.said()}")


def places():
    last = numbers("")[-1]
    r = Replay("last")
    if r.at.get("event") != last:
        fail(f"the last call is {last}, not {r.at}")
    r.end()
    lines = mve("log", LOG, "show").stdout.splitlines()
    clock = lines[len(lines) // 2].split()[2]
    first = next(int(line.split()[0]) for line in lines if line.split()[2] >= clock)
    r = Replay("+0.000001")
    if r.at.get("event") != 1:
        fail(f"from the beginning: {r.at}")
    r.end()
    r = Replay(clock)
    if abs(r.at.get("event", 0) - first) > 1:       # what is shown is cut to microseconds
        fail(f"at {clock}: {r.at}, not {first}")
    r.end()
    # Behind the end it does not stand: it is replayed, and that is said.
    r = Replay("+3000")
    if r.mve.wait(100) != 3 or "equal" not in r.said() or \
       "it ends before that time" not in r.said():
        fail(r.said())
    r = Replay(str(last + 1))
    if r.mve.wait(100) != 3 or f"it ends before event {last + 1}\n" not in r.said():
        fail(r.said())
    mve("replay", "--until", "noon", LOG, status=2)


def debugger(log, until, *commands):
    p = subprocess.run([MVE, "replay", "--gdb", "--until", until, log],
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=250,
                       input="".join(f"{c}\n" for c in commands))
    return p.stdout


def gdb():
    """Forwards, by kind, to a breakpoint; backwards; to the end; anew.  A frame above the call
    has what was given to it."""
    asked, answered = numbers("recvfrom"), numbers("sendto")
    seen = debugger(LOG, str(asked[0]), "mve next call sendto", "bt",
                    "frame function client_write", "down", "p $rdi", "mve next conn 1",
                    "break get", "mve next call sendto", "p key", "mve go last", "delete",
                    "mve back call recvfrom", "mve go +0.001", "mve end", "mve next",
                    f"mve go {answered[1]}", "bt", "mve go 99999", "mve next call nothing",
                    "mve next conn 99", "mve go noon", "mve where", "quit")
    place = 0
    for want in (f"event {asked[0]},", "PUT a b", f"event {answered[0]},", r"#\d+ .*\bclient_write ",
                 r"\$1 = 6\n", f"event {asked[1]},", r"\nBreakpoint 1, get \(key=0x\w+ \"a\"",
                 f"stopped behind event {asked[1]}", r'"a"', f"event {numbers('')[-1]},",
                 f"event {asked[-1]},", "event 1,", r"replayed \d+ calls, equal", "the replay is over",
                 "has not begun", f"event {answered[1]},", r"#\d+ .*\bclient_write ",
                 "the recording ends before event 99999", "no such call: nothing",
                 "no such connection: 99", "not an event or a time", f"event {answered[1]},"):
        found = re.compile(want).search(seen, place)
        if not found:
            fail(f"no {want!r} behind {seen[:place][-200:]!r} in:\n{seen}")
        place = found.end()
    if "?? ()\n#" in seen:
        fail(f"frames of mve's own are shown: {seen}")


FORKS = r"""
#include <sys/wait.h>
#include <unistd.h>
static void __attribute__((noinline)) child_says(void) { (void)!write(1, "child\n", 6); }
static void __attribute__((noinline)) parent_says(void) { (void)!write(1, "after\n", 6); }
int main(void)
{
	(void)!write(1, "first\n", 6);
	if (!fork()) {
		child_says();
		_exit(0);
	}
	wait(NULL);
	parent_says();
	return 0;
}
"""


def forks():
    """The debugger goes where the event is: into a child, and behind its end to its parent."""
    with open("forks.c", "w") as file:
        file.write(FORKS)
    subprocess.run(["gcc", "-g", "-O0", "forks.c", "-o", "forks"], check=True)
    shutil.rmtree("forks.log", ignore_errors=True)
    mve("run", "--record", "forks.log", "--", "./forks")
    lines = [line for line in mve("log", "forks.log", "show").stdout.splitlines() if " write(" in line]
    says = sorted((int(line.split()[0]), re.search(r'"(\w+)', line)[1]) for line in lines)
    where = {"first": "main", "child": "child_says", "after": "parent_says"}
    steps = [*says, says[0], says[-1]]
    seen = debugger("forks.log", str(says[0][0]), "bt",
                    *(word for number, _ in steps[1:] for word in (f"mve go {number}", "bt")),
                    "mve end", "quit")
    place = 0
    for want in (*(f'event {number},.*"{text}(?s:.*?)\\b{where[text]} ' for number, text in steps),
                 r"replayed \d+ calls, equal"):
        found = re.compile(want).search(seen, place)
        if not found:
            fail(f"no {want!r} behind {seen[:place][-200:]!r} in:\n{seen}")
        place = found.end()


def execs():
    """A program that begins under the debugger cannot be held: no such replay is equal."""
    shutil.rmtree("execs.log", ignore_errors=True)
    mve("run", "--record", "execs.log", "--", "sh", "-c", "echo one; exec /bin/echo two")
    seen = debugger("execs.log", "1", "mve end", "quit")
    if "equal" in seen or "not replayed to the end" not in seen and "it differs" not in seen:
        fail(seen)
    if "equal" not in mve("replay", "-n", NAME, "execs.log").stdout:
        fail("without a debugger it is not equal")


def died():
    """A crash is the recording's end, whether another took over or not, and is said."""
    build("kvc", lambda text: text.replace("if (!value || strlen(key)", "if (strlen(key)"))
    for follower, answer, what in ((None, None, "killed by SIGSEGV; the session has ended"),
                                   ("kv", "ERROR usage: PUT key value",
                                    "crashed: SIGSEGV at 0x0; another version leads")):
        port = record("died.log", "kvc", (("PUT a b", "OK"), ("PUT c", answer)), follower)
        mve("log", "died.log", "verify")
        if f"\nended        {what}\n" not in mve("log", "died.log").stdout:
            fail(mve("log", "died.log").stdout)
        for build_of in [], ["--", "./kv", str(port)]:
            said = mve("replay", "-n", NAME, "died.log", *build_of).stdout
            if not re.fullmatch(rf"replayed \d+ calls, equal\n.* ended there: {what}\n", said):
                fail(said)


def last_words(text):
    """A handler that is there for one time says something, and the signal is sent again."""
    text = text.replace("int main(int argc, char **argv)\n{\n", """static void dies(int sig)
{
	(void)!write(1, "last words\\n", 11);
	signal(sig, SIG_DFL);
	kill(getpid(), sig);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = dies, .sa_flags = SA_RESETHAND | SA_NODEFER };

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGABRT, &action, NULL);
""")
    return text.replace("if (!value || strlen(key)", "if (strlen(key)")


def sent():
    """It is recorded until somebody sends it SIGABRT."""
    shutil.rmtree("handled.log", ignore_errors=True)
    port = free_port()
    with subprocess.Popen([MVE, "run", "-n", NAME, "--record", "handled.log", "--", "./kvh",
                           str(port)], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as session:
        connect(port).close()
        os.kill(json.loads(mve("status", NAME, "--json").stdout)["server"], signal.SIGABRT)
        session.wait(60)


def handled():
    """What a server says in its handler, before it dies, is replayed as all else."""
    build("kvh", last_words)
    for recorded, what in ((lambda: record("handled.log", "kvh", (("PUT a", None),)), "SIGSEGV"),
                           (sent, "SIGABRT")):
        recorded()
        if '"last words' not in mve("log", "handled.log", "show", "--call", "write").stdout:
            fail(f"{what}: its last words are not recorded")
        said = mve("replay", "-n", NAME, "handled.log").stdout
        if not re.fullmatch(r"replayed \d+ calls, equal\n.* ended there: "
                            rf"killed by {what}; the session has ended\n", said):
            fail(said)


def crash():
    """From a crash to the request, and back to the one before."""
    build("kvc", lambda text: text.replace("if (!value || strlen(key)", "if (strlen(key)"))
    record("crash.log", "kvc", (("PUT a b", "OK"), ("GET a", "VALUE b"), ("PUT c", None)))
    seen = debugger("crash.log", "last", "mve end", "bt",
                    # The session is over but for the debugger: it waits for that.
                    "python import time; time.sleep(3)", "bt", "mve back call recvfrom", "quit")
    if not re.search(r'event \d+, thread \d+, [\d:.]+: recvfrom\(6, "PUT c', seen) or \
       "SIGSEGV" not in seen or len(re.findall(r"#1 .* in put\b", seen)) < 2 or \
       not re.search(r'recvfrom\(6, "GET a', seen):
        fail(seen)
    if "gdb-" in mve("ps").stdout and f"{os.getcwd()}" in mve("ps").stdout:
        fail("a session is left")


build("kv")
record(LOG, "kv", (("PUT a b", "OK"), ("GET a", "VALUE b")))
for case in sys.argv[1:]:
    globals()[case]()
print("stand: ok")
