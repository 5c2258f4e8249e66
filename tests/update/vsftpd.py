#!/usr/bin/env python3
"""vsftpd, whose listener is updated between Debian's revisions of it while clients come and go.

  vsftpd.py OLD NEW [TIMES]      versions: servers/update/versions

Each visitor has a process of its own, which stays what it began as.  When the twin is made there
is none: that has forbidden itself processes and descriptors, and cannot be copied.  From then on
one stays through all stages, and others come and go in each.
"""
import ftplib
import io
import itertools
import os
import sys
import time

import real

FILES = 50
CONF = """listen=YES
listen_ipv6=NO
listen_address=127.0.0.1
listen_port={port}
background=NO
anonymous_enable=YES
no_anon_password=YES
anon_root={folder}/ftp
anon_upload_enable=YES
anon_umask=022
write_enable=YES
local_enable=NO
secure_chroot_dir={folder}/empty
seccomp_sandbox=NO
max_clients=5
max_per_ip=5
ftp_username=www-data
connect_from_port_20=NO
pasv_min_port=12000
pasv_max_port=32000
xferlog_enable=NO
"""


def content(i):
    return f"file {i} ".encode() * (i * 100 + 1)


class Server(real.Server):
    def __init__(self, build, in_session):
        super().__init__(build, self.words, in_session)

    def words(self, port):
        os.chmod(self.folder, 0o755)
        os.makedirs(f"{self.folder}/empty", 0o755)
        os.makedirs(f"{self.folder}/ftp/in")
        os.chmod(f"{self.folder}/ftp/in", 0o777)
        for i in range(FILES):
            with open(f"{self.folder}/ftp/file-{i}", "wb") as f:
                f.write(content(i))
        with open(f"{self.folder}/conf", "w") as f:
            f.write(CONF.format(port=port, folder=self.folder))
        return [f"{self.folder}/conf"]


def visit(port):
    ftp = ftplib.FTP()
    ftp.connect("127.0.0.1", port, real.served.HANGS_S)
    ftp.login()
    return ftp


def visit_soon(port):
    """Who has gone is counted until his process has."""
    end = time.monotonic() + real.served.HANGS_S
    while True:
        try:
            return visit(port)
        except ftplib.error_temp:
            assert time.monotonic() < end, "somebody who has gone is counted for ever"
            time.sleep(0.01)


def counts(port, stay):
    """What the listener knows: how many there are, by whom and from where."""
    came = [visit_soon(port) for _ in range(5 - stay)]
    try:
        visit(port)
        raise AssertionError("a sixth is let in")
    except ftplib.error_temp as refused:
        assert str(refused).startswith("421 There are too many connect"), refused
    for ftp in came:
        ftp.quit()


def get(ftp, i):
    got = io.BytesIO()
    ftp.retrbinary(f"RETR file-{i}", got.write)
    assert got.getvalue() == content(i), f"file-{i} is another"


def visits(server, number):
    """Several at once, each on its own; what they leave is there."""
    came = [visit_soon(server.port) for _ in range(3)]
    for i, ftp in enumerate(came):
        get(ftp, (number + i) % FILES)
        ftp.storbinary(f"STOR in/{number}-{i}", io.BytesIO(b"%d" % number))
    for i, ftp in enumerate(came):
        ftp.quit()
        with open(f"{server.folder}/ftp/in/{number}-{i}", "rb") as f:
            assert f.read() == b"%d" % number


def early_round(server, build, end, numbers):
    server.mve("update", "--to", server.named(build), "--code", "--retry", "20/200", "--no-wait")
    if end == "updating":
        real.load.until(lambda: server.status()["update"]["stage"] != "stopping", server.status)
    server.mve("abort")
    real.load.until(lambda: server.status()["update"]["stage"] == "alone", server.status)
    visits(server, next(numbers))


def one_round(server, build, end, numbers):
    to = server.named(build)
    server.mve("update", "--to", to, "--code", "--retry", "20/200")
    stays = visit_soon(server.port)      # from here on to the end, in each stage
    get(stays, 1)
    visits(server, next(numbers))
    if end != "old leads":
        server.mve("promote")
        server.until("new leads")
        get(stays, 2)
        visits(server, next(numbers))
    server.mve("commit" if end == "commit" else "abort")
    real.load.until(lambda: server.status()["update"]["stage"] == "alone", server.status)
    now = server.status()["update"]
    assert (now["build"] == to) == (end == "commit"), now
    get(stays, 3)
    visits(server, next(numbers))
    counts(server.port, 1)
    stays.quit()


def main():
    builds = [real.built("vsftpd", v) for v in sys.argv[1:3]]
    times = int(sys.argv[3]) if len(sys.argv) > 3 else 6
    if os.environ.get("FETCH_ONLY"):
        return
    ends = ("commit", "old leads", "commit", "new leads", "stopping", "updating")
    numbers, runs = itertools.count(), 0
    with Server(builds[0], True) as server:
        visits(server, next(numbers))
        for i in range(times):
            end = ends[i % len(ends)]
            (early_round if end in real.EARLY else one_round)(server, builds[1 - runs], end,
                                                              numbers)
            runs = 1 - runs if end == "commit" else runs
            print(f"round {i}: {end}", flush=True)
        counts(server.port, 0)
    with Server(builds[runs], False) as natively:
        counts(natively.port, 0)
    print("update_vsftpd: ok")


main()
