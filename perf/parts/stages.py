"""Servers that are updated, stage by stage: how much they serve in each.

As parts/followers.py: all ways are alive at once and take turns at slices, native among them, and
a ratio is to the native slice of the same turn.  Each stage has a session of its own, which is
brought there at the beginning of a round and stays.  Native is the plain program that Debian's
source makes; `prepared` is the build that can be updated, by mve-driver, without mve.

Then what becomes of the load across a change of the server, in hundredths of a second: a restart,
an update in place, one by a twin, with entries in it.  vsftpd is not in this: each visitor has a
process of its own, which neither touches.
"""

import os
import subprocess
import time

from . import figures, followers, plots, processes, servers, session, updates

WIDTHS = (-13, -13, 9, 7, 14, 9, 10)
ACROSS_WIDTHS = (-11, -10, 9, 9, 10, 9, 9, 11)
# Theirs, of native; leading is with the other version behind.
PUBLISHED = {"memcached": (0.91, 0.48), "redis": (0.94, 0.58), "vsftpd 5 B": (0.92, 0.75),
             "vsftpd 10 M": (0.97, 0.75)}
ALONE, AGAIN = "alone", "alone again"
LEADING = ("old leads", "new leads")
IN_SESSION = (ALONE, *LEADING, AGAIN)
MODES = ("native", "prepared", *IN_SESSION)
FILES = (("five", 5), ("ten", 10 << 20))
RETRY = ("--retry", "8/200")
EVERY_MS = 10
PLOT_MS = 100       # answers a second in its plot are of so long
CONNECTIONS = 8
LONE_S = 3          # before a change, and behind


_five = followers.ask_ftp("five", 5, 1)
_ten = followers.ask_ftp("ten", 10 << 20, 10)
_row = {spec[0]: spec for spec in followers.SERVERS}


def _vsftpd(binary, folder, port):
    return followers.vsftpd(binary, folder, port, FILES)


# name: from which version to which, and a row as in parts/servers.py, whose program is the plain one
PAIRS = {"redis": ("u7", "u10"), "memcached": ("before-46852", "before-46853"),
         "vsftpd": ("before-paths", "debian")}
ROWS = (_row["redis"], _row["memcached"],
        ("vsftpd", "vsftpd", _vsftpd, _five, {"vsftpd 5 B": _five, "vsftpd 10 M": _ten}, 1000))


def _plain(server, version):
    """The plain program of the same source as a build that can be updated."""
    with open(f"{updates.ROOT}/servers/update/versions") as f:
        words = next(line.split()[2:] for line in f if line.split()[:2] == [server, version])
    run = subprocess.run([f"{updates.ROOT}/servers/build", server, "plain", *words],
                         capture_output=True, text=True, check=False)
    if run.returncode:
        raise processes.Failed(" ".join(run.stderr.split()))
    return run.stdout.strip()


class Builds:
    def __init__(self, name):
        old, new = PAIRS[name]
        self.old, self.new = updates.built(name, old), updates.built(name, new)
        self.plain, self.plain_new = _plain(name, old), _plain(name, new)


class StagedSession(session.Session):
    """One that is to stay in a stage."""

    def __init__(self, mve, words, mode):
        super().__init__(mve, words)
        self.stage = ALONE if mode == AGAIN else mode

    def versions(self, followers):
        status = self.status()
        if status["update"]["stage"] != self.stage:
            raise processes.Failed(f"not '{self.stage}': {status['update']['why']}")
        rows = [row for row in status["versions"] if row["role"] != "ended"]
        return sorted(rows, key=lambda row: row["role"] == "follower")

    def update(self, new):
        updates.do(self.mve, "update", self.name, "--to", new, "--code", *RETRY)

    def promote(self):
        updates.do(self.mve, "promote", self.name)
        updates.until_stage(self, "new leads")

    def commit(self):
        updates.do(self.mve, "commit", self.name)
        updates.until_stage(self, "alone")


