#!/usr/bin/env python3
"""planted.py ROOT TIMES SERVER...: servers of a process for each connection take requests back.

SERVER is apache, vsftpd or proftpd, built by mve-cc with a bug that is planted (servers/bugs).
Of TIMES requests that fail among good ones each closes its own connection, and no process dies of a
signal: Apache's stay, and those of an FTP server end of themselves, as if the client had gone.
"""
import atexit
import ftplib
import http.client
import os
import signal
import subprocess
import sys
import time

ROOT, TIMES = sys.argv[1], int(sys.argv[2])
sys.path[:0] = [ROOT + "/perf", ROOT + "/tests/servers"]
from free_port import free_port  # noqa: E402
from parts import checkpoint  # noqa: E402

SAID = "a request was taken back: SIGSEGV"
DEADLY = ("exit signal", "child died", "signal 11", "is not taken back")


class Wrong(Exception):
    pass


def built(server):
    got = subprocess.run([ROOT + "/servers/build", server, "checkpoint", "--patch",
                          f"{ROOT}/servers/bugs/{server}-planted.patch"],
                         stdout=subprocess.PIPE, text=True)
    if got.returncode == 3:
        print(f"{server} cannot be built here")
        sys.exit(77)
    return got.stdout.strip()


class Server:
    def __init__(self, name):
        start = next(spec[2] for spec in checkpoint.SERVERS if spec[0] == name)
        self.port, self.folder = free_port(), os.path.join(os.getcwd(), name)
        os.mkdir(self.folder)
        self.log = self.folder + "/said"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                start(built(name), self.folder, self.port), stdout=log, stderr=log,
                env=dict(os.environ, MVE_CHECKPOINT_SEAM="1"), start_new_session=True)
        atexit.register(self.gone)

    def gone(self):
        """With its children: Apache ends its whole group itself."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def said(self):
        text = ""
        for name in ("said", "error.log"):
            if os.path.exists(f"{self.folder}/{name}"):
                with open(f"{self.folder}/{name}", errors="replace") as f:
                    text += f.read()
        return text

    def children(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as f:
            return set(f.read().split())

    def end(self, least):
        if self.process.poll() is not None or any(word in self.said() for word in DEADLY):
            raise Wrong(f"{self.process.returncode}: {self.said()!r}")
        if self.said().count(SAID) < least:
            raise Wrong(f"not {least} were taken back: {self.said()!r}")
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)


def until(begin):
    """The server comes up."""
    end = time.monotonic() + 20
    while True:
        try:
            return begin()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def page(port):
    peer = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    peer.connect()
    return peer


def good(peer):
    for _ in range(20):
        peer.request("GET", "/page.html")
        answer = peer.getresponse()
        if answer.status != 200 or len(answer.read()) != 1024:
            raise Wrong(f"answered {answer.status}")


def apache(_):
    server = Server("apache")
    peer = until(lambda: page(server.port))
    good(peer)
    begun = server.children()
    for n in range(TIMES):
        bad = page(server.port)
        bad.request("GET", f"/crash-{n}")
        try:
            raise Wrong(f"answered {bad.getresponse().status}")
        except (http.client.BadStatusLine, ConnectionResetError):
            bad.close()
        good(peer)
    if server.children() != begun:
        raise Wrong("a process has gone")
    server.end(TIMES)


def logged_in(port):
    peer = ftplib.FTP()
    peer.connect("127.0.0.1", port, 20)
    peer.login()
    return peer


def fetched(peer):
    got = []
    peer.retrbinary("RETR small", got.append)
    if sum(map(len, got)) != 1024:
        raise Wrong("another file")


# What fails, and what the client hears where it was taken back; a server without standard error
# has no other words.
FTP = {"vsftpd": ("CRASH", "500 OOPS: vsf_sysutil_re"), "proftpd": ("NOOP x", "")}


def ftp(name):
    bad, words = FTP[name]
    server = Server(name)
    peer = until(lambda: logged_in(server.port))
    for _ in range(TIMES):
        other = logged_in(server.port)
        fetched(other)
        try:
            raise Wrong(f"answered {other.sendcmd(bad)!r}")
        except (ftplib.Error, EOFError, ConnectionResetError) as error:
            if not str(error).startswith(words):
                raise Wrong(f"the client heard {error!r}") from error
        other.close()
        fetched(peer)
    server.end(0 if words else TIMES)


os.chmod(os.path.dirname(os.getcwd()), 0o755)	# the servers' user gets there
for name in sys.argv[3:]:
    {"apache": apache}.get(name, ftp)(name)
print("planted: ok")
