"""Checkpoints at each request, laid beside plain clang and beside other ways.

Each server is built by servers/build: by clang alone, and by mve-cc with checks, with an undo log,
and without checks.  All of them take turns, as in servers.py, which says how; "closed" is the
program with checks that opens none; "native 2" is plain clang's a second time: what is noise.
A server is filled first, with some megabytes where it keeps any.

Memory is what the server's processes have for themselves and their share of the rest (PSS), but for
the program's own files: these count whole, and once, for it depends on what else is measured how
many processes share them.  Each edition's are read anew before, so that as much of each is in the
page cache.  "Own" is memory that is no file's.

A server that cannot be built here is left out, with a word.  So is a way that has no checkpoints
there: each process is asked whether it still has some.
"""

import math
import os
import struct
import subprocess
import time

from . import figures, followers, plots, processes, servers
from .processes import pinned

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
LOST, MORE_PSS, LOST_CLOSED = 0.05, 0.20, 0.03
PLAIN = "plain-clang"
SEAM = "MVE_CHECKPOINT_SEAM="
WAY = "MVE_CHECKPOINT_WAY="

# mode: edition, environment
MODES = {
    "native": (PLAIN, ()),
    "native 2": (PLAIN, ()),
    "closed": ("checkpoint", ()),
    "pass": ("checkpoint", (SEAM + "1",)),
    "pass/10": ("checkpoint", (SEAM + "10",)),
    "pass/100": ("checkpoint", (SEAM + "100",)),
    "undo": ("checkpoint-undo", (SEAM + "1", WAY + "undo")),
    "undo/10": ("checkpoint-undo", (SEAM + "10", WAY + "undo")),
    "undo/100": ("checkpoint-undo", (SEAM + "100", WAY + "undo")),
    "scan": ("checkpoint-pages", (SEAM + "1", WAY + "scan")),
    "mprotect": ("checkpoint-pages", (SEAM + "1", WAY + "mprotect",
                                      "GLIBC_TUNABLES=glibc.pthread.rseq=0")),
    "fork": ("checkpoint-pages", (SEAM + "1", WAY + "fork")),
}
EACH = ("native 2", "closed", "pass", "undo", "scan", "mprotect", "fork")
servers.SHARES.update({"fork": 20, "mprotect": 8, "scan": 4})
WIDTHS = (-12, -10, 9, 8, 14, 9, 8, 8)
BUILDS = "/mve/servers/builds/"
FILES = (".so", "nginx", "redis-server", "memcached", "lighttpd", "httpd", "vsftpd", "proftpd")

APACHE = """\
ServerName localhost
Listen 127.0.0.1:{port}
ServerRoot {folder}
DocumentRoot {folder}/www
PidFile {folder}/pid
ErrorLog {folder}/error.log
DefaultRuntimeDir {folder}
TypesConfig /dev/null
User {user}
Group {group}
ServerLimit {processes}
MaxRequestWorkers {processes}
StartServers {processes}
MinSpareServers 1
MaxSpareServers {processes}
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 60
"""
# A process has a connection.
PROCESSES = 10

PROFTPD = """\
ServerName bench
ServerType standalone
DefaultAddress 127.0.0.1
Port {port}
PassivePorts 12000 32000
User www-data
Group www-data
PidFile {folder}/pid
ScoreboardFile {folder}/scoreboard
SystemLog none
TransferLog none
WtmpLog off
UseReverseDNS off
DelayEngine off
<Anonymous {folder}/ftp>
	User www-data
	Group www-data
	UserAlias anonymous www-data
	RequireValidShell off
</Anonymous>
"""


def _memcached(binary, folder, port):
    return [*servers._memcached(binary, folder, port), "-t", "1"]


