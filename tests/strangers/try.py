#!/usr/bin/env python3
"""try.py [--table] [--only PHASE,...] [--one-at-a-time] [--asan] [SERVER...|all]: a server that mve
was not made with, tried as a stranger would.  servers.py has them, a few lines each; clients.py
checks each answer.

	native	alone, under load
	held	under plain `mve run`
	follow	with a follower, which is alive and equal behind the load
	reload	with a follower, reloaded by its signal under load; what is lost is held
		against it only if natively nothing is
	promote	to and fro twice under load
	crash	the leader is killed by SIGSEGV (or `crash`) under load; the follower takes over
	daemon	as a daemon: with a follower, promoted to and fro, crashed, stopped
	record	recorded under load, and replayed twice to the end: equal (only when asked for)
	soak	with a follower, loaded for --seconds (60) beside --spinners (0) that compute: what
		`mve status` counts of races and waits stands behind it; then as plant, but for
		the time (only when asked for).  --patience 10: all waits are so many times as
		long, where others have the processors
	plant	a byte of what it answers with is another in the follower (planting.py), under
		load: that is reported within two seconds, as one that differed each time that it
		was tried (only when asked for)

--asan: a plain build of servers/build leads, and one with AddressSanitizer follows.  Each begins anew, in a session of its own.  It says a line for each: `yes`, or what did not hold:
requests that got no or a wrong answer are *lost* and counted, nobody answered for QUIET_S is an
*outage*, and why a follower was dropped stands behind it.  With --table the lines of docs/followers.md's table.  Status 0: all held."""
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import classics     # noqa: F401, adds to SERVERS
import clients
import planting
import threads      # so does it
from clients import Wrong
from servers import SERVERS

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MVE = os.environ.get("MVE", os.path.join(ROOT, "build/mve"))
PHASES = ("native", "held", "follow", "reload", "promote", "crash", "daemon")
LOAD = 40       # answers between two things that happen
QUIET_S = 30    # longer than a client waits
REPLAY_S = 200
BUILD_S = 1800
REPORTED_S = 2  # after the answer that differs
TRIES = 8       # --rewind


class Load:
    """Some clients at work, each from a thread of its own."""

    def __init__(self, server):
        self.answers, self.lost, self.stopping = 0, [], False
        self.threads = [threading.Thread(target=self.run, args=(server, who), daemon=True)
                        for who in range(server.connections)]
        for thread in self.threads:
            thread.start()

    def run(self, server, who):
        client, n, left = None, 0, 0
        while not self.stopping:
            try:
                if left == 0:
                    self.drop(client)
                    client = server.client(server, who)
                    left = client.lives
                got = client.ask(n) or 1
                self.answers += got
                left -= 1
            except Exception as e:      # whatever a library throws
                self.lost.append(f"{type(e).__name__}: {e}")
                left = 0
                time.sleep(0.05)
            n += 1
        self.drop(client)

    @staticmethod
    def drop(client):
        try:
            if client:
                client.close()
        except Exception:   # it was broken already
            pass

    def more(self, count=LOAD):
        """So many answers: however slowly the machine has them, but no silence."""
        want, had, since = self.answers + count, self.answers, time.monotonic()
        while self.answers < want:
            if self.answers > had:
                had, since = self.answers, time.monotonic()
            elif time.monotonic() > since + QUIET_S * AT["patience"]:
                raise Wrong(f"outage: no answer for {QUIET_S * AT['patience']} s; "
                            f"{self.lost[-1:]}")
            time.sleep(0.01)

    def over(self):
        self.stopping = True
        for thread in self.threads:
            thread.join(45 * AT["patience"])

    def stop(self):
        self.over()
        if self.lost:
            raise Wrong(f"lost {self.words()}: " + "; ".join(sorted(set(self.lost))[:3]))

    def words(self):
        return f"{len(self.lost)} of {len(self.lost) + self.answers}"


