"""Servers under load: throughput, and the server's CPU time per request.

A round starts the same server once per mode, each on a port of its own, all on
one CPU; the load has the other.  The modes then take turns at slices of a
tenth of a second and of equal numbers of requests, forwards and backwards, so
that a disturbance falls on all of them.  A fresh start each round, because
where a process happens to lie in memory alone is worth a per cent.

A ratio is taken between neighbours: a slice, and the native slice of the same
turn.  A round's figure is the median of its slices, and a row of the table is
the median of the rounds.

CPU time is that of all the server's processes over the slice.  What holds them
(mve's monitor, strace) is counted apart.
"""

import itertools
import os
import re
import time

from . import figures, plots, processes
from .processes import pinned

CONNECTIONS = 50
FILE_BYTES = 1024
COUNTS = ("server_ns", "holder_ns", "user_ticks", "system_ticks", "requests",
          "seconds", "holder_us")  # of a slice: not to be shown as they are
SHARES = {"strace": 8}  # it is slow: it gets an eighth of the requests
ATTACHED = "attached"  # a mode: begun natively
SETTLE_S = 0.02	  # closing 50 connections belongs to the slice

WIDTHS = (-11, -10, 8, 6, 9, 8, 14, 9)


_serial = itertools.count()    # a port may be had twice


def _write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w") as f:
        f.write(text)
    return path


def _redis(binary, folder, port):
    return [binary, "--port", str(port), "--bind", "127.0.0.1",
            "--save", "", "--appendonly", "no", "--dir", folder]


def _memcached(binary, folder, port):
    user = ["-u", "root"] if os.geteuid() == 0 else []
    return [binary, "-l", "127.0.0.1", "-p", str(port), "-U", "0", *user]


NGINX = """\
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
{user}
events {{ worker_connections 512; }}
http {{
	access_log off;
	sendfile on;
	keepalive_requests 1000000;
	client_body_temp_path {folder}/tmp;
	proxy_temp_path {folder}/tmp;
	fastcgi_temp_path {folder}/tmp;
	uwsgi_temp_path {folder}/tmp;
	scgi_temp_path {folder}/tmp;
	server {{
		listen 127.0.0.1:{port};
		root {folder}/www;
	}}
}}
"""

LIGHTTPD = """\
server.document-root = "{folder}/www"
server.bind = "127.0.0.1"
server.port = {port}
server.errorlog = "{folder}/error.log"
server.max-keep-alive-requests = 1000000
server.max-keep-alive-idle = 600
mimetype.assign = ( ".html" => "text/html" )
"""


def _www(folder):
    os.makedirs(os.path.join(folder, "www"), exist_ok=True)
    _write(folder, "www/page.html", "x" * FILE_BYTES)


def _nginx(binary, folder, port):
    _www(folder)
    user = "user root;" if os.geteuid() == 0 else ""
    conf = _write(folder, "nginx.conf",
                  NGINX.format(folder=folder, port=port, user=user))
    return [binary, "-e", f"{folder}/error.log", "-p", folder, "-c", conf]


def _lighttpd(binary, folder, port):
    _www(folder)
    conf = _write(folder, "lighttpd.conf",
                  LIGHTTPD.format(folder=folder, port=port))
    return [binary, "-D", "-f", conf]


def _ask_redis(test):
    def argv(ways, port, requests):
        return [processes.which("redis-benchmark"), "-p", str(port),
                "-t", test, "-n", str(requests), "-c", str(CONNECTIONS),
                "-P", "1", "--csv"]
    return argv


def _ask(protocol, *words):
    def argv(ways, port, requests):
        return [ways.program("load"), protocol, f"--port={port}",
                f"--requests={requests}", f"--connections={CONNECTIONS}",
                *words]
    return argv


_http = _ask("http", "--path=/page.html", f"--bytes={FILE_BYTES}")