def _apache(binary, folder, port):
    servers._www(folder)
    for path in (os.path.dirname(folder), folder):
        os.chmod(path, 0o755)
    conf = servers._write(folder, "httpd.conf", APACHE.format(
        folder=folder, port=port, processes=PROCESSES,
        user="www-data" if os.geteuid() == 0 else f"#{os.geteuid()}",
        group="www-data" if os.geteuid() == 0 else f"#{os.getegid()}"))
    return [binary, "-D", "FOREGROUND", "-f", conf]


def _vsftpd(binary, folder, port):
    return followers.vsftpd(binary, folder, port, (("small", followers.SMALL),))


def _proftpd(binary, folder, port):
    words = _vsftpd(binary, folder, port)
    conf = servers._write(folder, "proftpd.conf", PROFTPD.format(folder=folder, port=port))
    return [words[0], "--nodaemon", "--config", conf]


def _more(ask, *words):
    return lambda ways, port, requests: [*ask(ways, port, requests), *words]


_few = _more(servers._http, f"--connections={PROCESSES}")
_ftp = followers.ask_ftp("small", followers.SMALL, 1)
SERVERS = servers.SERVERS + (
    ("apache", "apache", _apache, _few, {"apache": _few}, 2000),
    ("vsftpd", "vsftpd", _vsftpd, _ftp, {"vsftpd": _ftp}, 600),
    ("proftpd", "proftpd", _proftpd, _ftp, {"proftpd": _ftp}, 600),
)

# What fills a server: so many requests, with values, or of many connections.
FILLS = {
    "redis": (3000, "-r", "100000", "-d", "4000"),
    "memcached": (30000, "--keys=30000"),
    "nginx": (3000, "--connections=300"),
    "lighttpd": (3000, "--connections=300"),
    "apache": (500,),
    "vsftpd": (100,),
    "proftpd": (100,),
}


def _specs(options):
    for spec in servers.chosen(SERVERS, options):
        start = _memcached if spec[0] == "memcached" else spec[2]
        loads = dict(list(spec[4].items())[:1])
        yield (spec[0], spec[1], start, _more(spec[3], *FILLS[spec[0]][1:]), loads, spec[5])


def _built(name, edition):
    """(path, "") or (None, why)."""
    done = subprocess.run([ROOT + "/servers/build", name, edition], capture_output=True, text=True,
                          check=False, timeout=1800)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["?"])[0]
        return None, f"skipped: {last}"
    return done.stdout.strip(), ""


def _read_anew(program):
    """Its files: as much of each edition's is in the page cache then."""
    top, _, rest = program.partition(BUILDS)
    for folder, _, names in os.walk(top + BUILDS + rest.split("/")[0]):
        for name in names:
            if not name.endswith(FILES) or not os.access(os.path.join(folder, name), os.X_OK):
                continue
            with open(os.path.join(folder, name), "rb") as f:
                os.fsync(f.fileno())
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                while f.read(1 << 20):
                    pass


def _kib(pid):
    """(share of others' pages and of its own, its own files' pages, pages that are no file's)"""
    share = own = anonymous = 0
    with open(f"/proc/{pid}/smaps") as f:
        for line in f:
            words = line.split()
            if "-" in words[0] and words[0][-1] != ":":
                code = "w" not in words[1] and BUILDS in line
            elif words[0] == ("Rss:" if code else "Pss:"):
                own += int(words[1]) * code
                share += int(words[1]) * (not code)
    with open(f"/proc/{pid}/smaps_rollup") as f:
        anonymous = sum(int(line.split()[1]) for line in f if line.startswith("Pss_Anon:"))
    return share, own, anonymous


def _memory(pids):
    shares, owns, anonymous = zip(*map(_kib, pids))
    return {"pss_kib": sum(shares) + max(owns), "own_kib": sum(anonymous)}


def _place(program, symbol):
    """Where the program has it, from its beginning; None: it has none."""
    names = subprocess.run(["nm", program], capture_output=True, text=True, check=False).stdout
    return next((int(line.split()[0], 16) for line in names.splitlines()
                 if line.endswith(" " + symbol)), None)