class Session:
    """The server at work: natively (how is None), or under mve with these options."""
    count = 0

    def __init__(self, kind, how, daemon=False):
        Session.count += 1
        self.folder = tempfile.mkdtemp(prefix="mve-stranger-", dir="/tmp")
        self.name = "%s-%d" % (os.environ.get("MVE_SESSION", f"t-{os.getpid()}"), Session.count)
        self.held, self.daemon = how is not None, daemon
        self.recording = self.folder + ".log"
        self.server = kind(free_port(kind.udp), self.folder)
        command = self.server.command(daemon)
        if AT["asan"]:
            command, how = self.editions(command, how)
        if self.held:
            how = [word.format(recording=self.recording) for word in how]
            command = [MVE, "run", "-n", self.name, *how, "--ring", "8M", "--when-full", "block",
                       "--", *command]
        with open(f"{self.folder}/out", "ab") as out:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out,
                                            stderr=out, cwd=self.folder, start_new_session=True)
        self.answers()

    def editions(self, command, how):
        """A plain one, followed by one with a sanitizer; by paths of one length: servers show them."""
        names = {"leads": "plain", "heeds": "asan"}
        for name, edition in names.items():
            done = subprocess.run([f"{ROOT}/servers/build", self.server.build, edition],
                                  capture_output=True, text=True, timeout=BUILD_S)
            if done.returncode:
                raise Wrong(done.stderr.strip())
            os.symlink(done.stdout.strip(), f"{self.folder}/{name}")
        led, heeded = ([f"{self.folder}/{name}", *command[1:]] for name in names)
        if how and how[0] == "-f":
            how = ["-f", shlex.join(heeded), *how[2:]]
        return led, how

    def answers(self):
        """It has begun: a client gets its first answer."""
        end = time.monotonic() + self.server.begin_s * AT["patience"]
        while True:
            try:
                client = self.server.client(self.server, 9)
                client.ask(0)
                return client.close()
            except Exception as e:
                if time.monotonic() > end or self.process.poll() not in (None, 0):
                    raise Wrong(f"does not begin: {e!r}") from None
                time.sleep(0.2)

    def status(self):
        done = subprocess.run([MVE, "status", self.name, "--json"], capture_output=True,
                              timeout=20 * AT["patience"])
        return json.loads(done.stdout) if done.returncode == 0 else {"versions": []}

    def leader(self):
        return next((v for v in self.status()["versions"] if v["role"] == "leader"), None)

    def log(self):
        text = ""
        for path in (f"{self.folder}/out",
                     f"{os.environ['XDG_STATE_HOME']}/mve/{self.name}/session.log"):
            if os.path.exists(path):
                with open(path, errors="replace") as file:
                    text += file.read()
        return text

    def why(self):
        """What mve says of followers that it has dropped, and the report's first lines."""
        said = [line for line in self.log().splitlines()
                if re.match(r"mve: .*(dropped|diverge|crash|leads|not)", line)]
        report = subprocess.run([MVE, "report", self.name], capture_output=True, text=True).stdout
        with open(f"{self.folder}/report", "w") as file:
            file.write(report)
        return " | ".join(said[-4:])

    def alive(self):
        """The follower, which is one still."""
        end, versions = time.monotonic() + 20 * AT["patience"], []
        while not versions and time.monotonic() < end:      # a monitor without a processor
            versions = self.status()["versions"]
        rest = [v for v in versions if v["role"] != "leader"]
        if len(rest) != 1 or rest[0]["role"] != "follower" or not rest[0]["alive"]:
            raise Wrong(f"dropped: {self.why()}")
        if rest[0]["findings_all"]:
            raise Wrong(f"found: {self.why()}")
        return rest[0]

    def steady(self, seconds=30):
        """It has come to where the leader is, too."""
        end, words = time.monotonic() + seconds, "no status"
        while time.monotonic() < end:
            cells = self.alive()["lag_cells"]
            words = f"{cells} cells behind"
            if cells < 200:
                return
            time.sleep(0.2)
        raise Wrong(f"behind: {words}")

    def promote(self, name):
        done = subprocess.run([MVE, "promote", self.name, name, "--keep", "--wait=20"],
                              capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise Wrong(f"promote: {done.stderr.strip()} {self.why()}")

    def crash(self):
        old = self.leader()
        os.kill(old["pid"], getattr(signal, "SIG" + self.server.crash))
        end = time.monotonic() + 20
        while time.monotonic() < end:
            now = self.leader()
            if now and now["name"] != old["name"]:
                return
            time.sleep(0.05)
        raise Wrong(f"no failover: {self.why()}")

    def end(self):
        if self.held:
            done = subprocess.run([MVE, "stop", self.name], capture_output=True, text=True,
                                  timeout=90)
            if done.returncode:
                raise Wrong(f"stop: {done.stderr.strip()}")

    def replay(self):
        """What a replay of the recording says of itself, which is that it is equal."""
        done = subprocess.run([MVE, "replay", "-n", self.name + "-again", self.recording],
                              capture_output=True, text=True, errors="replace", timeout=REPLAY_S)
        # Behind it stands what the server died of, where SIGTERM is the end that it knows.
        if done.returncode or not re.match(r"replayed [1-9]\d* calls, equal\n", done.stdout):
            raise Wrong(f"replay: {done.returncode} {done.stdout.strip()} "
                        + " | ".join(done.stderr.splitlines()[:4]))
        return done.stdout.strip()

    def clean(self):
        if self.held:
            subprocess.run([MVE, "stop", self.name, "--kill"], capture_output=True)
        for sig in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, sig)    # our own: start_new_session
                self.process.wait(5)
            except (OSError, subprocess.TimeoutExpired):
                pass
        if os.environ.get("KEEP"):
            print("kept:", self.folder)
            return
        for folder in self.folder, self.recording:
            shutil.rmtree(folder, ignore_errors=True)


