"""Sanitizer followers: the published figure, made anew.

servers/httpd with ten files of 1 KB and ten of 1 MB, as they are and compressed by
bzip2, nginx with the same files, and Redis; each natively, with AddressSanitizer
alone, as a leader alone, and as a leader with a native follower or one with
AddressSanitizer; of the stateless ones also with a part of the connections sampled,
from 10 to 90 %, and by --sample auto.  Then the latency at a fixed rate of requests.

Modes take turns as in parts/servers.py, and ratios are to the native slice of the
same turn.  Leader and load share one CPU, followers and the monitor have the other:
what a follower computes is taken from nobody, what the leader does for it shows.

With all or a fixed share followed the leader waits for a follower that is a ring
behind (--when-full=block), and what is left in the ring when the slice ends is read
within the slice's time: so the rate is one that could go on for ever.  With auto
nobody ever waits.
"""

import os
import shlex
import subprocess

from . import figures, followers, plots, processes, servers, session

CONNECTIONS = 20
EACH = 10  # requests of a connection: it is the connection that is sampled
FILES = 10  # of each size
SMALL, LARGE = 1 << 10, 1 << 20
RING = "--ring=64M"
SHARES = tuple(range(10, 100, 10))
ALONE, LEADER, NATIVE, ALL, AUTO = ("asan alone", "leader only", "native follower",
                                    "asan follower", "auto")
AUTO_LEAST = 0.95  # of the leader's throughput alone
LEADER_CPU = 1.10  # of native, with a follower that keeps up
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
WIDTHS = (-17, -17, 9, 8, 9, 8, 9, 9)