def _word_at(pid, program, place):
    """A word of a process that is one of this program."""
    with open(f"/proc/{pid}/maps") as f:
        begin = next(int(line.split("-")[0], 16) for line in f if program in line)
    with open(f"/proc/{pid}/mem", "rb", 0) as f:
        f.seek(begin + place)
        return struct.unpack("q", f.read(8))[0]


class Server(servers.Server):
    programs = {}

    def __init__(self, ways, spec, mode, words):
        self.program = os.path.realpath(self.programs[MODES[mode][0]])
        self.each = any(w.startswith(SEAM) for w in MODES[mode][1]) and \
            _place(self.program, "checkpoint_seam")
        super().__init__(ways, spec, mode, words)

    def command(self, spec, mode, words, folder):
        return [*words, *spec[2](self.program, folder, self.port)]

    def _clocks(self):
        """{pid: ns}"""
        return {pid: processes.cpu_ns(pid) for pid in self.running.split()[0]}

    def _ask(self, ask, requests):
        """What the load printed; and clocks and memory, before processes of its connections go."""
        argv = pinned(self.load_cpu, ask(self.ways, self.port, requests))
        running = processes.Running(argv, self.ways.folder, talk=True)
        try:
            if "--stay" in argv:
                text = running.popen.stdout.readline()
                seen = self._clocks(), self._seen()
                running.hush()
            else:
                text = running.popen.stdout.read()
                seen = None
            if running.popen.wait(60):
                raise processes.Failed(running.said())
        finally:
            running.stop()
        time.sleep(servers.SETTLE_S)
        return servers.seconds_of(text, requests), *(seen or (self._clocks(), self._seen()))

    def _seen(self):
        """Memory; and that there are checkpoints."""
        pids = self.running.split()[0]
        if self.each and not all(_word_at(p, self.program, self.each) for p in pids):
            raise processes.Failed("there are no more checkpoints: " + self.running.said())
        return _memory(pids)

    def slice(self, ask, requests):
        before = self._clocks()
        (seconds, p50, p99), after, memory = self._ask(ask, requests)
        spent = sum(ns - before.get(pid, 0) for pid, ns in after.items())
        return {"server_ns": spent, "holder_ns": 0, "user_ticks": 0, "system_ticks": 0,
                "requests": requests, "seconds": seconds, "cpu_us": spent / requests / 1e3,
                "holder_us": 0, "per_second": requests / seconds, "p50_us": p50, "p99_us": p99,
                **memory}

    def check(self):
        """With fork another process goes on where a request was taken back; none is here."""
        if not self.members[0]:
            raise processes.Failed(f"no server: {self.running.said()}")


def _words(mode):
    return lambda: ["env", *MODES[mode][1]]


def _measure(ways, spec, options, rounds, turns, progress):
    programs, trouble = {}, {}
    for edition in dict.fromkeys(e for e, _ in MODES.values()):
        progress(f"{spec[0]}: building {edition}")
        programs[edition], trouble[edition] = _built(spec[0], edition)
        if programs[edition]:
            _read_anew(programs[edition])
    Server.programs, Server.FILL = programs, FILLS[spec[0]][0]
    modes = {m: (_words(m), trouble[MODES[m][0]] or None) for m in MODES}
    spec = (spec[0], programs[PLAIN] or spec[1], *spec[2:])
    return servers.measure_server(ways, spec, options, rounds, turns, progress, modes, Server)


def measure(ways, options, progress):
    rounds = options.rounds or (3 if options.quick else 9)
    turns = 4 if options.quick else 6
    rows = []
    for spec in _specs(options):
        rows += _measure(ways, spec, options, rounds, turns, progress)
    return {"rounds": rounds, "turns": turns, "connections": servers.CONNECTIONS, "rows": rows,
            "means": _means(rows)}


