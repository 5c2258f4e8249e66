#!/usr/bin/env python3
"""memcached as a proxy, updated between Debian's revisions of it while clients ask: nothing but
code changed.  Then what differs between the two, with the pair's rules and without.

  memcached_proxy.py OLD NEW [TIMES]      versions: servers/update/versions

The backend is a native server, which stays.  In the end every item is what a native proxy of that
version has from there.
"""
import os
import sys
import tempfile

import real
from memcached import Client, Load, fill, loads_are, state, words

RULES = f"{real.served.ROOT}/rules/memcached/proxy-46852.rules"
CONFIG = """function mcp_config_pools()
    return { all = mcp.pool({ mcp.backend("one", "127.0.0.1", %d) }) }
end
function mcp_config_routes(pools)
    local all = pools.all
    mcp.attach(mcp.CMD_ANY_STORAGE, function(r) return all(r) end)
end
"""
# More spaces than the new one lets lie before several keys.
SPACED = "get" + " " * 40 + "near far"
REFUSED = ["SERVER_ERROR malformed request"] * 2 + ["END"]
SERVED = ["VALUE near 0 1", "1", "VALUE far 0 1", "2", "END"]


class Proxy:
    """A pair of builds, and the backend that their proxies have."""

    def __init__(self, builds, work, backend):
        self.builds, self.config = builds, f"{work}/proxy.lua"
        with open(self.config, "w") as f:
            f.write(CONFIG % backend.port)

    def words(self, port):
        return [*words(port), "-o", f"proxy_config={self.config}"]

    def server(self, build=0, in_session=True):
        return real.Server(self.builds[build], self.words, in_session)


def asked(c):
    """A reply of several lines, of which the last is END."""
    lines = [c.ask(SPACED)]
    while lines[-1] != "END":
        lines.append(c.line())
    return lines


def served(c, lines):
    got = asked(c)
    assert got == lines, f"{got}, expected {lines}"


def natively(proxy):
    for build, lines in enumerate((SERVED, REFUSED)):
        with proxy.server(build, False) as server:
            c = Client(server.port)
            c.put("near", "1")
            c.put("far", "2")
            served(c, lines)


def with_rules(proxy):
    """In both stages, beside others' requests; then the old one leads again, and knows of nothing."""
    with proxy.server() as server:
        c = Client(server.port)
        loads = [Load(Client(server.port), i) for i in range(2)]
        for one in loads:
            one.start()
        server.mve("update", "--to", server.named(proxy.builds[1]), "--code", "--retry", "8/200",
                   "--rules", RULES, "--reverse", RULES)
        for stage, lines in (("old leads", SERVED), ("new leads", REFUSED)):
            if stage == "new leads":
                server.mve("promote")
                server.until(stage)
            for _ in range(20):
                served(c, lines)
            real.serves(loads)
            now = server.status()["update"]
            assert now["stage"] == stage, now
        server.mve("abort")
        until_alone(server)
        served(c, SERVED)
        real.serves(loads)
        for one in loads:
            one.stop()
        loads_are(c, loads)


def without(proxy):
    """The new one is dropped, and said to differ."""
    with proxy.server() as server:
        c = Client(server.port)
        server.mve("update", "--to", server.named(proxy.builds[1]), "--code", "--retry", "8/200")
        served(c, SERVED)
        until_alone(server)
        now = server.status()["update"]
        assert "diverged" in now["why"], now
        served(c, SERVED)


def until_alone(server):
    real.load.until(lambda: server.status()["update"]["stage"] == "alone", server.status)


def rounds(proxy, times):
    with proxy.server() as server:
        first = Client(server.port)
        fill(first)
        loads = [Load(Client(server.port), i) for i in range(3)]
        for one in loads:
            one.start()
        runs = real.rounds(server, proxy.builds, loads, times)
        for one in loads:
            one.stop()
        loads_are(Client(server.port), loads)
        with proxy.server(runs, False) as other:
            ours, theirs = state(first), state(Client(other.port))
            for key, value in theirs.items():
                assert value and ours[key] == value, f"{key}: {ours[key]} natively {value}"


def main():
    builds = [real.built("memcached", v) for v in sys.argv[1:3]]
    times = int(sys.argv[3]) if len(sys.argv) > 3 else len(real.ENDS)
    if os.environ.get("FETCH_ONLY"):
        return
    with real.Server(builds[0], words, False) as backend, tempfile.TemporaryDirectory() as work:
        proxy = Proxy(builds, work, backend)
        natively(proxy)
        with_rules(proxy)
        without(proxy)
        rounds(proxy, times)
    print("update_memcached_proxy: ok")


main()