def _staged(builds):
    class StagedServer(followers.LedServer):
        """A server that is in its stage when it has been started."""

        def __init__(self, ways, spec, mode, words):
            super().__init__(ways, spec, mode, words)
            if not words:
                return
            self.session = StagedSession(ways.mve, words, mode)
            if mode != ALONE:
                self.session.update(builds.new)
            if mode in (LEADING[1], AGAIN):
                self.session.promote()
            if mode == AGAIN:
                self.session.commit()
            self.followers = 1 if mode in LEADING else 0
            self.settle()

        def command(self, spec, mode, words, folder):
            if mode == "native":
                return spec[2](builds.plain, folder, self.port)
            driver = self.ways.program("../mve-driver")
            return [*words, driver, *spec[2](builds.old, folder, self.port)]

        def check(self):
            if self.session:
                self.session.versions(self.followers)
    return StagedServer


def _modes(ways):
    missing = ways.mve_missing("run")
    modes = {"native": (lambda: [], None), "prepared": (lambda: [], None)}
    for mode in IN_SESSION:
        modes[mode] = (lambda: ways.mve_led(0, "--when-full=block", followers.RING), missing)
    return modes


def _stages(ways, spec, builds, options, progress):
    rounds = options.rounds or (1 if options.quick else 5)
    turns = 4 if options.quick else 6
    return servers.measure_server(ways, (spec[0], builds.plain, *spec[2:]), options, rounds,
                                  turns, progress, _modes(ways), _staged(builds))


# Across a change


class Across:
    """A server with entries, the load that asks for them, and what is done to it meanwhile."""

    def __init__(self, ways, name, builds):
        self.ways, self.name, self.builds = ways, name, builds
        self.port = processes.free_port()
        self.folder = os.path.join(ways.folder, f"across.{self.port}")
        os.makedirs(self.folder)
        self.on, self.load_cpu = processes.cpus()
        self.control = f"{self.folder}/control"
        self.server = None

    def start(self, *before, holders=()):
        self.server = processes.Running(processes.pinned(self.on, [
            *before, *self.args()]), self.folder, holders)
        processes.wait_for_port(self.server, self.port)

    def driven(self, *before, options=(), holders=()):
        self.start(*before, self.ways.program("../mve-driver"), *options, self.builds.old,
                   holders=holders)

    def measure(self, way):
        try:
            WAYS[way][0](self)
            self.fill()
            return self._asked(WAYS[way][1])
        finally:
            if self.server:
                self.server.stop()

    def _asked(self, change):
        load = processes.Running(processes.pinned(self.load_cpu, [
            self.ways.program("across"), self.name, f"--port={self.port}",
            f"--keys={self.KEYS}", f"--connections={CONNECTIONS}", f"--every={EVERY_MS}"]),
            self.folder, talk=True)
        try:
            begun = float(load.popen.stdout.readline().split()[1])
            time.sleep(LONE_S)
            marks = [(time.monotonic() - begun, "begun")]
            change(self, lambda name: marks.append((time.monotonic() - begun, name)))
            marks.append((time.monotonic() - begun, "done"))
            time.sleep(LONE_S)
            load.popen.stdin.close()
            *spans, last = load.popen.stdout.read().split("\n")[:-1]
        except (IndexError, ValueError) as e:
            raise processes.Failed(f"across: {load.said()}") from e
        finally:
            load.stop()
        counted = dict(zip(last.split()[::2], map(float, last.split()[1::2])))
        return {"marks": marks, "answers": [int(n) for n in spans], **counted,
                **_loss([int(n) for n in spans], marks)}

    def restart(self, mark):
        self.end()
        self.server.stop()
        mark("ended")
        self.start(self.builds.plain_new)
        self.ready()

    def in_place(self, mark):
        driver = self.ways.program("../mve-driver")
        updates.do(driver, "-a", self.control, "-r", "8/200", "update", self.builds.new,
                   f"{self.folder}/code.so", updates.LIMIT_MS)

    def by_twin(self, mark):
        s = StagedSession(self.ways.mve, self.words, LEADING[0])
        s.update(self.builds.new)
        mark("new follows")
        s.promote()
        mark("new leads")
        s.commit()

    def natively(self):
        self.start(self.builds.plain)

    def for_place(self):
        updates.do(self.ways.program("../mve-xform"), "-c", "-o", f"{self.folder}/code.so",
                   self.builds.old, self.builds.new)
        self.driven(options=("-c", self.control))

    def for_twin(self):
        self.words = self.ways.mve_led(0, "--when-full=block")
        self.driven(*self.words, holders=(self.ways.mve,))