# name, program, how it is started, what fills it, its loads, requests a slice
SERVERS = (
    ("redis", "redis-server", _redis, _ask_redis("set"),
     {"redis SET": _ask_redis("set"), "redis GET": _ask_redis("get")}, 10000),
    ("memcached", "memcached", _memcached, _ask("memcached", "--gets=0"),
     {"memcached": _ask("memcached", "--gets=90")}, 12000),
    ("nginx", "nginx", _nginx, _http, {"nginx": _http}, 6000),
    ("lighttpd", "lighttpd", _lighttpd, _http, {"lighttpd": _http}, 10000),
)


def seconds_of(text, requests):
    """What a load printed: seconds, and its own latencies if it has them."""
    own = re.search(r"seconds ([\d.]+) p50_us ([\d.]+) p99_us ([\d.]+)", text)
    if own:
        return float(own[1]), float(own[2]), float(own[3])
    rows = [line.split(",") for line in text.splitlines()]
    for row in rows:
        if len(row) > 6 and row[0].strip('"') in ("SET", "GET"):
            cells = [float(cell.strip('"')) for cell in row[1:]]
            return requests / cells[0], cells[3] * 1e3, cells[5] * 1e3
    raise processes.Failed(f"the load's words: {text[:60]!r}")


class Server:
    """One server under one mode, in one round."""

    FILL = 2000  # requests, before anything counts

    def __init__(self, ways, spec, mode, words):
        name, _, _, fill, _, _ = spec
        self.ways = ways
        self.port = processes.free_port()
        folder = os.path.join(ways.folder, f"{name}.{self.port}.{next(_serial)}")
        os.makedirs(folder)
        on, self.load_cpu, self.follower_cpu = self.place(*processes.cpus())
        self.running = processes.Running(
            pinned(on, self.command(spec, mode, words, folder)), folder,
            (ways.mve, ways.strace))
        processes.wait_for_port(self.running, self.port)
        self.attached = mode == ATTACHED and self.attach()
        self.load(fill, self.FILL)
        self.members = self.running.split()

    def attach(self):
        words = self.ways.mve_attach(self.running.popen.pid)
        attached = processes.Running(pinned(self.place(*processes.cpus())[0], words), self.ways.folder,
                                     (self.ways.mve,))
        processes.wait_for_word(attached, "holds pid")
        return attached

    def place(self, one, other):
        """CPUs of the server, of the load, of followers."""
        return one, other, other

    def command(self, spec, mode, words, folder):
        return [*words, *spec[2](processes.which(spec[1]), folder, self.port)]

    def load(self, ask, requests):
        argv = pinned(self.load_cpu, ask(self.ways, self.port, requests))
        return seconds_of(processes.output(argv, self.ways.folder), requests)

    def _times(self):
        servers, holders = self.members
        ticks = [processes.user_system_ticks(p) for p in servers]
        return {"server_ns": sum(map(processes.cpu_ns, servers)),
                "holder_ns": sum(map(processes.cpu_ns, holders)),
                "user_ticks": sum(t[0] for t in ticks),
                "system_ticks": sum(t[1] for t in ticks)}

    def slice(self, ask, requests):
        before = self._times()
        seconds, p50, p99 = self.load(ask, requests)
        time.sleep(SETTLE_S)
        after = self._times()
        times = {k: after[k] - before[k] for k in before}
        return {**times, "requests": requests, "seconds": seconds,
                "cpu_us": times["server_ns"] / requests / 1e3,
                "holder_us": times["holder_ns"] / requests / 1e3,
                "per_second": requests / seconds,
                "p50_us": p50, "p99_us": p99}

    def stop(self):
        self.running.stop()
        if self.attached:
            self.attached.stop()

    def check(self):
        """Its processes are those that were counted."""
        if not self.members[0] or self.running.split() != self.members:
            raise processes.Failed(
                f"processes came or went: {self.running.said()}")
        if self.attached and self.attached.popen.poll() is not None:
            raise processes.Failed(f"left: {self.attached.said()}")


def _modes(ways, options):
    modes = {
        "native": (lambda: [], None),
        "mve": (ways.mve_run, ways.mve_missing()),
        "strace": (lambda: ways.strace_run("-f"), ways.strace_missing()),
    }
    if options.null:
        modes["native 2"] = (lambda: [], None)
    if options.attached:
        modes[ATTACHED] = (lambda: [], ways.mve_missing())
    if options.trap:
        modes["mve trap"] = (lambda: ways.mve_run("trap"),
                             ways.mve_missing("run", "trap"))
    return modes


