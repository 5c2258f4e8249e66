"""Servers that lead: what a leader with 0 to 3 followers costs and gives.

As parts/servers.py: modes take turns at slices, native among them, and ratios
are to the native slice of the same turn.  The leader has one CPU for itself;
followers and the load share the other, so what a client sees here is what two
CPUs allow: a follower's work is taken from the load.  The leader's CPU time per
request is the figure that does not depend on it.

A load that is slower beside followers makes a server wait more often, which
spends more on a request.  So followers have a small share of their CPU (nice
10), and there is a mode whose follower is stopped while the load runs: what the
leader's CPU costs there is recording alone.

After its slice a mode's followers read what is left in the ring before the next
mode has its turn: `kept up` is the rate with that time added, which the session
could go on with for ever.
"""

import os
import signal
import time

from . import figures, plots, processes, servers, session
from .processes import pinned

WIDTHS = (-13, -11, 8, 8, 7, 7, 8, 9, 8)
FTP_CONNECTIONS = 4
NEAR_CELLS = 64	 # read up to here: one request or two
SMALL, LARGE = 1024, 4 << 20
RING = "--ring=32M"  # vsftpd limits its address space to 200 MB
MODES = ("native", "0 followers", "1 follower", "2 followers", "3 followers")
PAUSED = "1, paused"  # its follower stands still while the load runs

VSFTPD = """\
listen=YES
listen_ipv6=NO
listen_address=127.0.0.1
listen_port={port}
background=NO
anonymous_enable=YES
no_anon_password=YES
anon_root={folder}/ftp
local_enable=NO
secure_chroot_dir={folder}/empty
seccomp_sandbox=NO
ftp_username=www-data
connect_from_port_20=NO
pasv_min_port=12000
pasv_max_port=32000
xferlog_enable=NO
"""


def vsftpd(binary, folder, port, files=(("small", SMALL), ("large", LARGE))):
    if os.geteuid():
        raise processes.Failed("vsftpd needs root")
    for name in ("ftp", "empty"):
        os.makedirs(os.path.join(folder, name))
    for name, size in files:
        with open(os.path.join(folder, "ftp", name), "wb") as f:
            f.write(b"q" * size)
    # www-data must get there, through the scratch folder too.
    for path in (os.path.dirname(folder), folder):
        os.chmod(path, 0o755)
    conf = os.path.join(folder, "vsftpd.conf")
    with open(conf, "w") as f:
        f.write(VSFTPD.format(folder=folder, port=port))
    return [binary, conf]


def ask_ftp(name, size, share):
    """share: a large file is asked for so many times less often."""
    def argv(ways, port, requests):
        return [ways.program("ftp"), f"--port={port}", f"--path={name}",
                f"--bytes={size}", f"--connections={FTP_CONNECTIONS}",
                f"--requests={requests}", "--stay"]
    argv.share = share
    return argv


_small = ask_ftp("small", SMALL, 1)
SERVERS = tuple((*spec[:4], dict(list(spec[4].items())[:1]), spec[5])
                for spec in servers.SERVERS) + (
    ("vsftpd", "vsftpd", vsftpd, _small,
     {"vsftpd 1 K": _small, "vsftpd 4 M": ask_ftp("large", LARGE, 10)},
     600),)


class LedServer(servers.Server):
    """A server whose leader is counted, and its followers apart."""

    def __init__(self, ways, spec, mode, words):
        self.followers = words.count("-f")
        self.paused = mode == PAUSED
        self.session = session.Session(ways.mve, words) if words else None
        self.name = spec[0]
        self.rows = None
        super().__init__(ways, spec, mode, words)
        self.settle()

    def settle(self):
        """Everything is read, and everyone on the right CPU."""
        if not self.followers:
            return
        self.rows = self.session.wait(self.followers, NEAR_CELLS)
        for row in self.rows[1:]:
            session.move(session.tree(row["pid"]), self.follower_cpu)
            session.stand_back(session.tree(row["pid"]))

    def _split(self):
        """(the leader's pids, the followers', the monitor's)"""
        found, holders = self.running.split()
        if not self.followers:
            return found, [], holders
        if not self.rows:
            self.settle()
        followers = [p for row in self.rows[1:] for p in
                     session.tree(row["pid"])]
        return [p for p in found if p not in followers], followers, holders

    def _clocks(self):
        return [{pid: processes.cpu_ns(pid) for pid in pids}
                for pids in self._split()]

    def load(self, ask, requests):
        return self._load(ask, requests)[0]

    def _load(self, ask, requests):
        """What the load printed, and the clocks before it left."""
        argv = pinned(self.load_cpu, ask(self.ways, self.port, requests))
        running = processes.Running(argv, self.ways.folder, talk=True)
        try:
            text = running.popen.stdout.readline() if "--stay" in argv else \
                running.popen.stdout.read()
            clocks = self._clocks() if "--stay" in argv else None
            running.hush()
            if running.popen.wait(60):
                raise processes.Failed(running.said())
        finally:
            running.stop()
        return servers.seconds_of(text, requests), clocks

    def _pause(self, sig):
        if self.paused:
            processes.signal_all(self._split()[1], sig)

    def slice(self, ask, requests):
        requests //= getattr(ask, "share", 1)
        self._pause(signal.SIGSTOP)
        before = self._clocks()
        try:
            (seconds, p50, p99), clocks = self._load(ask, requests)
        finally:
            self._pause(signal.SIGCONT)
        time.sleep(servers.SETTLE_S)
        clocks = clocks or self._clocks()
        late = time.monotonic()
        self.settle()
        late = time.monotonic() - late if self.followers else 0
        server, _, holder = map(_spent, before, clocks)
        # Processes that are gone by now had read everything: count both ways.
        followed = max(_spent(before[1], clocks[1]),
                       _spent(before[1], self._clocks()[1]))
        return {"server_ns": server, "holder_ns": holder,
                "user_ticks": 0, "system_ticks": 0,
                "requests": requests, "seconds": seconds,
                "cpu_us": server / requests / 1e3,
                "holder_us": holder / requests / 1e3,
                "follower_us": followed / requests / 1e3 /
                (self.followers or 1),
                "per_second": requests / seconds,
                "kept_up": requests / (seconds + late),
                "p50_us": p50, "p99_us": p99}

    def check(self):
        if self.followers:
            self.session.versions(self.followers)


