#!/usr/bin/env python3
"""A client of kv.

  client.py PORT check        some requests; each is shown with its reply
  client.py PORT load SECONDS PUT and GET in turn for a while, replies checked
  client.py compare NAME:PORT:PID...
                              the same work for each server in turns: latency,
                              and the CPU time of the process PID, per request

Ends with 0 when every reply was right.  Standard library only.
"""
import socket
import statistics
import sys
import time

SLICES = 12             # turns of each server in compare
SLICE_REQUESTS = 1500
TIMEOUT_S = 5           # no reply for so long: the server hangs


class Wrong(Exception):
    pass


class Kv:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", int(port)), TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request):
        self.socket.sendall(request.encode() + b"\n")
        reply = b""
        while not reply.endswith(b"\n"):
            more = self.socket.recv(4096)
            if not more:
                raise Wrong(f"{request!r}: the server closed the connection")
            reply += more
        return reply.decode().rstrip("\n")

    def expect(self, request, reply):
        got = self.ask(request)
        if got != reply:
            raise Wrong(f"{request!r}: {got!r}, expected {reply!r}")

    def work(self, i):
        """One request: each PUT is read back by the next GET."""
        if i % 2:
            self.expect(f"GET key-{i // 2 % 1000}", f"VALUE value {i // 2}")
        else:
            self.expect(f"PUT key-{i // 2 % 1000} value {i // 2}", "OK")


def check(port):
    kv = Kv(port)
    for request, reply in (
            ("GET greeting", "NONE"),
            ("PUT greeting hello world", "OK"),
            ("GET greeting", "VALUE hello world"),
            ("PUT greeting good day", "OK"),
            ("GET greeting", "VALUE good day"),
            ("POP greeting", "ERROR unknown request")):
        kv.expect(request, reply)
        print(f"  > {request:26} < {reply}")


def load(port, seconds):
    kv, i = Kv(port), 0
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        kv.work(i)
        i += 1
    print(f"  {i} requests, every reply checked")


def cpu_seconds(pid):
    """The CPU time of a process, by its clock (see clock_getcpuclockid)."""
    return time.clock_gettime((~int(pid) << 3) | 2)


class Served:
    def __init__(self, what):
        self.name, port, self.pid = what.split(":")
        self.kv, self.done = Kv(port), 0
        self.latency_us, self.cpu_us = [], []

    def slice(self):
        cpu, times = cpu_seconds(self.pid), []
        for i in range(self.done, self.done + SLICE_REQUESTS):
            begun = time.perf_counter()
            self.kv.work(i)
            times.append(time.perf_counter() - begun)
        cpu = cpu_seconds(self.pid) - cpu
        self.done += SLICE_REQUESTS
        self.latency_us.append(statistics.median(times) * 1e6)
        self.cpu_us.append(cpu / SLICE_REQUESTS * 1e6)


def compare(*what):
    servers = [Served(one) for one in what]
    for turn in range(SLICES + 1):
        for served in servers if turn % 2 else servers[::-1]:
            served.slice()
    print(f"  {'':8} {'latency us':>12} {'server CPU us/request':>24}")
    for served in servers:
        # The first turn is for warming up.
        print(f"  {served.name:8} {statistics.median(served.latency_us[1:]):12.1f}"
              f" {statistics.median(served.cpu_us[1:]):24.2f}")
    if len(servers) == 2:
        latency, cpu = (statistics.median(b / a for a, b in zip(x[1:], y[1:]))
                        for x, y in ((servers[0].latency_us, servers[1].latency_us),
                                     (servers[0].cpu_us, servers[1].cpu_us)))
        print(f"  {'ratio':8} {latency:12.3f} {cpu:24.3f}")


def main():
    words = sys.argv[1:]
    try:
        if len(words) == 2 and words[1] == "check":
            return check(words[0])
        if len(words) == 3 and words[1] == "load":
            return load(words[0], words[2])
        if len(words) > 1 and words[0] == "compare":
            return compare(*words[1:])
    except (Wrong, OSError, ValueError) as e:
        sys.exit(f"client: {e}")
    print(__doc__, file=sys.stderr)
    return 2


sys.exit(main())