class Redis(Across):
    """What it has is on disk across a restart."""
    KEYS = updates.KEYS

    def args(self):
        return ["--port", str(self.port), "--save", "", "--io-threads", "1",
                "--enable-debug-command", "yes", "--dir", self.folder]

    def fill(self):
        updates.Client(self.port).ask("DEBUG", "POPULATE", self.KEYS, "key", updates.BYTES)

    def ready(self):
        """It says that it loads, until it has."""
        client, end = updates.Client(self.port), time.monotonic() + updates.LIMIT_S
        while client.told("persistence", "loading"):
            if time.monotonic() > end:
                raise processes.Failed("it loads for ever")
            time.sleep(0.01)

    def end(self):
        client = updates.Client(self.port)
        client.socket.sendall(b"SHUTDOWN SAVE\r\n")
        client.file.read()


class Memcached(Across):
    """What it has is gone behind a restart."""
    KEYS = 200000

    def args(self):
        return ["-u", "root", "-l", "127.0.0.1", "-p", str(self.port), "-U", "0", "-m", "256"]

    def fill(self):
        processes.output([self.ways.program("load"), "memcached", f"--port={self.port}",
                          "--gets=0", f"--keys={self.KEYS}", f"--requests={self.KEYS}"],
                         self.ways.folder)

    def ready(self):
        pass        # as soon as it listens

    def end(self):
        pass        # by SIGTERM


ACROSS_KEYS = ("per_second", "change_s", "share", "none_s", "lost", "missing")
ACROSS = {"redis": Redis, "memcached": Memcached}
WAYS = {"restart": (Across.natively, Across.restart),
        "in place": (Across.for_place, Across.in_place),
        "by a twin": (Across.for_twin, Across.by_twin)}


def _loss(answers, marks):
    """What came before, a second; how long it was less behind the change, and by how much."""
    first = int(1000 * marks[0][0] / EVERY_MS)
    before = figures.median([sum(answers[i:i + 10]) for i in range(20, first - 10, 10)]) / 10
    behind = answers[first:]
    none = sum(1 for n in behind if not n) * EVERY_MS / 1000
    window = behind[:int(1000 * (marks[-1][0] - marks[0][0]) / EVERY_MS) + 1]
    return {"per_second": before * 1000 / EVERY_MS, "none_s": none,
            "change_s": marks[-1][0] - marks[0][0],
            "share": sum(window) / (before * len(window)) if before else 0}


def _result(name, way, rounds, trouble):
    row = {"load": name, "mode": way, "trouble": trouble, "rounds": rounds}
    for key in ACROSS_KEYS if rounds else ():
        row[key] = figures.summary([got[key] for got in rounds])
    return row


def _across(ways, name, builds, options, progress):
    rounds, trouble = {way: [] for way in WAYS}, dict.fromkeys(WAYS)
    for r in range(options.rounds or (1 if options.quick else 3)):
        for way in WAYS:
            progress(f"{name}, {way}: round {r + 1}")
            try:
                rounds[way].append(ACROSS[name](ways, name, builds).measure(way))
            except processes.Failed as e:
                trouble[way] = f"failed: {e}"
    return [_result(name, way, rounds[way], trouble[way]) for way in WAYS]


def measure(ways, options, progress):
    stages, across = [], []
    for spec in servers.chosen(ROWS, options):
        try:
            builds = Builds(spec[0])
        except processes.Failed as e:
            stages.append({"load": spec[0], "mode": "native", "trouble": f"failed: {e}"})
            continue
        stages += _stages(ways, spec, builds, options, progress)
        if spec[0] in ACROSS:
            across += _across(ways, spec[0], builds, options, progress)
    return {"rows": stages, "across": across}


def _published(row):
    of = PUBLISHED.get(row["load"], PUBLISHED.get(row["load"].split()[0]))
    return of[1] if row["mode"] in LEADING else of[0] if row["mode"] in (ALONE, AGAIN) else None


