#!/usr/bin/env python3
"""Updates that must not happen: each is refused with its reason, and the old version serves on
with its state; when the reason is gone the same update succeeds."""
import tempfile
import threading

import served

SOURCE = f"{served.ROOT}/tests/update/faults.c"
GOOD = "transform struct state { extra = 5; }\n"


def ask(server, letter="x"):
    server.process.stdin.write(letter)
    server.process.stdin.flush()
    return server.process.stdout.readline().strip()


class Builds:
    def __init__(self, work):
        self.work, self.n = work, 0

    def old(self, *defines):
        self.n += 1
        return served.build(SOURCE, f"{self.work}/old-{self.n}.so", *defines)

    def new(self, *defines):
        self.n += 1
        return served.build(SOURCE, f"{self.work}/new-{self.n}.so", "-DNEW", *defines)

    def xform(self, old, new, says=GOOD):
        self.n += 1
        with open(f"{self.work}/{self.n}.xf", "w") as f:
            f.write(says)
        status, words = served.xform(old, new, f"{self.work}/{self.n}-x.so",
                                     f"{self.work}/{self.n}.xf")
        assert status == 0, words
        return f"{self.work}/{self.n}-x.so"


def refused(server, new, xform, text, ms="300"):
    status, words = server.order("update", new, xform, ms)
    assert status == 1 and text in words, f"status {status}: {words}"


def goes(server, new, xform, want):
    status, words = server.order("update", new, xform, "20000")
    assert status == 0, words
    assert ask(server) == want, (ask(server), want)


def never_comes(b):
    old, new = b.old("-DNEVER"), b.new()
    xform = b.xform(old, new)
    with served.Server(old) as server:
        assert ask(server, "b") == "old 1 note aborted 0 before 0 after 0"
        refused(server, new, xform, ", work, did not come to an update point; it is in work\n")
        got = ask(server, "f")
        assert got == "old 2 note aborted 0 before 0 after 0"
        goes(server, new, xform, "new 3 5 note aborted 0 before 1 after 1")


def tried_again(b):
    """A bad moment passes while the update is asked for again and again."""
    old, new = b.old("-DNEVER"), b.new()
    xform = b.xform(old, new)
    with served.Server(old) as server:
        ask(server, "b")
        free = threading.Timer(1, ask, (server, "f"))
        free.start()
        status, words = server.order("update", new, xform, "200", retry=("-r", "10000/50"))
        free.join()
        assert status == 0 and "refused for now: " in words, words
        assert ask(server).startswith("new 3 5 note aborted ")


def in_a_lock(b):
    old, new = b.old("-DLOCKED"), b.new()
    with served.Server(old) as server:
        refused(server, new, b.xform(old, new), "lock is held by a thread that stands")
        assert ask(server).startswith("old 1 ")


def dies(b):
    """C of the transformation that dies; C that leads into the old build."""
    old, new = b.old(), b.new()
    died = b.xform(old, new, "transform struct state { extra = *(volatile long *)8; }")
    back = b.xform(old, new, "transform struct state { extra = 5; note = (char *)OLD(state); }")
    stale = b.xform(old, new, "transform struct state { extra = 5; note = (char *)&OLD(state); }")
    with served.Server(old) as server:
        refused(server, new, died, "died of signal 11", "20000")
        refused(server, new, back, "memory that is freed", "20000")
        refused(server, new, stale, "leads into the old build", "20000")
        assert ask(server).startswith("old 1 note aborted 0 ")
        goes(server, new, b.xform(old, new), "new 2 5 note aborted 0 before 1 after 1")


def others(b):
    """A transformation of another build, a file that is none, a build that is none."""
    old, new = b.old(), b.new()
    other = b.old("-DOTHER", "-O1")
    with served.Server(old) as server:
        refused(server, new, b.xform(other, new), "not from the build that runs")
        refused(server, b.new("-O1"), b.xform(old, new), "does not lead to this new build")
        refused(server, new, SOURCE, "invalid ELF header")
        refused(server, SOURCE, SOURCE, "invalid ELF header")
        refused(server, new, new, "no transformation")
        assert ask(server).startswith("old 1 ")
        goes(server, new, b.xform(old, new), "new 2 5 note aborted 0 before 1 after 1")


def main():
    with tempfile.TemporaryDirectory() as work:
        for check in (never_comes, tried_again, in_a_lock, dies, others):
            check(Builds(tempfile.mkdtemp(dir=work)))
    print("update_faults: ok")


main()
