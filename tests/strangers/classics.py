"""More of what servers.py has: classic daemons, most in C.  Proxies have a server of ours behind
them, in try.py's own process (Behind, Origin)."""
import http.server
import os
import shutil
import socketserver
import threading

import clients
from servers import Echo, Server, run


class Repeat(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(1 << 16):
            self.request.sendall(data)


class Pages(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.path[self.path.find("/", 7):] if self.path.startswith("http:") else self.path
        body = f"echo {path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=3")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


class Threads(socketserver.ThreadingTCPServer):
    daemon_threads = allow_reuse_address = True
    request_queue_size = 100

    def handle_error(self, request, address):   # whoever was killed in the middle
        pass


class Behind:
    """What a proxy leads to: it repeats what it is sent."""
    handler = Repeat

    def behind(self):
        server = Threads(("127.0.0.1", 0), self.handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server.server_address[1]


class Origin(Behind):
    """It has pages; some are asked for again while they are fresh."""
    handler = Pages

    def page(self, who, n):
        path = f"/{who}-{n // 2}"
        return f"http://127.0.0.1:{self.origin}{path}", f"echo {path}".encode()


def certificate(folder):
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost",
        "-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem")


class Ngircd(Server):
    needs, shape, client = ("ngircd",), "C; one loop", clients.Irc

    def prepare(self):
        self.config("conf", "[Global]\nName = a.b\nListen = 127.0.0.1\nPorts = {port}\n"
                    "ServerUID = 0\nServerGID = 0\n[Options]\nDNS = no\nIdent = no\nPAM = no\n"
                    "[Limits]\nMaxConnectionsIP = 0\n")

    def command(self, daemon):
        return ["ngircd", *([] if daemon else ["-n"]), "-f", f"{self.folder}/conf"]


class Dnsmasq(Server):
    needs, shape, client = ("dnsmasq",), "C; one loop, forks for streams", clients.Dns

    def prepare(self):
        self.file("hosts", "".join(f"10.0.0.{n} h{n}.a\n" for n in range(10)))
        self.config("conf", "port={port}\nlisten-address=127.0.0.1\nbind-interfaces\nno-resolv\n"
                    "no-hosts\naddn-hosts={dir}/hosts\nuser=root\npid-file={dir}/pid\n"
                    "log-facility={dir}/log\n")

    def command(self, daemon):
        return ["dnsmasq", *([] if daemon else ["-k"]), "-C", f"{self.folder}/conf"]


class Unbound(Server):
    needs, shape, client = ("unbound",), "C; two threads, a loop each", clients.Dns

    def prepare(self):
        names = "".join(f'local-data: "h{n}.a. A 10.0.0.{n}"\n' for n in range(10))
        self.config("conf", 'server:\ninterface: 127.0.0.1\nport: {port}\nusername: ""\n'
                    'chroot: ""\ndirectory: "{dir}"\npidfile: "{dir}/pid"\nuse-syslog: no\n'
                    'logfile: "{dir}/log"\nnum-threads: 2\nmodule-config: "iterator"\n'
                    'local-zone: "a." static\n{names}remote-control:\ncontrol-enable: no\n',
                    names=names)

    def command(self, daemon):
        return ["unbound", *([] if daemon else ["-d"]), "-c", f"{self.folder}/conf"]


class Nsd(Server):
    needs, shape, client = ("nsd",), "C; a master, which forks anew to reload", clients.Dns

    def prepare(self):
        self.file("zone", "$TTL 60\n@ SOA a. a. 1 60 60 60 60\n@ NS h1\n" + "".join(
            f"h{n} A 10.0.0.{n}\n" for n in range(10)))
        self.config("conf", 'server:\nip-address: 127.0.0.1\nport: {port}\nusername: ""\n'
                    'zonesdir: "{dir}"\npidfile: "{dir}/pid"\nlogfile: "{dir}/log"\n'
                    'xfrdfile: "{dir}/xfrd"\nzonelistfile: "{dir}/list"\nxfrdir: "{dir}"\n'
                    'database: ""\nserver-count: 2\nremote-control:\ncontrol-enable: no\n'
                    'zone:\nname: "a"\nzonefile: "zone"\n')

    def command(self, daemon):
        return ["nsd", *([] if daemon else ["-d"]), "-c", f"{self.folder}/conf"]


class Squid(Origin, Server):
    needs, shape = ("squid",), "C++; one loop, a parent as a daemon"

    def prepare(self):
        os.chmod(self.folder, 0o777)
        self.origin = self.behind()
        self.config("conf", "http_port 127.0.0.1:{port}\nhttp_access allow all\n"
                    "cache_mem 8 MB\naccess_log stdio:{dir}/access\ncache_log {dir}/log\n"
                    "pid_filename {dir}/pid\ncoredump_dir {dir}\nshutdown_lifetime 1 seconds\n"
                    "pinger_enable off\nvisible_hostname a.b\nnetdb_filename none\n"
                    "logfile_daemon /bin/false\nicon_directory /usr/share/squid/icons\n")

    def command(self, daemon):
        return ["squid", *([] if daemon else ["-N"]), "-n", f"s{self.port}", "-f",
                f"{self.folder}/conf"]


class Tinyproxy(Origin, Server):
    needs, shape, client = ("tinyproxy",), "C; a thread for each connection", clients.HttpOnce

    def prepare(self):
        self.origin = self.behind()
        self.config("conf", 'Port {port}\nListen 127.0.0.1\nAllow 127.0.0.1\nTimeout 60\n'
                    'LogFile "{dir}/log"\nPidFile "{dir}/pid"\nMaxClients 100\n')

    def command(self, daemon):
        return ["tinyproxy", *([] if daemon else ["-d"]), "-c", f"{self.folder}/conf"]


class Hitch(Behind, Server):
    needs, shape, client = ("hitch", "openssl"), "C; a master and workers, TLS", clients.Tls

    def prepare(self):
        certificate(self.folder)
        with open(f"{self.folder}/key.pem") as key, open(f"{self.folder}/cert.pem") as cert:
            self.file("both.pem", key.read() + cert.read())
        self.config("conf", 'frontend = {{\nhost = "127.0.0.1"\nport = "{port}"\n}}\n'
                    'backend = "[127.0.0.1]:{behind}"\nworkers = 2\npem-file = "{dir}/both.pem"\n'
                    'ocsp-dir = ""\nsyslog = off\nuser = "nobody"\ngroup = "nogroup"\nlog-filename = "{dir}/log"\n',
                    behind=self.behind())

    def command(self, daemon):
        return ["hitch", f"--config={self.folder}/conf", f"--pidfile={self.folder}/pid",
                *(["--daemon"] if daemon else [])]


class Danted(Behind, Server):
    needs, shape, client = ("danted",), "C; processes that pass connections", clients.Socks

    def prepare(self):
        self.target = self.behind()
        self.config("conf", "logoutput: {dir}/log\ninternal: 127.0.0.1 port = {port}\n"
                    "external: 127.0.0.1\nsocksmethod: none\nclientmethod: none\n"
                    "user.privileged: root\nuser.unprivileged: nobody\n"
                    "client pass {{\nfrom: 0/0 to: 0/0\n}}\nsocks pass {{\nfrom: 0/0 to: 0/0\n}}\n")

    def command(self, daemon):
        return ["danted", *(["-D"] if daemon else []), "-f", f"{self.folder}/conf", "-p",
                f"{self.folder}/pid"]


class Mini_httpd(Server):
    needs, shape, client = ("mini_httpd",), "C; forks for each connection", clients.HttpOnce
    reload = None

    def prepare(self):
        self.pages()

    def command(self, daemon):
        return ["mini_httpd", *([] if daemon else ["-D"]), "-h", "127.0.0.1", "-p", str(self.port),
                "-d", f"{self.folder}/pages", "-u", "root", "-i", f"{self.folder}/pid"]


class Webfsd(Server):
    needs, shape = ("webfsd",), "C; one loop"

    def prepare(self):
        self.pages()

    def command(self, daemon):
        return ["webfsd", *([] if daemon else ["-F"]), "-i", "127.0.0.1", "-p", str(self.port),
                "-r", f"{self.folder}/pages", "-k", f"{self.folder}/pid", "-l",
                f"{self.folder}/log"]


class Rsyncd(Server):
    needs, shape, client = ("rsync",), "C; forks for each connection", clients.Rsync
    reload = None

    def prepare(self):
        self.pages()
        self.config("conf", "use chroot = no\nuid = root\ngid = root\nlog file = {dir}/log\n"
                    "pid file = {dir}/pid\n[m]\npath = {dir}/pages\n")

    def command(self, daemon):
        return ["rsync", "--daemon", *([] if daemon else ["--no-detach"]), "--address=127.0.0.1",
                f"--port={self.port}", f"--config={self.folder}/conf"]


class Xinetd(Server):
    needs, shape, client = ("xinetd",), "C; executes for each connection", clients.Repeat
    crash = None

    def prepare(self):
        self.config("conf", "defaults\n{{\ninstances = UNLIMITED\ncps = 1000 1\n"
                    "log_type = FILE {dir}/log\n}}\nservice repeat\n{{\ntype = UNLISTED\n"
                    "socket_type = stream\nprotocol = tcp\nport = {port}\nbind = 127.0.0.1\n"
                    "wait = no\nuser = root\nserver = /bin/cat\n}}\n")

    def command(self, daemon):
        return ["xinetd", *([] if daemon else ["-dontfork"]), "-f", f"{self.folder}/conf",
                "-pidfile", f"{self.folder}/pid"]


class Tcpserver(Server):
    needs, shape, client = ("tcpserver",), "C; executes for each connection", clients.Repeat
    reload, daemon = None, False

    def command(self, daemon):
        return ["tcpserver", "-HRl0", "-c", "100", "127.0.0.1", str(self.port), "cat"]


class Dictd(Server):
    needs, shape, client = ("dictd",), "C; forks for each connection", clients.Dict

    def prepare(self):
        os.chmod(self.folder, 0o777)
        text, index = "", ""
        for n in range(10):
            words = f"word{n}\n  meaning {n}\n"
            index += f"word{n}\t{self.digits(len(text))}\t{self.digits(len(words))}\n"
            text += words
        self.file("a.dict", text)
        self.file("a.index", index)
        self.config("conf", 'database a {{\ndata "{dir}/a.dict"\nindex "{dir}/a.index"\n}}\n')

    @staticmethod
    def digits(n):
        some = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        return (some[n // 64] if n // 64 else "") + some[n % 64]

    def command(self, daemon):
        return ["dictd", "--listen-to", "127.0.0.1", "-p", str(self.port), "-c",
                f"{self.folder}/conf", "--pid-file", f"{self.folder}/pid", "-L",
                f"{self.folder}/log", *([] if daemon else ["-d", "nodetach"])]


class Beanstalkd(Server):
    needs, shape, client = ("beanstalkd",), "C; one loop", clients.Beanstalk
    reload, daemon = None, False

    def command(self, daemon):
        return ["beanstalkd", "-l", "127.0.0.1", "-p", str(self.port), "-b", self.folder]


class Gunicorn(Echo, Server):
    needs, shape = ("gunicorn",), "Python; a master and workers"

    def prepare(self):
        self.file("app.py", "def app(env, start):\n    start('200 OK', [])\n"
                  "    return [b'echo ' + env['PATH_INFO'].encode()]\n")

    def command(self, daemon):
        return [shutil.which("gunicorn"), "-w", "3", "-b", f"127.0.0.1:{self.port}", "--chdir",
                self.folder, "--pid", f"{self.folder}/pid", *(["--daemon"] if daemon else []),
                "app:app"]


class Apache(Server):
    needs, shape, reload = ("apache2",), "C; a parent and processes (prefork)", "USR1"
    home = "/usr/lib/apache2/modules"

    def prepare(self):
        self.pages()
        self.config("conf", "ServerRoot {dir}\nListen 127.0.0.1:{port}\nServerName localhost\n"
                    "LoadModule mpm_prefork_module {home}/mod_mpm_prefork.so\n"
                    "LoadModule authz_core_module {home}/mod_authz_core.so\n"
                    "PidFile {dir}/pid\nErrorLog {dir}/log\nUser nobody\nGroup nogroup\n"
                    "DocumentRoot {dir}/pages\nDefaultRuntimeDir {dir}\n", home=self.home)

    def command(self, daemon):
        return ["apache2", "-f", f"{self.folder}/conf", *([] if daemon else ["-DFOREGROUND"])]


class Epmd(Server):
    needs, shape, client = ("epmd",), "C; one loop", clients.Epmd
    reload = None

    def command(self, daemon):
        return ["epmd", *(["-daemon"] if daemon else []), "-address", "127.0.0.1", "-port",
                str(self.port), "-relaxed_command_check"]
