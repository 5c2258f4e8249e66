"""A session of mve with a server, for the tests of taking over.

Environment, as tests/run sets it: MVE, MVE_SESSION, XDG_RUNTIME_DIR.
"""
import fcntl
import glob
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import others
from load import Wrong, Load

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(ROOT + "/tests/servers")
from free_port import free_port     # noqa: E402

MVE = os.environ.get("MVE", os.path.join(ROOT, "build/mve"))
BIN = os.environ.get("TESTS", os.path.join(ROOT, "build/tests"))
BEGIN_S = 120       # for what hangs

NGINX = """worker_processes 2; daemon off; pid {dir}/pid; error_log {dir}/error.log;
events {{ worker_connections 256; }}
http {{ access_log off; keepalive_requests 100000000; client_body_temp_path {dir}/b;
 proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u;
 scgi_temp_path {dir}/s; server {{ listen 127.0.0.1:{port}; root {dir};
 location /echo {{ return 200 $arg_n; }} }} }}
"""


def program(name):
    path = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")
    if not path:
        print(f"needs {name}")
        raise SystemExit(77)
    return path


def server_command(kind, port, folder):
    if kind == "kv":
        return [kv_build(folder), str(port)]
    if kind == "redis":
        return [program("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                "--dir", folder, "--logfile", folder + "/redis.log"]
    if kind == "memcached":
        return [program("memcached"), "-p", str(port), "-l", "127.0.0.1", "-U", "0", "-t", "4",
                "-u", "root"]
    if kind in others.COMMANDS:
        return others.COMMANDS[kind](port, folder)
    with open(folder + "/nginx.conf", "w") as conf:
        conf.write(NGINX.format(dir=folder, port=port))
    with open(folder + "/file", "wb") as file:
        from load import Http
        file.write(Http.FILE)
    os.chmod(folder, 0o777)
    return [program("nginx"), "-c", folder + "/nginx.conf", "-e", folder + "/error.log"]


def kv_build(folder, *defines):
    out = f"{folder}/kv{''.join(defines)}"
    if os.path.exists(out):
        return out
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", *defines, "-o", out,
                    ROOT + "/servers/kv/v1.c"], check=True)
    return out


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def is_locked(path, start=0, length=0, how=fcntl.F_WRLCK):
    """Asked only: who had the lock for a moment would be in the successor's way."""
    flock = "hhqqi4x"
    with open(path, "r+") as file:
        got = fcntl.fcntl(file, fcntl.F_GETLK,
                          struct.pack(flock, how, os.SEEK_SET, start, length, 0))
    return struct.unpack(flock, got)[0] != fcntl.F_UNLCK


def says(peer, word):
    """What one says to the word, of a server that is asked by lines."""
    peer.write(word + "\n")
    peer.flush()
    return peer.readline().strip()


class Session:
    count = 0

    def __init__(self, kind, followers=1, options=(), command=None, follower=None, port=None,
                 daemon=False, attached=False):
        Session.count += 1
        self.kind, self.port, self.daemon = kind, port or free_port(), daemon
        self.name = "%s-%d" % (os.environ.get("MVE_SESSION", f"t-{os.getpid()}"), Session.count)
        self.folder = tempfile.mkdtemp(prefix="mve-takeover-", dir="/tmp")
        self.log_path = self.folder + "/mve.log"
        command = command or server_command(kind, self.port, self.folder)
        follow = [w for i in range(followers) for w in ("-f", follower or "same")]
        self.server = self.popen(command) if attached else None
        words = [MVE, "run", "-n", self.name, *follow, *options, "--", *command]
        if attached:
            while not listens(self.port) and self.server.poll() is None:
                time.sleep(0.02)
            words = [MVE, "attach", "-n", self.name, *options, str(self.server.pid)]
        self.mve = self.popen(words)
        self.wait_for(self.begun, "the session begins")

    def popen(self, words):
        with open(self.log_path, "ab") as log:
            return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def begun(self):
        roles = {v["role"] for v in self.versions()}
        alone = roles == {"solo"}     # it was begun without followers
        return (alone or "leader" in roles and roles <= {"leader", "follower"}) and listens(self.port)

    def log(self):
        with open(self.log_path, errors="replace") as log:
            return log.read()

    def status(self):
        done = subprocess.run([MVE, "status", self.name, "--json"], capture_output=True,
                              timeout=20)
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def versions(self):
        return self.status().get("versions", [])

    def wait_for(self, what, words, seconds=BEGIN_S):
        end = time.monotonic() + seconds
        while True:
            try:
                if what():
                    return
            except Exception:   # a status that is not there yet
                pass
            if time.monotonic() > end or self.mve_ended():
                raise Wrong(f"not in {seconds} s: {words}\n{self.log()}\n{self.status_text()}")
            time.sleep(0.02)

    def mve_ended(self):
        return self.mve.poll() is not None

    def status_text(self):
        return subprocess.run([MVE, "status", self.name], capture_output=True,
                              text=True).stdout

    def leader(self):
        return next(v for v in self.versions() if v["role"] in ("leader", "solo"))

    def following(self):
        return [v["name"] for v in self.versions() if v["role"] == "follower"]

    def ended(self, pid, seconds=3):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                with open(f"/proc/{pid}/status") as file:
                    if "\nState:\tZ" in file.read():
                        return True
            except OSError:
                return True
            time.sleep(0.01)
        return False

    def promote(self, name, keep=False):
        """What is against it and passes is waited for: threads that do not follow yet, say."""
        done = subprocess.run([MVE, "promote", self.name, name, "--wait=60"] +
                              (["--keep"] if keep else []),
                              capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise Wrong(f"promote {name}: {done.stderr}\n{self.log()}")

    def load(self, **more):
        return Load(self.port, self.kind, **more)

    def stop(self, sig=signal.SIGTERM):
        if self.server:     # a signal is mve detach
            subprocess.run([MVE, "stop", self.name], capture_output=True, timeout=60)
        else:
            self.mve.send_signal(sig)
        try:
            self.mve.wait(15)
        except subprocess.TimeoutExpired:
            raise Wrong(f"the session does not end\n{self.log()}")
        if self.server and self.mve.returncode:
            raise Wrong(f"mve attach: {self.mve.returncode} behind mve stop\n{self.log()}")
        return self.mve.returncode

    def clean(self):
        """Ends what is left after a failure."""
        if self.daemon:
            subprocess.run([MVE, "stop", self.name, "--kill"], capture_output=True)
        elif self.mve.poll() is None:
            subprocess.run([MVE, "stop", self.name, "--kill"], capture_output=True)
            try:
                self.mve.wait(5)
            except subprocess.TimeoutExpired:
                self.mve.kill()
                self.mve.wait()
        if self.server:
            self.server.kill()
            self.server.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def fds(pid):
    """What stays open: not a file of /proc that is read at the moment."""
    least = len(os.listdir(f"/proc/{pid}/fd"))
    for _ in range(20):
        time.sleep(0.005)
        least = min(least, len(os.listdir(f"/proc/{pid}/fd")))
    return least


def rss_kib(pid):
    with open(f"/proc/{pid}/statm") as f:
        resident, shared = f.read().split()[1:3]
    return (int(resident) - int(shared)) * 4