def _files(folder):
    www = os.path.join(folder, "www")
    os.makedirs(www)
    for i in range(2 * FILES):
        with open(os.path.join(www, f"page-{i}"), "wb") as f:
            f.write(b"%07d\n" % i * ((LARGE if i % 2 else SMALL) // 8))
    return www


def _httpd(*more):
    def argv(binary, folder, port):
        www = os.path.join(folder, "www")
        return [binary, str(port), www if os.path.isdir(www) else _files(folder), *more]
    return argv


def _nginx(binary, folder, port):
    if not os.path.isdir(os.path.join(folder, "www")):
        _files(folder)
    user = "user root;" if os.geteuid() == 0 else ""
    conf = os.path.join(folder, "nginx.conf")
    with open(conf, "w") as f:
        f.write(servers.NGINX.format(folder=folder, port=port, user=user))
    return [binary, "-e", f"{folder}/error.log", "-p", folder, "-c", conf]


def _ask(*words):
    def argv(ways, port, requests):
        return [ways.program("load"), "http", f"--port={port}", "--path=/page-",
                f"--files={2 * FILES}", "--bytes=0", f"--connections={CONNECTIONS}",
                f"--each={EACH}", f"--requests={requests}", *words]
    return argv


def _ask_redis(ways, port, requests):
    return [processes.which("redis-benchmark"), "-p", str(port), "-t", "set", "-n",
            str(requests), "-c", str(CONNECTIONS), "--csv"]


def _rate(rate):
    ask = _ask(f"--rate={rate}")
    ask.rate = rate
    ask.without = [f"{share} %" for share in SHARES]
    return ask


STATELESS = ("httpd", "httpd bzip2", "nginx")

# name, what it needs, how it is started, what fills it, loads, requests a slice
SERVERS = (
    ("httpd", "gcc", _httpd(), _ask(),
     {"httpd": _ask(), "httpd, 200/s": _rate(200)}, 600),
    ("httpd bzip2", "gcc", _httpd("bzip2"), _ask(),
     {"httpd bzip2": _ask(), "httpd bzip2, 4/s": _rate(4)}, 20),
    ("nginx", "dpkg-source", _nginx, _ask(),
     {"nginx": _ask(), "nginx, 400/s": _rate(400)}, 1500),
    ("redis", "redis-benchmark", servers._redis, _ask_redis, {"redis SET": _ask_redis}, 10000),
)


def _edition(ways, name, edition):
    """The program, built if need be."""
    if name.startswith("httpd"):
        run = subprocess.run(["make", "-s", "-C", ROOT, f"B={ways.build}", "httpds"],
                             capture_output=True, text=True, check=False)
        if run.returncode:
            raise processes.Failed(" ".join(run.stderr.split()))
        return os.path.join(ways.build, "servers",
                            "httpd" if edition == "plain" else f"httpd-{edition}")
    run = subprocess.run([os.path.join(ROOT, "servers", "build"), name, edition],
                         capture_output=True, text=True, check=False)
    if run.returncode:
        raise processes.Failed(" ".join(run.stderr.split()))
    return run.stdout.strip()


class SanitizedServer(followers.LedServer):
    """A leader whose follower is another edition; or either of them alone."""

    FILL = 40

    def __init__(self, ways, spec, mode, words):
        self.mode = mode
        super().__init__(ways, spec, mode, words)

    def place(self, one, other):
        return one, one, other

    def command(self, spec, mode, words, folder):
        binary = {e: _edition(self.ways, spec[0], e) for e in ("plain", "asan")}
        own = [spec[2](binary[e], folder, self.port) for e in ("plain", "asan")]
        follower = shlex.join(own[mode != NATIVE])
        return [*(follower if word == "FOLLOWER" else word for word in words),
                *own[mode == ALONE]]

    def settle(self):
        """As another leader's, but that the follower need not stand back: it has a CPU.

        With auto nobody waits for it, once it is there."""
        if self.followers and (self.mode != AUTO or not self.rows):
            self.rows = self.session.wait(1, followers.NEAR_CELLS)
            session.move(session.tree(self.rows[1]["pid"]), self.follower_cpu)

    def _split(self):
        found, mine, holders = super()._split()
        session.move(holders, self.follower_cpu)
        return found, mine, holders

    def _sample(self):
        if not self.followers:
            return 0, 0
        sample = self.session.status().get("sample")
        return (sample["connections"], sample["connections_followed"]) if sample else (0, 0)

    def slice(self, ask, requests):
        if hasattr(ask, "rate"):
            requests = max(8, ask.rate * 2)
        before = self._sample()
        figure = super().slice(ask, requests)
        if not hasattr(ask, "rate"):
            figure["per_second"] = figure["kept_up"]
        of, told = (b - a for a, b in zip(before, self._sample()))
        figure["share"] = told / of if of else float(bool(self.followers))
        return figure


def _words(ways, *options):
    return lambda: ways.mve_led(1, RING, *options, same="FOLLOWER")


def _modes(ways, stateless):
    missing = ways.mve_missing("led")
    block = "--when-full=block"
    modes = {"native": (lambda: [], None), ALONE: (lambda: [], None),
             LEADER: (ways.mve_run, missing), NATIVE: (_words(ways, block), missing),
             ALL: (_words(ways, block), missing)}
    if stateless:
        for share in SHARES:
            modes[f"{share} %"] = (_words(ways, "--stateless", block,
                                          f"--sample={share}%"), missing)
        modes[AUTO] = (_words(ways, "--stateless", "--sample=auto", "--mark=epoll_wait"),
                       missing)
    return modes


def measure(ways, options, progress):
    rounds = options.rounds or (1 if options.quick else 2)
    turns = 2 if options.quick else 3
    rows = []
    for spec in SERVERS:
        rows += servers.measure_server(ways, spec, options, rounds, turns, progress,
                                       _modes(ways, spec[0] in STATELESS), SanitizedServer)
    return {"rounds": rounds, "turns": turns, "connections": CONNECTIONS, "each": EACH,
            "rows": rows}


def _line(row):
    label = row["load"] if row["mode"] == "native" else ""
    if "cpu_us" not in row:
        return figures.shorten(f"{label:<17}{row['mode']:<17}  {row['trouble']}",
                               figures.WIDTH)
    share = row["share"]["median"]
    return figures.columns(WIDTHS, (
        label, row["mode"], figures.number(row["per_second"]["median"]),
        figures.number(row["per_second_ratio"]["median"], 3),
        figures.number(row["cpu_us"]["median"], 1),
        figures.number(row["cpu_us_ratio"]["median"], 3),
        f"{100 * share:.1f} %" if share else "",
        figures.number(row["p50_us"]["median"], 0)))


def show(result, options):
    yield (f"SANITIZER FOLLOWERS (median of {result['rounds']} rounds; leader and load "
           "on one CPU,")
    yield "followers on the other; the share of connections is counted)"
    yield ""
    yield figures.columns(WIDTHS, ("", "", "", "", "leader", "CPU", "", "p50"))
    yield figures.columns(WIDTHS, ("load", "mode", "req/s", "ratio", "CPU us", "ratio",
                                   "followed", "us"))
    yield figures.rule()
    for row in result["rows"]:
        yield _line(row)
    yield from figures.troubles(result["rows"])


def _loads(result):
    loads = {}
    for row in result["rows"]:
        loads.setdefault(row["load"], {})[row["mode"]] = row
    return loads


def _against(modes, mode, base, key):
    """Medians of two modes' ratios to native, one over the other."""
    if any(key not in modes.get(m, {}) for m in (mode, base)):
        return None
    return modes[mode][key]["median"] / modes[base][key]["median"]


def targets(result):
    for load, modes in _loads(result).items():
        closed = "/s" not in load
        ratio = _against(modes, AUTO, LEADER, "per_second_ratio")
        if ratio and closed:
            yield ("auto: throughput over leader only", f"{ratio:.3f} >= {AUTO_LEAST} ({load})",
                   "met" if ratio >= AUTO_LEAST else "not met")
        cpu = modes.get(AUTO if AUTO in modes else ALL, {}).get("cpu_us_ratio")
        if cpu:
            yield ("leader's CPU, ASan follower keeps up",
                   f"{cpu['median']:.3f} <= {LEADER_CPU:.2f} ({load})",
                   figures.verdict(cpu["median"], LEADER_CPU, cpu["q1"], cpu["q3"]))


def drawings(result):
    loads = _loads(result)
    closed = {load: modes for load, modes in loads.items() if "/s" not in load}
    modes = (ALONE, LEADER, NATIVE, ALL, AUTO)
    yield "sanitizers-throughput", plots.bars(
        "Throughput with sanitizer followers", "ratio to native", modes,
        [(load, [by.get(m, {}).get("per_second_ratio") for m in modes])
         for load, by in closed.items()], (1, "native"))
    yield "sanitizers-cpu", plots.bars(
        "The leader's CPU time per request", "ratio to native", modes[1:],
        [(load, [by.get(m, {}).get("cpu_us_ratio") for m in modes[1:]])
         for load, by in closed.items()], (LEADER_CPU, "target"))
    yield "sanitizers-latency", plots.bars(
        "Median latency at a fixed rate of requests", "ratio to native", modes,
        [(load, [by.get(m, {}).get("p50_us_ratio") for m in modes])
         for load, by in loads.items() if "/s" in load], (1, "native"))
    steps = (LEADER, *(f"{share} %" for share in SHARES), ALL)
    lines = [(load, [(10 * i, by[m]["per_second_ratio"]) for i, m in enumerate(steps)
                     if "per_second_ratio" in by.get(m, {})])
             for load, by in closed.items() if AUTO in by]
    lines = [line for line in lines if line[1]]
    if lines:
        yield "sanitizers-sampling", plots.curves(
            "Throughput, by the share of connections that an ASan follower is told of",
            "% of connections", "ratio to native", lines, (1, "native"))