def _line(row):
    label = row["load"] if row["mode"] == "native" else ""
    if "per_second" not in row:
        return figures.shorten(f"{label:<13}{row['mode']:<13}  {row['trouble']}", figures.WIDTH)
    ratio, theirs = row["per_second_ratio"], _published(row)
    return figures.columns(WIDTHS, (
        label, row["mode"], figures.number(row["per_second"]["median"], 0),
        figures.number(ratio["median"], 2), figures.span(ratio["q1"], ratio["q3"], 2),
        figures.number(row["cpu_us_ratio"]["median"], 2),
        "" if theirs is None else figures.number(theirs, 2)))


def _across_line(row):
    label = row["load"] if row["mode"] == "restart" else ""
    if not row["rounds"]:
        return figures.shorten(f"{label:<11}{row['mode']:<10}  {row['trouble']}", figures.WIDTH)
    return figures.columns(ACROSS_WIDTHS, (label, row["mode"], *(
        figures.number(row[key]["median"], places)
        for key, places in zip(ACROSS_KEYS, (0, 2, 2, 2, 0, 0)))))


def show(result, options):
    yield "SERVERS IN EACH STAGE OF AN UPDATE (leader alone on a CPU; load and follower on the other)"
    yield ""
    yield figures.columns(WIDTHS, ("", "", "", "of", "", "leader's", ""))
    yield figures.columns(WIDTHS, ("load", "stage", "req/s", "native", "q1..q3", "CPU x",
                                   "published"))
    yield figures.rule()
    for row in result["rows"]:
        yield _line(row)
    yield from figures.troubles(result["rows"])
    if not result["across"]:
        return
    yield ""
    yield "ACROSS A CHANGE (Redis has 1,000,000 entries, memcached 200,000)"
    yield ""
    yield figures.columns(ACROSS_WIDTHS, ("", "", "before,", "takes,", "answered", "nothing",
                                          "lost", "entries"))
    yield figures.columns(ACROSS_WIDTHS, ("server", "by", "req/s", "s", "meanwhile", "for, s",
                                          "conns", "not there"))
    yield figures.rule()
    for row in result["across"]:
        yield _across_line(row)
    yield from figures.troubles(result["across"])


def targets(result):
    for row in result["rows"]:
        theirs = _published(row)
        if theirs is None:
            continue
        what, name = f"req/s, {row['mode']}, as published", row["load"]
        if "per_second_ratio" not in row:
            yield what, f"not measured ({name})", ""
            continue
        ratio = row["per_second_ratio"]
        yield (what, f"{ratio['median']:.2f} >= {theirs:.2f} ({name})",
               figures.verdict(-ratio["median"], -theirs, -ratio["q3"], -ratio["q1"]))


def drawings(result):
    loads = {}
    for row in result["rows"]:
        loads.setdefault(row["load"], {})[row["mode"]] = row
    yield "stages", plots.bars(
        "Requests a second in each stage of an update", "ratio to native", MODES[1:],
        [(load, [by_mode.get(m, {}).get("per_second_ratio") for m in MODES[1:]])
         for load, by_mode in loads.items()], (1, "native"))
    for name in ACROSS:
        firsts = [(row["mode"], row["rounds"][0]) for row in result["across"]
                  if row["load"] == name and row["rounds"]]
        if firsts:
            yield f"stages-across-{name}", _curves(name, firsts)


def _points(answers, whole):
    each = PLOT_MS // EVERY_MS
    return [(100 * i / whole, {"median": sum(answers[i:i + each]) * 1000 / PLOT_MS})
            for i in range(0, len(answers) - each, each)]


def _curves(name, firsts):
    """Of each way's first round."""
    whole = max(len(got["answers"]) for _, got in firsts)
    words = "; ".join(f"{way}: " + ", ".join(f"{what} {when:.1f}" for when, what in got["marks"])
                      for way, got in firsts)
    return plots.curves(
        f"{name}: answers a second across a change",
        f"% of {whole * EVERY_MS / 1000:.0f} s ({words})", "a second",
        [(way, _points(got["answers"], whole)) for way, got in firsts])
