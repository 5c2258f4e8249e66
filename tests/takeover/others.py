"""More servers for the tests of twins: how each is begun, and numbered requests to it.

A talk is what load.py asks of one: request(n), reply(n, data), and open(port), which gives a
socket that is past all greetings.
"""
import atexit
import os
import pathlib
import pwd
import shutil
import socket
import struct
import subprocess

from load import Http, Talk, Wrong, matched


def found(name):
    path = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if not path:
        print(f"needs {name}")
        raise SystemExit(77)
    return path


def written(path, text):
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return path


def read_until(s, end):
    data = b""
    while end not in data:
        new = s.recv(1)
        if not new:
            raise Wrong(f"it closes: {data!r}")
        data += new
    return data


# --- HTTP: the number comes back in a redirection ------------------------------------------

class Redirected(Http):
    def request(self, n):
        path = b"/file" if n % 3 == 2 else b"/echo/%d-%d" % (self.who, n)
        return b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n" % path

    def reply(self, n, data):
        if n % 3 == 2:
            return super().reply(n, data)
        end = data.find(b"\r\n\r\n")
        if end < 0:
            return 0
        lines = dict(line.lower().split(b": ", 1) for line in data[:end].split(b"\r\n")[1:])
        if not data.startswith(b"HTTP/1.1 301") or \
           not lines[b"location"].endswith(b"/is/%d-%d" % (self.who, n)):
            raise Wrong(f"reply {n}: {data[:end]!r}")
        whole = end + 4 + int(lines.get(b"content-length", b"0"))
        return whole if len(data) >= whole else 0


def files(folder):
    os.makedirs(folder + "/files", exist_ok=True)
    written(folder + "/files/file", Http.FILE)
    os.chmod(folder, 0o777)
    return folder + "/files"


def lighttpd(port, folder):
    conf = written(folder + "/conf", f"""
server.modules = ( "mod_redirect" )
server.bind = "127.0.0.1"
server.port = {port}
server.document-root = "{files(folder)}"
server.errorlog = "{folder}/error.log"
server.max-keep-alive-requests = 100000000
url.redirect = ( "^/echo/(.*)$" => "/is/$1" )
""")
    return [found("lighttpd"), "-D", "-f", conf]


def apache2(port, folder):
    modules = "/usr/lib/apache2/modules"
    conf = written(folder + "/conf", f"""
ServerName a
ServerRoot {folder}
PidFile {folder}/pid
Listen 127.0.0.1:{port}
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule alias_module {modules}/mod_alias.so
LoadModule authz_core_module {modules}/mod_authz_core.so
User www-data
Group www-data
StartServers 2
MinSpareThreads 1
MaxSpareThreads 1000
ThreadsPerChild 8
MaxRequestWorkers 16
ServerLimit 2
MaxKeepAliveRequests 0
KeepAliveTimeout 1000
ErrorLog {folder}/error.log
DocumentRoot {files(folder)}
RedirectMatch 301 ^/echo/(.*)$ /is/$1
""")
    return [found("apache2"), "-DFOREGROUND", "-f", conf]


def haproxy(port, folder):
    """One of its ends is before the other: each request comes through it twice."""
    conf = written(folder + "/conf", f"""
global
    nbthread {os.environ.get("HAPROXY_THREADS", "1")}
    tune.bufsize 65536
defaults
    mode http
    timeout connect 1000s
    timeout client 1000s
    timeout server 1000s
frontend in
    bind 127.0.0.1:{port}
    default_backend out
backend out
    http-reuse always
    server one unix@{folder}/behind pool-max-conn 0
frontend behind
    bind unix@{folder}/behind
    http-request return status 200 content-type text/plain file {files(folder)}/file if {{ path /file }}
    http-request return status 200 content-type text/plain lf-string %[url_param(n)]
""")
    return [found("haproxy"), "-db", "-f", conf]


def gunicorn(port, folder):
    written(folder + "/app.py", """
import os
FILE = open(os.path.join(os.path.dirname(__file__), "files/file"), "rb").read()


def app(environ, start):
    body = FILE if environ["PATH_INFO"] == "/file" else environ["QUERY_STRING"][2:].encode()
    start("200 OK", [("Content-Length", str(len(body)))])
    return [body]
""")
    files(folder)
    return [found("gunicorn"), "--chdir", folder, "-b", f"127.0.0.1:{port}", "-w", "2", "-k",
            "gthread", "--threads", "4", "--keep-alive", "1000", "--timeout", "1000",
            "--worker-tmp-dir", folder, "app:app"]


# --- others --------------------------------------------------------------------------------

