#!/usr/bin/env python3
"""rollback_servers.py MVE ROOT CRASHES SERVER[:HOW]...: real servers take requests back.

SERVER is redis, nginx, nginx-workers or kv, built by mve-cc; HOW is alone, or followed by a twin,
that leads at last.  Of CRASHES requests that fail among a hundred times as many good ones, each
bad one closes its own connection alone and is counted, each good one is answered once (load.py
numbers them, several of each connection under way), and memory does not grow.
"""
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE + "/../takeover")
sys.path.append(HERE + "/../servers")
from free_port import free_port  # noqa: E402
from load import Load, Http  # noqa: E402
from load import Wrong as LoadWrong  # noqa: E402
from rollback_session import Session, Wrong, build  # noqa: E402

MVE, ROOT, CRASHES = sys.argv[1], sys.argv[2], int(sys.argv[3])
GROWN_MAX_KIB = 4096

NGINX = """daemon off; master_process %s; worker_processes 2;
pid %s/nginx.pid; error_log %s/error.log;
events { worker_connections 256; }
http {
	access_log %s/access.log;
	client_body_temp_path %s/t1; proxy_temp_path %s/t2; fastcgi_temp_path %s/t3;
	uwsgi_temp_path %s/t4; scgi_temp_path %s/t5;
	keepalive_requests 1000000;
	server {
		listen 127.0.0.1:%s; root %s/files;
		location = /echo { return 200 $arg_n; }
	}
}
"""


def edition(server, *options):
    got = subprocess.run([ROOT + "/servers/build", server, "checkpoint", *options],
                         stdout=subprocess.PIPE, text=True)
    if got.returncode == 3:
        print(f"{server} cannot be built here")
        sys.exit(77)
    return got.stdout.strip()


def redis(port):
    return [edition("redis"), "--port", str(port), "--save", "", "--crash-log-enabled", "no",
            "--enable-debug-command", "yes"]


def nginx(port, workers="off"):
    here = os.getcwd()
    os.makedirs("files", exist_ok=True)
    os.chmod(here, 0o755)
    with open("files/file", "wb") as f:
        f.write(Http.FILE)
    with open("nginx.conf", "w") as f:
        f.write(NGINX % (workers, *[here] * 8, port, here))
    return [edition("nginx", "--patch", ROOT + "/servers/bugs/nginx-planted.patch"), "-p", here,
            "-c", here + "/nginx.conf"]


def nginx_workers(port):
    return nginx(port, "on")


def kv(port):
    build(ROOT + "/build/checkpoint/mve-cc", ROOT + "/servers/kv/v1.c", "kv", "-DKV_CRASH",
          "-DKV_ABORT")
    return ["./kv", str(port)]


# How to begin, the talk of load.py, requests that fail.
SERVERS = {
    "redis": (redis, "redis", [b"DEBUG SEGFAULT\r\n", b"DEBUG PANIC\r\n", b"DEBUG ASSERT\r\n"]),
    "nginx": (nginx, "nginx", [b"GET /%s-%%d HTTP/1.1\r\nHost: a\r\n\r\n" % kind
                               for kind in (b"crash", b"abort")]),
    "nginx-workers": (nginx_workers, "nginx", [b"GET /crash-%d HTTP/1.1\r\nHost: a\r\n\r\n"]),
    "kv": (kv, "kv", [b"CRASH\n", b"ABORT\n"]),
}


def bad(s, request, n):
    peer = s.connect()
    peer.sendall(request % n if b"%d" in request else request)
    got = b""
    try:
        while more := peer.recv(1000):
            got += more
    except ConnectionResetError:
        pass
    peer.close()
    if got:
        raise Wrong(f"{request!r} was answered: {got!r}; said {s.said()!r}")


def crashes(s, load, requests):
    early = 0
    for n in range(CRASHES):
        load.more(100, 60)
        bad(s, requests[n % len(requests)], n)
        if n == CRASHES // 5:
            early = s.memory()
    return s.memory() - early


def taken(s, how):
    name, requests = SERVERS[how.server][1:]
    begun = time.monotonic()
    load = Load(s.port, name)
    load.STUCK_S = 60
    grown = crashes(s, load, requests)
    took = time.monotonic() - begun
    s.counted(CRASHES)
    if how.followed:
        s.follows()
        subprocess.run([MVE, "promote", s.name, "f1"], check=True, timeout=60)
        load.more(1000, 60)
        bad(s, requests[0], CRASHES)
        load.more(1000, 60)
    got = load.stop()
    print(f"{how.name}: {got} good, {CRASHES} taken back in {took:.1f} s, grown by {grown} KiB",
          file=sys.stderr)
    if grown > GROWN_MAX_KIB:
        raise Wrong(f"grown by {grown} KiB")


class How:
    def __init__(self, name):
        self.name = name
        self.server, _, how = name.partition(":")
        self.followed = how == "followed"


def run(how):
    port = free_port()
    s = Session(MVE, ["--rollback"] + (["-f", "same"] if how.followed else []),
                SERVERS[how.server][0](port), port=port)
    try:
        taken(s, how)
    except LoadWrong as e:
        raise Wrong(f"{e}; said {s.said()!r}") from None
    s.end()


def main():
    if not os.access(ROOT + "/build/checkpoint/mve-cc", os.X_OK):
        print("mve-cc is not built")
        sys.exit(77)
    for name in sys.argv[4:]:
        run(How(name))
        print(name.replace(":", "-") + ": ok", flush=True)


try:
    main()
except Wrong as e:
    sys.exit(f"rollback_servers: {e}")