def _start_all(ways, spec, modes, trouble, make):
    live = {}
    for mode, (words, _) in modes.items():
        if trouble[mode]:
            continue
        try:
            live[mode] = make(ways, spec, mode, words())
        except processes.Failed as e:
            trouble[mode] = f"failed: {e}"
    return live


def _requests(mode, full, options):
    full = full // 2 if options.quick else full
    return full // SHARES.get(mode, 1)


def _wanted(ask, mode):
    """A load may leave out modes that say nothing about it."""
    return mode not in getattr(ask, "without", ())


def _turn(live, load, ask, order, trouble, options, full):
    """{mode: slice} of one turn: each mode once, one after the other."""
    turn = {}
    for mode in order:
        if trouble[mode] or not _wanted(ask, mode):
            continue
        try:
            turn[mode] = live[mode].slice(ask, _requests(mode, full, options))
        except processes.Failed as e:
            trouble[mode] = f"failed: {e}"
    return turn


def _round(ways, spec, modes, trouble, options, turns, make):
    """{load: [{mode: slice}, ...]} of one round."""
    loads, full = spec[4], spec[5]
    live = _start_all(ways, spec, modes, trouble, make)
    got = {load: [] for load in loads}
    for load, ask in loads.items():  # warm-up, thrown away
        _turn(live, load, ask, list(live), trouble, options, full)
    for t in range(turns):
        order = list(live)[::-1] if t % 2 else list(live)
        for load, ask in loads.items():
            got[load].append(_turn(live, load, ask, order, trouble, options,
                                   full))
    for mode, server in live.items():
        try:
            server.check()
        except processes.Failed as e:
            trouble[mode] = trouble[mode] or f"failed: {e}"
        server.stop()
    return got


def _figures(turns, mode):
    """A round's figures of one mode; None when it was not measured."""
    pairs = [(t[mode], t["native"]) for t in turns
             if mode in t and "native" in t]
    if not pairs:
        return None
    mine = [m for m, _ in pairs]
    total = {k: sum(m[k] for m in mine) for k in mine[0]}
    out = {key: figures.median([m[key] for m in mine])
           for key in mine[0] if key not in COUNTS}
    for key in ("cpu_us", "per_second", "p50_us"):
        out[key + "_ratio"] = figures.median([m[key] / n[key]
                                              for m, n in pairs])
    if "follower_us" in mine[0]:
        out["follower_us_ratio"] = figures.median(
            [m["follower_us"] / n["cpu_us"] for m, n in pairs])
    # The monitor may work in bursts: no median here.
    out["holder_us"] = total["holder_ns"] / total["requests"] / 1e3
    out["cpu_us_mean"] = total["server_ns"] / total["requests"] / 1e3
    out["user_share"] = total["user_ticks"] / (
        (total["user_ticks"] + total["system_ticks"]) or 1)
    return out


def _result(load, mode, rounds, trouble):
    """rounds: for each round, its turns."""
    row = {"load": load, "mode": mode, "trouble": trouble}
    done = [f for f in (_figures(turns, mode) for turns in rounds) if f]
    if not done:
        row["trouble"] = trouble or "failed: native was not measured"
        return row
    for key in done[0]:
        row[key] = figures.summary([f[key] for f in done])
    row["slices"] = [[t[mode] for t in turns if mode in t] for turns in rounds]
    row["requests_a_slice"] = row["slices"][0][0]["requests"]
    return row


def chosen(specs, options):
    """Those that --servers names; all, where it names none."""
    return [spec for spec in specs if spec[0] in (options.servers or (spec[0],))]