def _ratio(rows, row, key="pss_kib"):
    native = next(r for r in rows if r["load"] == row["load"] and r["mode"] == "native")
    return row[key]["median"] / native[key]["median"]


def _mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def _means(rows):
    """{mode: {throughput, cpu, pss, own}}: geometric means of the ratios to native."""
    out = {}
    for mode in MODES:
        done = [r for r in rows if r["mode"] == mode and "pss_kib" in r]
        if not done:
            continue
        out[mode] = {"throughput": _mean([r["per_second_ratio"]["median"] for r in done]),
                     "cpu": _mean([r["cpu_us_ratio"]["median"] for r in done]),
                     "pss": _mean([_ratio(rows, r) for r in done]),
                     "own": _mean([_ratio(rows, r, "own_kib") for r in done]),
                     "servers": len(done)}
    return out


def _line(rows, row):
    label = row["load"] if row["mode"] == "native" else ""
    if "pss_kib" not in row:
        return figures.shorten(f"{label:<12}{row['mode']:<10}  {row['trouble']}", figures.WIDTH)
    ratio = row["per_second_ratio"]
    return figures.columns(WIDTHS, (
        label, row["mode"], figures.number(row["per_second"]["median"], 0),
        figures.number(ratio["median"], 3), figures.span(ratio["q1"], ratio["q3"], 3),
        figures.number(row["cpu_us_ratio"]["median"], 3),
        figures.number(_ratio(rows, row), 2), figures.number(_ratio(rows, row, "own_kib"), 2)))


def show(result, options):
    rows = result["rows"]
    yield (f"CHECKPOINTS at each request (median of {result['rounds']} rounds, "
           f"{result['connections']} connections)")
    yield ""
    yield figures.columns(WIDTHS, ("load", "way", "req/s", "ratio", "q1..q3", "CPU", "PSS", "own"))
    yield figures.rule()
    for row in rows:
        yield _line(rows, row)
    yield from figures.troubles(rows)
    yield ""
    for mode, m in result["means"].items():
        yield figures.columns(WIDTHS, (
            "mean of " + str(m["servers"]), mode, "", figures.number(m["throughput"], 3), "",
            figures.number(m["cpu"], 3), figures.number(m["pss"], 2), figures.number(m["own"], 2)))


def targets(result):
    means = result["means"]
    for mode, key, limit, what in (
            ("pass", "throughput", 1 - LOST, "a checkpoint at each request: throughput >= 0.95"),
            ("closed", "throughput", 1 - LOST_CLOSED, "no checkpoint open: throughput >= 0.97"),
            ("pass", "pss", 1 + MORE_PSS, "a checkpoint at each request: PSS <= 1.20")):
        if mode not in means:
            yield what, "not measured", ""
            continue
        value = means[mode][key]
        met = value <= limit if key == "pss" else value >= limit
        yield what, figures.number(value, 3), "met" if met else "not met"


def drawings(result):
    rows = result["rows"]
    loads = list(dict.fromkeys(r["load"] for r in rows))

    def of(load, mode, key):
        row = next(r for r in rows if r["load"] == load and r["mode"] == mode)
        if "pss_kib" not in row:
            return None
        return _ratio(rows, row) if key == "pss" else row[key]

    if not result["means"]:
        return
    yield "checkpoint", plots.bars(
        "Throughput at a checkpoint for each request", "ratio to plain clang", list(EACH),
        [(load, [of(load, m, "per_second_ratio") for m in EACH]) for load in loads],
        (1 - LOST, "target"))
    kept = [m for m in MODES if m.startswith(("pass", "undo"))]
    yield "checkpoint-memory", plots.bars(
        "Memory (PSS) at a checkpoint for each 1, 10, 100 requests", "ratio to plain clang", kept,
        [(load, [of(load, m, "pss") for m in kept]) for load in loads],
        (1 + MORE_PSS, "target"))