def free_port(udp):
    import socket
    with socket.socket(type=socket.SOCK_DGRAM if udp else socket.SOCK_STREAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def native(session, load):
    load.more()


held = native


def follow(session, load):
    load.more(3 * LOAD)
    load.stop()
    session.steady()


def reload_server(session, load):
    load.more()
    pid = session.status()["server"] if session.held else session.process.pid
    os.kill(pid, getattr(signal, "SIG" + session.server.reload))
    load.more(2 * LOAD)
    load.over()


def lost_natively(kind):
    """Of how many requests it loses how many when it is reloaded alone; none: None."""
    session = Session(kind, None)
    load = Load(session.server)
    try:
        reload_server(session, load)
        return load.words() if load.lost else None
    finally:
        load.stopping = True
        session.clean()


def reload(session, load):
    reload_server(session, load)
    session.steady()
    natively = lost_natively(type(session.server)) if load.lost else None
    if not natively:
        return load.stop()
    words, load.lost = load.words(), []
    return f"yes, lost {words}; natively {natively}"


def promote(session, load):
    for name in ("f1", "v0", "f1", "v0"):
        load.more()
        session.promote(name)
    load.more()
    load.stop()
    session.steady()


def crash(session, load):
    load.more()
    session.steady()
    session.crash()
    load.more(2 * LOAD)


def daemon(session, load):
    for name in ("f1", "v0"):
        load.more()
        session.promote(name)
    load.more()
    session.steady()
    if session.server.crash:
        session.crash()
        load.more()


def record(session, load):
    load.more(3 * LOAD)
    load.stop()
    session.end()
    session.process.wait(60)
    said = [session.replay() for _ in range(2)]
    if said[0] != said[1]:
        raise Wrong(f"replays differ: {said}")
    return "yes, " + said[0]


def counted(session, leads):
    """Races, met limits and the longest wait of those that lead, or that follow."""
    words = []
    for v in session.status()["versions"]:
        if (v["role"] == "leader") == leads:
            words += [f"{w['kind']} {w['met']}" for w in v["waits"] if w["met"]]
            words += [f"longest {w['kind']} {w['longest_us'] / 1000:.1f} ms"
                      for w in v["waits"] if w["longest_us"] and w["whose"] == "leader" and leads]
            words += [f"{r['times']} times {r['place']}" for r in v.get("rewind", {}).get("races", [])]
    return ", ".join(words)


def planted(session, load, within):
    """In words: how long behind the answer that differs mve says so, and of which try."""
    session.alive()
    places, since, other = planting.plant(session)
    while any(v["role"] == "follower" for v in session.status()["versions"]):
        if time.monotonic() > since + QUIET_S * AT["patience"]:
            raise Wrong(f"planted in {places} places, and not reported")
        time.sleep(0.01)
    took = time.monotonic() - since
    done = subprocess.run([MVE, "report", session.name, "--json"], capture_output=True,
                              timeout=20 * AT["patience"])
    if done.returncode:
        raise Wrong(f"planted in {places} places, lost after {took:.1f} s, and no report")
    report = json.loads(done.stdout)
    words = (f"planted in {places} places, reported after {took:.1f} s, tried {report['tried']} "
             "times")
    if report["difference"] != "bytes" or other not in report["argument"]["follower"]["text"]:
        raise Wrong(f"{words}, but {report['summary']} is not {other}")
    if report["tried"] != TRIES or took > within:
        raise Wrong(words)
    load.more()
    return words


def plant(session, load):
    load.more(3 * LOAD)
    return "yes, " + planted(session, load, REPORTED_S)


def soak(session, load):
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
                for _ in range(AT["spinners"])]
    end, had = time.monotonic() + AT["seconds"], os.getloadavg()[0]
    try:
        while time.monotonic() < end:
            load.more(1)
            session.alive()
            time.sleep(0.5)
    finally:
        had = f"load average {had:.0f} to {os.getloadavg()[0]:.0f}"
        for one in spinning:
            one.kill()
            one.wait()
    load.stop()
    session.steady(60 * AT["patience"])
    words = (f"yes, {load.answers} answers, {had}; leader: {counted(session, True)}; "
             f"follower: {counted(session, False)}")
    if not session.server.plant:
        return words
    again = Load(session.server)
    try:
        words += "; " + planted(session, again, QUIET_S * AT["patience"])
        again.stop()
    except Wrong as e:
        raise Wrong(f"{e}; before that: {words}") from None
    finally:
        again.stopping = True
    return words


