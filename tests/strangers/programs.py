#!/usr/bin/env python3
"""programs.py [OPTIONS] SET...: small programs of others, by the hundred.

A SET is a folder of built programs that need no words and end by themselves; or, where it has a
file `zdtm`, of a checkpointer's tests: they go to the background, wait for SIGTERM, then check
their state and say PASS (the file has a line for each: NAME and its words).  Each runs in a new
folder:

	native	twice; what differs from itself, runs over 6 s or needs ptrace stays aside
	patch, trap	under plain `mve run`, in both tiers: output and status are the native ones
	follow	with `-f same`: they are, too; and is the follower equal to the end?
	promote	(zdtm only) promoted to and fro before the SIGTERM

A leader that dies of a signal of its own, as natively, and whose follower took over, counts as
equal.  A line for each that differs, when it does (`#`), and for each set its figures.  With
`--again N` what differs runs N times more alone, natively once more beside each: *firm* if it
differs each time.  --keep FOLDER keeps what they said, FOLDER/SET.log has each result.

	--jobs N	so many at a time		--runs KIND,...	only these
	--every N	only each N-th program		--only NAME,...	only these

Some kill all that they may: run it in a pid namespace (unshare -p -f -i --mount-proc).
Status 77: no SET."""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MVE = os.environ.get("MVE", os.path.join(ROOT, "build/mve"))
NATIVE_S, HELD_S = 6, 40
KINDS = {"native": None, "patch": ["--tier=patch"], "trap": ["--tier=trap"],
         "follow": ["-f", "same"], "promote": ["-f", "same"]}
Result = collections.namedtuple("Result", "same text equal")   # equal: None, or why it is not


def normal(text):
    """Without what differs from run to run: numbers, and mve's own lines."""
    text = b"\n".join(line for line in text.split(b"\n") if not line.startswith((b"mve: ", b"hint: ")))
    return re.sub(rb"\d+(\.\d+)?", b"N", re.sub(rb"0x[0-9a-f]+", b"X", text))


def traces(path):
    with open(path, "rb") as file:
        return b"ptrace" in file.read()


class Run:
    """One run of a program, in a folder of its own."""

    def __init__(self, program, words, kind, folder):
        self.name = "p%d-%s" % (os.getpid(), re.sub(r"\W", ".", os.path.basename(folder)))
        self.kind, self.folder, self.zdtm = kind, folder, words is not None
        command = [program, *(words or [])]
        if KINDS[kind] is not None:
            command = [MVE, "run", "-n", self.name, "--status", f"{folder}.json", *KINDS[kind],
                       "--ring", "16M", "--", *command]
        os.makedirs(f"{folder}/in", exist_ok=True)
        with open(f"{folder}/out", "wb") as out:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=out, cwd=f"{folder}/in", start_new_session=True)

    def result(self):
        seconds = NATIVE_S if self.kind == "native" else HELD_S
        ended, said = "", ""
        try:
            if self.zdtm:
                said = self.checked(seconds)
            ended = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            ended = "hangs"
        finally:
            self.clean()
        with open(f"{self.folder}/out", "rb") as file:
            text = file.read()[:100000]
        same = (ended, said, normal(text)) if not self.zdtm else said
        return Result(same, f"{ended} {said}\n".encode() + text, self.equal())

    def find(self, name, seconds):
        end = time.monotonic() + seconds
        while not os.path.exists(f"{self.folder}/in/{name}"):
            if time.monotonic() > end:
                return None
            if self.process.poll() not in (None, 0):
                return None
            time.sleep(0.02)
        with open(f"{self.folder}/in/{name}", "rb") as file:
            return file.read()

    def checked(self, seconds):
        """The state behind the SIGTERM: what the program says of it.  v0 leads: the ids are its."""
        pid = self.find("pid", seconds)
        if pid is None:
            return "does not begin"
        pid = int(pid)
        if self.kind == "promote":
            for name in ("f1", "v0"):
                done = subprocess.run([MVE, "promote", self.name, name, "--keep", "--wait=15"],
                                      capture_output=True, text=True)
                if done.returncode:
                    os.kill(self.leader() or pid, signal.SIGTERM)
                    return "not promoted: " + re.sub(r"\d+|p\d+-\S+", "N", done.stderr.strip())
        try:
            os.kill(pid, signal.SIGTERM)
        except OSError:
            return "gone"
        said = self.find("test", seconds)
        return "nothing" if said is None else self.verdict(said)

    @staticmethod
    def verdict(said):
        return "PASS" if b"PASS" in said else "FAIL " + normal(said).decode(errors="replace")[-160:]

    def leader(self):
        done = subprocess.run([MVE, "status", self.name, "--json"], capture_output=True)
        if done.returncode:
            return None
        return next((v["pid"] for v in json.loads(done.stdout)["versions"]
                     if v["role"] == "leader"), None)

    def equal(self):
        if self.kind not in ("follow", "promote"):
            return None
        try:
            with open(f"{self.folder}.json") as file:
                rest = [v for v in json.load(file)["versions"] if v["role"] != "leader"]
        except (OSError, ValueError):
            return "no status"
        why = rest[0]["why"] if rest else "none"
        died = rest and rest[0]["name"] == "v0" and why.startswith("crashed: ")
        return None if why == "ended as the leader did" or died else why

    def clean(self):
        if self.kind != "native":
            subprocess.run([MVE, "stop", self.name, "--kill"], capture_output=True)
        try:
            os.killpg(self.process.pid, signal.SIGKILL)     # our own: start_new_session
        except OSError:
            pass
        self.process.wait()