def measure_server(ways, spec, options, rounds, turns, progress, modes,
                   make=Server):
    """A row for each load and mode; modes: {name: (words(), missing)}."""
    trouble = {name: missing for name, (_, missing) in modes.items()}
    if not processes.which(spec[1]):
        trouble = {m: f"skipped: {spec[1]} is not installed" for m in modes}
    history = {load: [] for load in spec[4]}
    for r in range(rounds):
        if trouble["native"]:
            break
        progress(f"{spec[0]}: round {r + 1} of {rounds}")
        names = list(modes)
        names = names[r % len(names):] + names[:r % len(names)]
        got = _round(ways, spec, {n: modes[n] for n in names}, trouble,
                     options, turns, make)
        for load, by_mode in got.items():
            history[load].append(by_mode)
    return [_result(load, m, history[load], trouble[m])
            for load, ask in spec[4].items() for m in modes if _wanted(ask, m)]


def measure(ways, options, progress):
    rounds = options.rounds or (3 if options.quick else 9)
    turns = 4 if options.quick else 6
    rows = []
    for spec in chosen(SERVERS, options):
        rows += measure_server(ways, spec, options, rounds, turns, progress,
                               _modes(ways, options))
    return {"rounds": rounds, "turns": turns, "connections": CONNECTIONS,
            "strace_requests_share": 1 / SHARES["strace"], "rows": rows}


def _line(row):
    label = row["load"] if row["mode"] == "native" else ""
    if "cpu_us" not in row:
        return figures.shorten(f"{label:<11}{row['mode']:<10}  {row['trouble']}",
                               figures.WIDTH)
    cpu = row["cpu_us"]
    ratio = row["cpu_us_ratio"]
    if row["mode"] == "native":  # its own spread: the noise of this machine
        spread = cpu["q1"] / cpu["median"], cpu["q3"] / cpu["median"]
    else:
        spread = ratio["q1"], ratio["q3"]
    places = 3 if ratio["median"] < 2 else 2
    target = figures.verdict(ratio["median"], figures.SERVER_CPU_RATIO) \
        if row["mode"] == "mve" else ""
    return figures.columns(WIDTHS, (
        label, row["mode"], figures.number(row["per_second"]["median"], 0),
        figures.number(row["per_second_ratio"]["median"], 2),
        figures.number(cpu["median"], 2),
        figures.number(ratio["median"], places),
        figures.span(*spread, places), target.rjust(8)))


def _holder_line(row):
    if not row["mode"].startswith("native") and "holder_us" in row:
        return f"{row['load']} {row['mode']} " + \
            figures.number(row["holder_us"]["median"], 2)
    return None


def _wrapped(head, items):
    line = head
    for item in items:
        if len(line) + len(item) + 2 > figures.WIDTH:
            yield line
            line = "   "
        line += " " + item + ";"
    yield line.rstrip(";")


def show(result, options):
    rows = result["rows"]
    yield (f"SERVERS (median of {result['rounds']} rounds, "
           f"{result['connections']} connections; q1..q3 of native: its noise)")
    yield ""
    yield figures.columns(WIDTHS, ("", "", "", "", "CPU us", "CPU", "", ""))
    yield figures.columns(WIDTHS, ("load", "mode", "req/s", "ratio",
                                   "/request", "ratio", "q1..q3", " <= 1.02"))
    yield figures.rule()
    for row in rows:
        yield _line(row)
    yield from figures.troubles(rows)
    holders = [h for h in map(_holder_line, rows) if h]
    if holders:
        yield ""
        yield from _wrapped("CPU us/request of the monitor or tracer itself:",
                            holders)


def targets(result):
    what = f"server CPU per request, ratio <= {figures.SERVER_CPU_RATIO}"
    for row in result["rows"]:
        if row["mode"] != "mve":
            continue
        if "cpu_us_ratio" not in row:
            yield what, f"not measured ({row['load']})", ""
            continue
        r = row["cpu_us_ratio"]
        yield (what, f"{r['median']:.3f} ({row['load']})",
               figures.verdict(r["median"], figures.SERVER_CPU_RATIO,
                               r["q1"], r["q3"]))


def drawings(result):
    loads = {}
    for row in result["rows"]:
        if row["mode"] == "mve":
            loads[row["load"]] = [row.get("cpu_us_ratio")]
    if any(v[0] for v in loads.values()):
        yield "servers", plots.bars(
            "Server CPU time per request, no follower", "ratio to native",
            ["mve"], list(loads.items()), (figures.SERVER_CPU_RATIO, "target"))
