#!/usr/bin/env python3
"""A server whose epoll registrations have the addresses of connections that are made anew.

  epoll.py          by a twin, to the next build and to one more: connections that were silent in
                    between are served by each, as are those that were not, and new ones
  epoll.py place    the same in the server's own process
"""
import json
import sys
import tempfile

import load
import served

SOURCE = f"{served.ROOT}/tests/update/epoll.c"


class Clients:
    def __init__(self, server):
        self.server, self.all = server, []
        self.more()

    def more(self):
        self.all.append([self.server.client(), 0])

    def ask(self, which):
        which[1] += 1
        which[0].expect("line", f"lines {which[1]}")

    def goes_on(self):
        """The first one stays silent while others ask."""
        self.more()
        for one in self.all[1:]:
            self.ask(one)

    def done(self):
        for one in self.all:
            self.ask(one)
            self.ask(one)
        for one in self.all:
            one[0].socket.close()
        self.all = []
        self.more()
        self.ask(self.all[0])


def by_twin(builds, xforms):
    name = f"epoll-{load.unique()}"

    def mve(verb, *words):
        return served.run(f"{served.BIN}/mve", verb, name, *words)[1]

    def status():
        return json.loads(mve("status", "--json"))

    def until(stage):
        load.until(lambda: status()["update"]["stage"] == stage, status)

    with served.Server(builds[0], f"{served.BIN}/mve", "run", "-n", name, "--") as server:
        clients = Clients(server)
        clients.goes_on()
        for new, xform in zip(builds[1:], xforms):
            said = mve("update", "--to", new, "--xform", xform, "--retry", "8/100", "--limit",
                       "20000")
            assert "epoll: data of " in said, said
            clients.goes_on()
            mve("promote")
            until("new leads")
            clients.goes_on()
            mve("commit")
            until("alone")
            clients.goes_on()
        clients.done()


def in_place(builds, xforms):
    with served.Server(builds[0]) as server:
        clients = Clients(server)
        clients.goes_on()
        for new, xform in zip(builds[1:], xforms):
            code, said = server.order("update", new, xform, "20000")
            assert code == 0 and "epoll: data of " in said, said
            clients.goes_on()
        clients.done()


def main():
    with tempfile.TemporaryDirectory() as work:
        builds = [served.build(SOURCE, f"{work}/{i}.so", f"-DBUILD={build}", "-DSELF=" + str(i))
                  for i, build in enumerate((1, 2, 1))]
        xforms = [f"{work}/{i}-x.so" for i in range(2)]
        with open(f"{work}/forth.xf", "w") as f:
            f.write("transform struct conn { extra = 0; }\n")
        for i, says in enumerate((f"{work}/forth.xf", None)):
            code, words = served.xform(builds[i], builds[i + 1], xforms[i], says)
            assert code == 0, words
        (in_place if "place" in sys.argv[1:] else by_twin)(builds, xforms)
    print("update_epoll: ok")


main()