def _spent(before, after):
    """Of processes that are there afterwards; new ones count from birth."""
    return sum(ns - before.get(pid, 0) for pid, ns in after.items())


def _words(ways, followers):
    if not followers:
        return ways.mve_run
    return lambda: ways.mve_led(followers, "--when-full=block", RING)


def _modes(ways):
    missing = ways.mve_missing("led")
    modes = {"native": (lambda: [], None)}
    for n, mode in enumerate(MODES[1:]):
        modes[mode] = (_words(ways, n), missing)
    modes[PAUSED] = (_words(ways, 1), missing)
    return modes


def measure(ways, options, progress):
    rounds = options.rounds or (1 if options.quick else 5)
    turns = 3 if options.quick else 6
    rows = []
    for spec in servers.chosen(SERVERS, options):
        rows += servers.measure_server(ways, spec, options, rounds, turns,
                                       progress, _modes(ways), LedServer)
    return {"rounds": rounds, "turns": turns, "rows": rows,
            "connections": servers.CONNECTIONS,
            "connections_ftp": FTP_CONNECTIONS}


def _verdict(row):
    limit = figures.LEADER_CPU_RATIO.get(row["load"].split()[0])
    if not limit or row["mode"] not in ("1 follower", PAUSED):
        return ""
    return figures.verdict(row["cpu_us_ratio"]["median"], limit)


def _line(row):
    label = row["load"] if row["mode"] == "native" else ""
    if "cpu_us" not in row:
        return figures.shorten(
            f"{label:<13}{row['mode']:<11}  {row['trouble']}", figures.WIDTH)
    native = row["mode"] == "native"
    return figures.columns(WIDTHS, (
        label, row["mode"],
        figures.number(row["per_second"]["median"], 0),
        figures.number(row["kept_up"]["median"], 0),
        figures.number(row["p50_us"]["median"], 0),
        figures.number(row["cpu_us"]["median"], 2),
        figures.number(row["cpu_us_ratio"]["median"], 3),
        "" if native or not row["follower_us"]["median"] else
        figures.number(row["follower_us"]["median"], 2), _verdict(row)))


def show(result, options):
    yield (f"LEADER AND FOLLOWERS (median of {result['rounds']} rounds; "
           "leader alone on a CPU,")
    yield ("followers and load on the other: rates and latencies are what two"
           " CPUs allow)")
    yield ""
    yield figures.columns(WIDTHS, ("", "", "", "kept", "p50", "leader",
                                   "CPU", "follower", ""))
    yield figures.columns(WIDTHS, ("load", "mode", "req/s", "up", "us",
                                   "CPU us", "ratio", "CPU us", "target"))
    yield figures.rule()
    for row in result["rows"]:
        yield _line(row)
    yield from figures.troubles(result["rows"])


def targets(result):
    by_load = {}
    for row in result["rows"]:
        by_load.setdefault(row["load"], {})[row["mode"]] = row
    for load, modes in by_load.items():
        limit = figures.LEADER_CPU_RATIO.get(load.split()[0])
        for mode in (MODES[2], PAUSED) if limit else ():
            ratio = modes[mode].get("cpu_us_ratio")
            what = f"leader's CPU/request, {mode}"
            if not ratio:
                yield what, f"not measured ({load})", ""
                continue
            yield (what, f"{ratio['median']:.3f} <= {limit:.2f} ({load})",
                   figures.verdict(ratio["median"], limit, ratio["q1"],
                                   ratio["q3"]))
    for load, modes in by_load.items():
        ratios = [modes[m]["cpu_us_ratio"]["median"] for m in MODES[2:]
                  if "cpu_us_ratio" in modes.get(m, {})]
        if len(ratios) == 3:
            each = (ratios[2] / ratios[0]) ** 0.5
            yield ("each further follower, CPU <= x 1.02",
                   f"{each:.3f} ({load})",
                   figures.verdict(each, figures.FURTHER_FOLLOWER))


def drawings(result):
    loads = {}
    for row in result["rows"]:
        loads.setdefault(row["load"], {})[row["mode"]] = row
    for name, key, modes, title, unit in (
            ("leader-cpu", "cpu_us_ratio", (*MODES[1:], PAUSED),
             "The leader's CPU time per request", "ratio to native"),
            ("follower-cpu", "follower_us_ratio", MODES[2:],
             "A follower's CPU time per request", "ratio to native's server"),
            ("throughput", "per_second_ratio", MODES[1:],
             "Throughput, closed loop on two CPUs", "ratio to native"),
            ("latency", "p50_us_ratio", MODES[1:],
             "Median latency, closed loop on two CPUs", "ratio to native")):
        yield "followers-" + name, plots.bars(
            title, unit, modes,
            [(load, [by_mode.get(m, {}).get(key) for m in modes])
             for load, by_mode in loads.items()], (1, "native"))