class Mqtt(Talk):
    """What it publishes comes back to it."""

    def topic(self):
        return b"t/%d" % self.who

    def message(self, data):
        body = struct.pack(">H", len(self.topic())) + self.topic() + data
        return bytes([0x30, len(body)]) + body

    def open(self, port):
        s = super().open(port)
        name = b"c%d" % self.who
        body = b"\0\4MQTT\4\2\0\0" + struct.pack(">H", len(name)) + name
        s.sendall(bytes([0x10, len(body)]) + body)
        body = b"\0\1" + struct.pack(">H", len(self.topic())) + self.topic() + b"\0"
        s.sendall(bytes([0x82, len(body)]) + body)
        data = b""
        while len(data) < 9:
            data += s.recv(9 - len(data))
        if data != b"\x20\2\0\0\x90\3\0\1\0":
            raise Wrong(f"connected: {data!r}")
        return s

    def request(self, n):
        return self.message(b"%d" % n)

    def reply(self, n, data):
        return matched(self.message(b"%d" % n), data, n)


def mosquitto(port, folder):
    conf = written(folder + "/conf", f"""
listener {port} 127.0.0.1
allow_anonymous true
set_tcp_nodelay true
user root
log_type error
""")
    return [found("mosquitto"), "-c", conf]


class Ftp(Talk):
    """The place that a transfer is to begin at is said again."""

    def open(self, port):
        s = super().open(port)
        for line in (b"", b"USER anonymous\r\n"):
            s.sendall(line)
            data = read_until(s, b"\r\n")
        if not data.startswith(b"230"):
            raise Wrong(f"logged in: {data!r}")
        return s

    def request(self, n):
        return b"REST %d\r\n" % (self.who * 10000000 + n)

    def reply(self, n, data):
        want = b"350 Restart position accepted (%d).\r\n" % (self.who * 10000000 + n)
        return matched(want, data, n)


def vsftpd(port, folder):
    os.makedirs(folder + "/ftp", exist_ok=True)
    os.makedirs(folder + "/empty", exist_ok=True)
    os.chmod(folder, 0o755)
    conf = written(folder + "/conf", f"""listen=YES
listen_ipv6=NO
listen_address=127.0.0.1
listen_port={port}
background=NO
anonymous_enable=YES
no_anon_password=YES
anon_root={folder}/ftp
local_enable=NO
secure_chroot_dir={folder}/empty
seccomp_sandbox=NO
isolate=NO
isolate_network=NO
ftp_username=www-data
idle_session_timeout=10000
xferlog_enable=NO
""")
    return [found("vsftpd"), conf]


class Ssh(Talk):
    """A cat at the other end, through a client that others have written."""
    folder = client = None
    CHURN = False   # to log in is to run all that the user's shell begins with

    def open(self, port):
        if self.client:
            self.client.wait(20)
        ours, its = socket.socketpair()
        self.client = subprocess.Popen(
            [found("dbclient"), "-y", "-y", "-i", self.folder + "/key", "-p", str(port),
             "root@127.0.0.1", "cat"], stdin=its, stdout=its, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self.folder})
        its.close()
        ours.settimeout(20)
        ours.sendall(b"begin\n")
        if read_until(ours, b"\n") != b"begin\n":
            raise Wrong("another word than ours")
        return ours

    def request(self, n):
        return b"%d-%d\n" % (self.who, n)

    def reply(self, n, data):
        return matched(self.request(n), data, n)


def dropbear(port, folder):
    Ssh.folder = folder
    make = found("dropbearkey")
    subprocess.run([make, "-t", "ed25519", "-f", folder + "/host"], check=True,
                   capture_output=True)
    text = subprocess.run([make, "-t", "ed25519", "-f", folder + "/key"], check=True,
                          capture_output=True, text=True).stdout
    key = next(line for line in text.splitlines() if line.startswith("ssh-"))
    return [found("dropbear"), "-F", "-E", "-r", folder + "/host", "-p", f"127.0.0.1:{port}",
            "-P", folder + "/pid", "-s", *key_known(folder, key)]


def key_known(folder, key):
    """Who may log in; one that knows no -D looks at the user's own ~/.ssh alone."""
    words = subprocess.run([found("dropbear"), "-h"], capture_output=True, text=True)
    elsewhere = " -D" in words.stdout + words.stderr
    home = folder + "/auth" if elsewhere else pwd.getpwuid(os.getuid()).pw_dir + "/.ssh"
    keys = home + "/authorized_keys"
    os.chmod(folder, 0o700)
    os.makedirs(home, 0o700, exist_ok=True)
    if os.path.exists(keys):
        print(f"{keys} is in use")
        raise SystemExit(77)
    atexit.register(pathlib.Path(written(keys, key + "\n")).unlink, missing_ok=True)
    os.chmod(keys, 0o600)
    return ["-D", home] if elsewhere else []


