"""What the scripts of tests/sample share: a web server under mve, and clients
that check each reply.  Run by tests/run: MVE, MVE_SESSION and ROOT are set."""
import atexit
import json
import os
import socket
import subprocess
import sys
import time

MVE, NAME, ROOT = (os.environ[k] for k in ("MVE", "MVE_SESSION", "ROOT"))
sys.path.append(ROOT + "/tests/servers")
from free_port import free_port     # noqa: E402

PAGE = b"hello\n" * 20


def fail(*words):
    print(*words, file=sys.stderr)
    if os.path.exists("server.log"):
        with open("server.log", encoding="utf-8", errors="replace") as log:
            print(log.read()[-2000:], file=sys.stderr)
    sys.exit(1)


def must(condition, *words):
    if not condition:
        fail(*words)


def within(seconds, what):
    """What `what` answers as soon as that is true, or the last it answered."""
    end = time.monotonic() + seconds
    while not (value := what()) and time.monotonic() < end:
        time.sleep(0.02)
    return value


def httpd(port):
    return [f"{ROOT}/build/servers/httpd", str(port), os.path.abspath("files")]


NGINX = """daemon off; worker_processes 2; pid {here}/nginx.pid; error_log {here}/error.log;
events {{ worker_connections 512; }}
http {{ access_log {here}/access.log; client_body_temp_path {here}/t1; proxy_temp_path {here}/t2;
fastcgi_temp_path {here}/t3; uwsgi_temp_path {here}/t4; scgi_temp_path {here}/t5; sendfile on;
keepalive_timeout 2s; client_header_timeout 2s;
server {{ listen 127.0.0.1:{port}; root {here}/files; }} }}
"""


def nginx(port):
    """A master and two workers."""
    os.chmod(".", 0o755)
    with open("nginx.conf", "w", encoding="utf-8") as conf:
        conf.write(NGINX.format(here=os.getcwd(), port=port))
    return ["/usr/sbin/nginx", "-e", os.path.abspath("first.log"), "-p", os.getcwd(),
            "-c", os.path.abspath("nginx.conf")]


class Session:
    """A server with these arguments of mve run."""

    def __init__(self, *options, command=httpd):
        self.port = free_port()
        os.makedirs("files", exist_ok=True)
        with open("files/page.txt", "wb") as page:
            page.write(PAGE)
        server = command(self.port)
        with open("server.log", "ab") as log:
            self.mve = subprocess.Popen([MVE, "run", "-n", NAME, *options, "--", *server],
                                        stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        atexit.register(self.end)
        self.server = server
        must(within(10, self.listens), "the server does not listen")

    def end(self):
        if self.mve.poll() is None:
            self.mve.terminate()
            try:
                self.mve.wait(10)
            except subprocess.TimeoutExpired:
                self.mve.kill()

    def listens(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def connect(self):
        return Client(self.port)

    def get(self):
        client = self.connect()
        client.get()
        client.close()

    def status(self):
        out = subprocess.run([MVE, "status", NAME, "--json"], capture_output=True, timeout=20)
        must(out.returncode == 0, "no status:", out.stderr)
        return json.loads(out.stdout)

    def version(self, name):
        return next((v for v in self.status()["versions"] if v["name"] == name), None)

    def steady(self, name, lag=4):
        """It follows, has read all but an accept that gave nothing, behind which it looks
        for what the leader does next, and nothing was said of it."""
        def look():
            v = self.version(name)
            return v["role"] == "follower" and not v["verdicts"] and v["lag_cells"] <= lag
        if not within(60, look):
            report = subprocess.run([MVE, "report", NAME], capture_output=True, timeout=20)
            fail(name, "is not steady:", self.version(name), report.stdout.decode())

    def stop(self):
        done = subprocess.run([MVE, "stop", NAME], capture_output=True, timeout=30)
        must(done.returncode == 0, "mve stop:", done.stderr)
        self.mve.wait(10)


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 10)

    def get(self, path="/page.txt", want=PAGE):
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: here\r\n\r\n".encode())
        got = b""
        while b"\r\n\r\n" not in got:
            more = self.socket.recv(65536)
            must(more, "the server ended the connection")
            got += more
        head, body = got.split(b"\r\n\r\n", 1)
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n")
                      if line.lower().startswith(b"content-length:"))
        while len(body) < length:
            more = self.socket.recv(65536)
            must(more, "the server ended the connection")
            body += more
        must(body == want, "another reply:", body[:100])

    def close(self):
        self.socket.close()