class Set:
    def __init__(self, folder, options):
        self.folder, self.options, self.count = folder, options, 0
        self.name = os.path.basename(folder.rstrip("/"))
        self.words = {}
        names = sorted(os.listdir(folder))
        if "zdtm" in names:
            with open(f"{folder}/zdtm") as file:
                self.words = {line.split()[0]: line.split()[1:] for line in file}
            names = sorted(self.words)
        names = [n for n in names[::options.every] if os.access(f"{folder}/{n}", os.X_OK)]
        if options.only:
            names = [n for n in names if n in options.only]
        self.aside = [n for n in names if traces(f"{folder}/{n}")]
        self.names = [n for n in names if n not in self.aside]
        self.kinds = [k for k in options.runs if self.words or k != "promote"]

    def run(self, name, kind, tag=""):
        folder = f"{self.options.work}/{self.name}/{name}-{kind}{tag}"
        shutil.rmtree(folder, ignore_errors=True)
        result = Run(f"{self.folder}/{name}", self.words.get(name) if self.words else None, kind,
                     folder).result()
        shutil.rmtree(f"{folder}/in", ignore_errors=True)
        with open(f"{self.options.work}/{self.name}.log", "a", encoding="utf-8") as log:
            print(f"{name} {kind}{tag}", result.text[:150], result.equal or "", file=log)
        return result

    def one(self, name):
        """All runs of a program; None if it is not stable natively."""
        first = self.run(name, "native")
        bad = "hangs" in first.same if not self.words else first.same != "PASS"
        if bad or self.run(name, "native", "-again").same != first.same:
            return name, first, None
        results = {}
        for kind in self.kinds:
            results[kind] = r = self.run(name, kind)
            if r.same != first.same or r.equal is not None:
                said = "ok" if r.same == first.same else r.text[-120:]
                print("#", self.name, name, kind, said, r.equal or "", flush=True)
        return name, first, results

    def firm(self, name, first, kind, equal):
        """How often of three it is still so."""
        times = 0
        for again in range(self.options.again):
            if self.run(name, "native", f"-n{again}").same != first.same:
                return -1
            now = self.run(name, kind, f"-{again}")
            times += (now.equal is not None) if equal else now.same != first.same
        return times

    def all(self):
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            done = list(pool.map(self.one, self.names))
        stable = [d for d in done if d[2] is not None]
        row = {"set": self.name, "tried": len(done), "aside": len(self.aside),
               "stable": len(stable)}
        differ = []
        for kind in self.kinds:
            row[kind] = row[kind + " equal"] = 0
            for name, first, results in stable:
                result = results[kind]
                row[kind] += result.same == first.same
                row[kind + " equal"] += result.equal is None
                if result.same != first.same:
                    differ.append((name, first, kind, False, result))
                elif result.equal is not None:
                    differ.append((name, first, kind, True, result))
        return row, differ


def say(chosen, differ):
    if not chosen.options.again:
        return
    for name, first, kind, equal, result in differ:
        times = chosen.firm(name, first, kind, equal)
        word = {chosen.options.again: "firm", -1: "native differs too", 0: "once"}.get(times, f"{times} of 3 more")
        why = result.equal or result.text.decode(errors="replace").strip()[-150:]
        print(f"{chosen.name} {name} {kind}{' follower' if equal else ''}: {word}: {why!r}",
              flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--runs", type=lambda s: s.split(","), default=list(KINDS)[1:])
    parser.add_argument("--keep")
    parser.add_argument("--only", type=lambda s: s.split(","))
    parser.add_argument("--again", type=int, default=3)
    parser.add_argument("sets", nargs="*")
    options = parser.parse_args()
    options.sets = [s for s in options.sets if os.path.isdir(s)]
    if not options.sets:
        print("needs folders of built programs")
        raise SystemExit(77)
    options.work = options.keep or tempfile.mkdtemp(prefix="mve-programs-")
    os.environ.setdefault("XDG_STATE_HOME", f"{options.work}/state")
    for folder in options.sets:
        chosen = Set(os.path.abspath(folder), options)
        row, differ = chosen.all()
        print(" | ".join(f"{k} {v}" for k, v in row.items()), "| aside:", *chosen.aside, flush=True)
        say(chosen, differ)


if __name__ == "__main__":
    main()