class Dns(Talk):
    """A name with the number, over TCP."""

    def question(self, n):
        labels = [b"n%d" % n, b"w%d" % self.who, b"test"]
        name = b"".join(bytes([len(x)]) + x for x in labels) + b"\0"
        return name + b"\0\1\0\1"

    def request(self, n):
        body = struct.pack(">6H", n & 0xffff, 0x100, 1, 0, 0, 0) + self.question(n)
        return struct.pack(">H", len(body)) + body

    def reply(self, n, data):
        if len(data) < 2 or len(data) < 2 + (data[0] << 8 | data[1]):
            return 0
        whole = 2 + (data[0] << 8 | data[1])
        number, flags, questions, answers = struct.unpack(">4H", data[2:10])
        if (number, flags & 0x800f, questions, answers) != (n & 0xffff, 0x8000, 1, 1) or \
           not data[14:].startswith(self.question(n)) or data[whole - 4:whole] != bytes([10, 1, 2, 3]):
            raise Wrong(f"reply {n}: {data[:whole]!r}")
        return whole


def unbound(port, folder):
    conf = written(folder + "/conf", f"""server:
  interface: 127.0.0.1
  port: {port}
  do-daemonize: no
  num-threads: 2
  incoming-num-tcp: 100
  chroot: ""
  username: ""
  directory: "{folder}"
  pidfile: "{folder}/pid"
  use-syslog: no
  logfile: "{folder}/log"
  tcp-idle-timeout: 100000
  local-zone: "test." redirect
  local-data: "test. A 10.1.2.3"
""")
    return [found("unbound"), "-d", "-c", conf]


def nsd(port, folder):
    zone = written(folder + "/zone", """$TTL 60
@ SOA a.test. b.test. 1 60 60 60 60
@ NS a.test.
a A 10.1.2.3
*.test. A 10.1.2.3
""")
    conf = written(folder + "/conf", f"""server:
  ip-address: 127.0.0.1@{port}
  server-count: 2
  tcp-count: 100
  tcp-query-count: 0
  tcp-timeout: 1000
  chroot: ""
  username: ""
  zonesdir: "{folder}"
  database: ""
  pidfile: "{folder}/pid"
  logfile: "{folder}/log"
  xfrdfile: "{folder}/xfrd"
  zonelistfile: "{folder}/zones"
  xfrdir: "{folder}"
remote-control:
  control-enable: no
zone:
  name: "test."
  zonefile: "{zone}"
""")
    return [found("nsd"), "-d", "-c", conf]


def knotd(port, folder):
    zone = written(folder + "/zone", """$TTL 60
@ SOA a.test. b.test. 1 60 60 60 60
@ NS a.test.
a A 10.1.2.3
* A 10.1.2.3
""")
    conf = written(folder + "/conf", f"""server:
  listen: 127.0.0.1@{port}
  rundir: "{folder}"
  udp-workers: 1
  tcp-workers: 4
  background-workers: 1
  tcp-max-clients: 1000
  tcp-idle-timeout: 100000
  tcp-io-timeout: 0
log:
  - target: "{folder}/log"
    any: info
database:
  storage: "{folder}"
zone:
  - domain: test.
    storage: "{folder}"
    file: "{zone}"
""")
    return [found("knotd"), "-c", conf]


class Beanstalk(Talk):
    """A job with the number is put into a tube of its own, taken out and deleted."""
    DEPTH = 1       # the server says which number the job has
    tubes = job = 0

    def open(self, port):
        s = socket.create_connection(("127.0.0.1", port), 20)
        Beanstalk.tubes += 1
        s.sendall(b"use t%d\r\nwatch t%d\r\n" % (self.tubes, self.tubes))
        read_until(s, b"\r\nWATCHING 2\r\n")
        return s

    def request(self, n):
        body = b"%d-%d" % (self.who, n)
        return (b"put 0 0 1000 %d\r\n%s\r\n" % (len(body), body), b"reserve\r\n",
                b"delete %d\r\n" % self.job)[n % 3]

    def reply(self, n, data):
        if n % 3 == 0 and b"\r\n" in data:
            line = data[:data.index(b"\r\n")].split()
            if line[0] != b"INSERTED" or int(line[1]) <= self.job:
                raise Wrong(f"reply {n}: {data[:60]!r}, behind {self.job}")
            self.job = int(line[1])
            return data.index(b"\r\n") + 2
        body = b"%d-%d" % (self.who, n - 1)
        return 0 if n % 3 == 0 else matched(
            b"RESERVED %d %d\r\n%s\r\n" % (self.job, len(body), body) if n % 3 == 1 else
            b"DELETED\r\n", data, n)


def beanstalkd(port, folder):
    del folder
    return [found("beanstalkd"), "-l", "127.0.0.1", "-p", str(port)]


class Gunicorn(Http):
    DEPTH = 1       # what has been sent with a request that is served waits for more


TALKS = {"lighttpd": Redirected, "apache2": Redirected, "haproxy": Http, "gunicorn": Gunicorn,
         "mosquitto": Mqtt, "vsftpd": Ftp, "dropbear": Ssh, "unbound": Dns, "nsd": Dns,
         "knotd": Dns, "beanstalkd": Beanstalk}
COMMANDS = {f.__name__: f for f in (lighttpd, apache2, haproxy, gunicorn, mosquitto, vsftpd,
                                    dropbear, unbound, nsd, knotd, beanstalkd)}