AT = {"seconds": 60, "spinners": 0, "patience": 1, "asan": False}
FOLLOWED = ["-f", "same"]
WITH = {"native": None, "held": [], "record": ["--record", "{recording}"]}


def attempt(kind, phase):
    """How it went, in words."""
    if not getattr(kind, phase, True):
        return "-"
    session = load = None
    try:
        session = Session.__new__(Session)
        session.__init__(kind, WITH.get(phase, FOLLOWED), phase == "daemon")
        load = Load(session.server)
        words = globals()[phase](session, load)
        load.stop()
        if phase != "record":   # which has ended
            session.end()
        return words or "yes"
    except (Wrong, OSError, subprocess.SubprocessError) as e:
        detail = f"{e}"
        if session and session.held and hasattr(session, "process"):
            detail += f" [{session.why()}]"
        return detail
    finally:
        if load:
            load.stopping = True
        if session and hasattr(session, "process"):
            session.clean()


def tried(name, phases):
    kind = SERVERS[name]
    for program in kind.needs:
        if not shutil.which(program):
            print(f"needs {program}")
            return None
    results = {}
    for phase in phases:
        results[phase] = attempt(kind, phase)
        print(f"{name} {phase}: {results[phase]}", flush=True)
    return results


def main():
    words = sys.argv[1:]
    phases, table = PHASES, "--table" in words
    if "--only" in words:
        phases = words.pop(words.index("--only") + 1).split(",")
        words.remove("--only")
    if "--one-at-a-time" in words:
        words.remove("--one-at-a-time")
        FOLLOWED.append("--one-at-a-time")
    if "--asan" in words:
        words.remove("--asan")
        AT["asan"] = True
        os.environ["ASAN_OPTIONS"] = "detect_leaks=0"
    for name in "seconds", "spinners", "patience":
        if f"--{name}" in words:
            AT[name] = int(words.pop(words.index(f"--{name}") + 1))
            words.remove(f"--{name}")
    clients.WAIT_S *= AT["patience"]
    threads.load.WAIT_S *= AT["patience"]
    names = [w.lower() for w in words if w != "--table"]
    names = list(SERVERS) if names in ([], ["all"]) else names
    os.environ.setdefault("XDG_STATE_HOME", tempfile.mkdtemp(prefix="mve-strangers-"))
    results = {name: tried(name, phases) for name in names}
    if table:
        for name, row in results.items():
            if row:
                print(f"| {SERVERS[name].__name__} | {SERVERS[name].shape} | "
                      + " | ".join(row[p] for p in phases) + " |")
    if not any(results.values()):
        raise SystemExit(77)
    if any(not re.match("yes|-", word) for row in results.values() if row for word in row.values()):
        raise SystemExit(1)
    print("strangers: ok")


if __name__ == "__main__":
    main()
