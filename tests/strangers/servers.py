"""The servers that try.py tries: how each is started in a folder of its own on a port of its
own, in a few lines.  `needs` are the programs that must be there, `shape` is what the table of
docs/followers.md says of it, `client` what loads it, `reload` the signal that reloads it (None:
it has none), `daemon` whether it can be one; command(daemon) is its command."""
import os
import shutil
import subprocess

import clients

os.environ["PATH"] += ":/usr/sbin:/sbin"
SERVERS = {}


def run(*words, **more):
    subprocess.run(words, check=True, capture_output=True, timeout=120, **more)


class Server:
    needs, shape, client, reload, daemon = (), "", clients.Http, "HUP", True
    udp = False
    crash = "SEGV"      # the signal that ends it (None: it handles them all)
    connections, begin_s = 3, 30
    plant = None        # what planting.py asks for, and what of the answer it changes
    build = None        # how servers/build calls it, where it makes editions of it

    def __init__(self, port, folder):
        self.port, self.folder = port, folder
        os.chmod(folder, 0o755)
        self.prepare()

    def __init_subclass__(cls):
        SERVERS[cls.__name__.lower()] = cls

    def prepare(self):
        pass

    def file(self, name, text, mode=0o644):
        path = f"{self.folder}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w" if isinstance(text, str) else "wb") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def config(self, name, text, **more):
        return self.file(name, text.format(port=self.port, dir=self.folder, **more))

    def page(self, who, n):
        """A file of `pages`."""
        return f"/f{n % 10}.txt", b"file %d\n" % (n % 10) * (1 + 200 * (n % 10))

    def pages(self, folder="pages"):
        for n in range(10):
            path, text = self.page(0, n)
            self.file(folder + path, text)
        return f"{self.folder}/{folder}"


class Echo:
    """An application that says what it was asked for."""

    def page(self, who, n):
        return f"/{who}-{n}", f"echo /{who}-{n}".encode()


class Sshd(Server):
    needs = ("sshd", "ssh", "ssh-keygen")
    shape = "C; executes itself for each connection, privileges apart"
    client = clients.Ssh

    def prepare(self):
        for name in "host", "user":
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{self.folder}/{name}")
        shutil.copy(f"{self.folder}/user.pub", f"{self.folder}/keys")
        os.makedirs("/run/sshd", exist_ok=True)
        self.config("conf", "Port {port}\nListenAddress 127.0.0.1\nHostKey {dir}/host\n"
                    "AuthorizedKeysFile {dir}/keys\nStrictModes no\nPidFile {dir}/pid\n"
                    "PermitRootLogin yes\nUsePAM no\nMaxStartups 100\n"
                    "SetEnv SHLVL=2\n")

    def command(self, daemon):
        return [shutil.which("sshd"), *([] if daemon else ["-D"]), "-E", f"{self.folder}/log",
                "-f", f"{self.folder}/conf"]


class MariaDB(Server):
    needs, shape = ("mariadbd", "mariadb-install-db"), "C++; a thread for each connection"
    client, daemon, connections = clients.Sql, False, 8
    begin_s = 60
    plant = b"\x04\0\0\x01\0\0\0\0", b"Bad handshake"     # its first packet, without what it wants

    def prepare(self):
        run("mariadb-install-db", "--no-defaults", f"--datadir={self.folder}/data", "--user=root",
            "--auth-root-authentication-method=normal", "--skip-test-db")
        os.makedirs(f"{self.folder}/data/test")

    def command(self, daemon):
        return ["mariadbd", "--no-defaults", f"--datadir={self.folder}/data", "--user=root",
                f"--port={self.port}", "--bind-address=127.0.0.1", f"--socket={self.folder}/sock",
                "--innodb-use-native-aio=0", "--innodb-buffer-pool-size=16M",
                f"--pid-file={self.folder}/pid"]


class Dovecot(Server):
    needs, shape = ("dovecot",), "C; a master, and processes of ten kinds that pass connections"
    client = clients.Imap

    def prepare(self):
        os.makedirs(f"{self.folder}/mail")
        os.chmod(f"{self.folder}/mail", 0o777)
        self.config("conf", """protocols = imap
base_dir = {dir}/run
log_path = {dir}/log
ssl = no
disable_plaintext_auth = no
listen = 127.0.0.1
service imap-login {{
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
mail_location = maildir:{dir}/mail/%u
first_valid_uid = 1
passdb {{
  driver = static
  args = password=secret
}}
userdb {{
  driver = static
  args = uid=65534 gid=65534 home={dir}/mail/%u
}}
""")

    def command(self, daemon):
        return ["dovecot", *([] if daemon else ["-F"]), "-c", f"{self.folder}/conf"]


class Exim(Server):
    needs, shape = ("exim4",), "C; forks for each connection, and for each delivery"
    client = clients.Smtp

    def prepare(self):
        os.makedirs(f"{self.folder}/spool")
        os.chmod(f"{self.folder}/spool", 0o777)
        self.config("conf", """spool_directory = {dir}/spool
log_file_path = {dir}/spool/%slog
pid_file_path = {dir}/pid
primary_hostname = localhost
domainlist local_domains = localhost
acl_smtp_rcpt = accept
acl_smtp_data = accept
never_users =
begin routers
here:
  driver = accept
  domains = localhost
  transport = file
begin transports
file:
  driver = appendfile
  file = {dir}/spool/box
  user = Debian-exim
""")

    def command(self, daemon):
        return ["exim4", "-bd" if daemon else "-bdf", "-C", f"{self.folder}/conf", "-oX",
                f"127.0.0.1.{self.port}"]


class Stunnel(Server):
    needs, shape, client = ("stunnel4", "openssl"), "C; a thread for each connection", clients.Tls

    def prepare(self):
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost",
            "-keyout", f"{self.folder}/key.pem", "-out", f"{self.folder}/cert.pem")
        self.conf("yes")

    def conf(self, foreground):
        self.config("conf", "foreground = {fg}\npid = {dir}/pid\noutput = {dir}/log\n"
                    "syslog = no\n[echo]\naccept = 127.0.0.1:{port}\ncert = {dir}/cert.pem\n"
                    "key = {dir}/key.pem\nexec = /bin/cat\nexecArgs = cat\n", fg=foreground)

    def command(self, daemon):
        self.conf("no" if daemon else "yes")
        return ["stunnel4", f"{self.folder}/conf"]


class Slapd(Server):
    needs, shape, client = ("slapd", "slapadd"), "C; a pool of threads, LMDB", clients.Ldap
    reload = None

    def prepare(self):
        os.makedirs(f"{self.folder}/db")
        self.config("conf", "include /etc/ldap/schema/core.schema\nmodulepath /usr/lib/ldap\n"
                    "moduleload back_mdb\npidfile {dir}/pid\nthreads 4\ndatabase mdb\n"
                    "suffix dc=a\nrootdn cn=root,dc=a\nrootpw secret\ndirectory {dir}/db\n"
                    "maxsize 1048576\n")
        run("slapadd", "-f", f"{self.folder}/conf", input=b"dn: dc=a\nobjectClass: dcObject\n"
            b"objectClass: organization\no: a\ndc: a\n")

    def command(self, daemon):
        return ["slapd", "-h", f"ldap://127.0.0.1:{self.port}", "-f", f"{self.folder}/conf",
                *([] if daemon else ["-d", "0"])]


class FreeRadius(Server):
    needs, shape, client = ("freeradius",), "C; a pool of threads, datagrams", clients.Radius
    udp = True

    def prepare(self):
        self.config("radiusd.conf", """
name = radiusd
prefix = /usr
localstatedir = {dir}
logdir = {dir}
libdir = /usr/lib/freeradius
run_dir = {dir}
pidfile = {dir}/pid
security {{
	allow_vulnerable_openssl = yes
}}
log {{
	destination = files
	file = {dir}/log
}}
thread pool {{
	start_servers = 3
	max_servers = 3
	min_spare_servers = 3
	max_spare_servers = 3
}}
client here {{
	ipaddr = 127.0.0.1
	secret = secret
	require_message_authenticator = no
}}
modules {{
	pap {{
	}}
}}
server default {{
	listen {{
		type = auth
		ipaddr = 127.0.0.1
		port = {port}
	}}
	authorize {{
		update control {{
			Cleartext-Password := "word"
		}}
		pap
	}}
	authenticate {{
		Auth-Type PAP {{
			pap
		}}
	}}
}}
""")

    def command(self, daemon):
        return ["freeradius", *([] if daemon else ["-f"]), "-d", self.folder]


class Prosody(Server):
    needs, shape, client = ("prosody",), "Lua; one loop", clients.Xmpp

    def prepare(self):
        self.file("data/localhost/accounts/bob.dat", 'return {\n\t["password"] = "secret";\n};\n')
        self.config("conf.lua", """
run_as_root = true; pidfile = "{dir}/pid"; data_path = "{dir}/data"
interfaces = {{ "127.0.0.1" }}; c2s_ports = {{ {port} }}; s2s_ports = {{}}
modules_enabled = {{ "saslauth", "roster", "ping", "posix" }}
modules_disabled = {{ "s2s", "tls", "offline" }}
c2s_require_encryption = false; allow_unencrypted_plain_auth = true
authentication = "internal_plain"; log = "{dir}/log"
VirtualHost "localhost"
""")

    def command(self, daemon):
        return ["prosody", "-D" if daemon else "-F", "--config", f"{self.folder}/conf.lua"]


class Puma(Echo, Server):
    needs, shape = ("puma",), "Ruby; a pool of threads"
    daemon, reload = False, "USR2"

    def prepare(self):
        self.file("config.ru", 'run ->(e) { [200, {"Content-Type" => "text/plain"}, '
                  '["echo " + e["PATH_INFO"]]] }\n')

    def command(self, daemon):
        return ["puma", "-e", "production", "-t", "3:3", "-b", f"tcp://127.0.0.1:{self.port}",
                f"{self.folder}/config.ru"]


class Starman(Echo, Server):
    needs, shape = ("starman",), "Perl; a master and workers"

    def prepare(self):
        self.file("app.psgi", 'sub { [200, ["Content-Type", "text/plain"], '
                  '["echo $_[0]{PATH_INFO}"]] }\n')

    def command(self, daemon):
        return ["starman", "--workers", "3", "--listen", f"127.0.0.1:{self.port}", "--pid",
                f"{self.folder}/pid", *(["--daemonize"] if daemon else []),
                f"{self.folder}/app.psgi"]


class Radicale(Server):
    needs, shape, client = ("radicale",), "Python; a thread for each request", clients.Dav
    reload, daemon = None, False

    def prepare(self):
        os.makedirs(f"{self.folder}/data/collection-root/user/cal")
        self.file("data/collection-root/user/cal/.Radicale.props", '{"tag": "VCALENDAR"}')

    def command(self, daemon):
        return ["/usr/bin/radicale", "--config", "", "-H", f"127.0.0.1:{self.port}",
                "--auth-type", "none", "--rights-type", "authenticated",
                "--storage-filesystem-folder", f"{self.folder}/data"]


class Simple(Server):
    needs, shape, client = ("python3",), "Python; a thread for each connection", clients.HttpOnce
    reload, daemon = None, False

    def prepare(self):
        self.pages()

    def command(self, daemon):
        return ["python3", "-m", "http.server", "--bind", "127.0.0.1", "-d",
                f"{self.folder}/pages", str(self.port)]


class Twisted(Server):
    needs, shape, reload = ("twistd3",), "Python; one loop", None

    def prepare(self):
        self.pages()

    def command(self, daemon):
        return ["/usr/bin/twistd3", *([] if daemon else ["-n"]), "--pidfile", f"{self.folder}/pid",
                "--logfile", f"{self.folder}/log", "web", "--listen",
                f"tcp:{self.port}:interface=127.0.0.1", "--path", f"{self.folder}/pages"]


class Uvicorn(Echo, Server):
    needs, shape = ("uvicorn",), "Python; a parent and two loops"
    reload, daemon = None, False

    def prepare(self):
        self.file("app.py", """
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"echo " + scope["path"].encode()})
""")

    def command(self, daemon):
        return ["/usr/bin/uvicorn", "--port", str(self.port), "--workers", "2", "--app-dir",
                self.folder, "app:app"]


class Yaws(Server):
    needs, shape = ("yaws",), "Erlang; a scheduler thread for each processor"

    def prepare(self):
        self.pages()
        self.config("conf", "logdir = {dir}\n<server localhost>\nport = {port}\n"
                    "listen = 127.0.0.1\ndocroot = {dir}/pages\n</server>\n")

    def command(self, daemon):
        return ["env", f"HOME={self.folder}", "yaws", "--daemon" if daemon else "-i", "--id",
                f"y{self.port}", "--conf", f"{self.folder}/conf"]


class Caddy(Server):
    needs, shape, reload, daemon = ("caddy",), "Go; threads by need", None, False

    def prepare(self):
        self.pages()
        self.config("Caddyfile", "{{\n\tadmin off\n\tauto_https off\n}}\nhttp://127.0.0.1:{port} "
                    "{{\n\troot * {dir}/pages\n\tfile_server\n}}\n")

    def command(self, daemon):
        return ["env", f"HOME={self.folder}", "caddy", "run", "--config",
                f"{self.folder}/Caddyfile", "--adapter", "caddyfile"]


class Nats(Server):
    needs, shape, client = ("nats-server",), "Go; threads by need", clients.Nats
    daemon = False

    def prepare(self):
        self.config("conf", "listen: 127.0.0.1:{port}\n")

    def command(self, daemon):
        return ["nats-server", "-c", f"{self.folder}/conf"]


class Jetty(Server):
    needs, shape, reload, daemon = ("java",), "Java; a pool of threads", None, False
    begin_s = 60
    home = "/usr/share/jetty9"

    def prepare(self):
        self.pages("base/webapps/ROOT")

    def command(self, daemon):
        return ["java", "-Xmx64m", "-Xshare:auto", f"-Djetty.home={self.home}",
                f"-Djetty.base={self.folder}/base", "-jar", f"{self.home}/start.jar",
                "--module=http,deploy,webapp", "jetty.http.host=127.0.0.1",
                f"jetty.http.port={self.port}"]


class Ocsigen(Server):
    needs, shape, reload = ("ocsigenserver",), "OCaml; one loop, and threads that wait", None

    def prepare(self):
        self.pages()
        os.makedirs(f"{self.folder}/log")
        self.config("conf", """<ocsigen><server><port>127.0.0.1:{port}</port>
<logdir>{dir}/log</logdir><datadir>{dir}</datadir><uploaddir>{dir}</uploaddir>
<commandpipe>{dir}/pipe</commandpipe><charset>utf-8</charset>
<extension findlib-package="ocsigenserver.ext.staticmod"/>
<host hostfilter="*"><static dir="{dir}/pages"/></host></server></ocsigen>
""")

    def command(self, daemon):
        return ["ocsigenserver", *(["-d"] if daemon else []), "-p", f"{self.folder}/pid", "-c",
                f"{self.folder}/conf"]


class Snmpd(Server):
    needs, shape, client = ("snmpd",), "C; one loop, datagrams", clients.Snmp
    udp = True

    def prepare(self):
        self.config("conf", "rocommunity public\nsyslocation somewhere\n"
                    "agentaddress udp:127.0.0.1:{port}\n")

    def command(self, daemon):
        return ["snmpd", *([] if daemon else ["-f"]), "-Lf", f"{self.folder}/log", "-C", "-c",
                f"{self.folder}/conf", "-p", f"{self.folder}/pid", "-I", "-smux"]


class Pdns(Server):
    needs, shape, client = ("pdns_server",), "C++; threads, datagrams", clients.Dns
    reload = None

    def prepare(self):
        self.config("named.conf", 'zone "a" {{ type master; file "{dir}/zone"; }};\n')
        self.file("zone", "$TTL 60\n@ SOA a. a. 1 60 60 60 60\n@ NS h1\n" + "".join(
            f"h{n} A 10.0.0.{n}\n" for n in range(10)))

    def command(self, daemon):
        return ["pdns_server", f"--config-dir={self.folder}", "--launch=bind",
                f"--bind-config={self.folder}/named.conf", "--local-address=127.0.0.1",
                f"--local-port={self.port}", f"--socket-dir={self.folder}", "--guardian=no",
                f"--daemon={'yes' if daemon else 'no'}", "--security-poll-suffix="]


class Tftpd(Server):
    needs, shape, client = ("in.tftpd",), "C; forks for each file, datagrams", clients.Tftp
    udp = True

    def prepare(self):
        self.pages()

    def command(self, daemon):
        return ["in.tftpd", "-l" if daemon else "-L", "-4", "-u", "root", "-a",
                f"127.0.0.1:{self.port}", "-s", f"{self.folder}/pages"]


class Inspircd(Server):
    needs, shape, client = ("inspircd",), "C++; one loop", clients.Irc

    def prepare(self):
        self.config("conf", """<server name="a.b" description="a" network="a" id="1AB">
<bind address="127.0.0.1" port="{port}" type="clients">
<path datadir="{dir}" logdir="{dir}" runtimedir="{dir}"><pid file="{dir}/pid">
<connect allow="*" timeout="30" commandrate="1000000" fakelag="no" threshold="100000" localmax="50" globalmax="50"
 resolvehostnames="no" useident="no">
<log method="file" type="*" level="default" target="{dir}/log">
""")

    def command(self, daemon):
        return ["inspircd", "--runasroot", "--config", f"{self.folder}/conf",
                *([] if daemon else ["--nofork"])]


class Php(Echo, Server):
    needs, shape, client = ("php",), "PHP; a parent and workers", clients.HttpOnce
    reload, daemon = None, False

    def prepare(self):
        self.file("r.php", '<?php echo "echo " . $_SERVER["REQUEST_URI"];')

    def command(self, daemon):
        return ["env", "PHP_CLI_SERVER_WORKERS=3", "php", "-n", "-S", f"127.0.0.1:{self.port}",
                f"{self.folder}/r.php"]


class Tor(Server):
    needs, shape = ("tor",), "C; one loop, and threads that compute"
    client = clients.TorControl

    def command(self, daemon):
        return ["tor", "-f", "/dev/null", "--ignore-missing-torrc", "--defaults-torrc",
                "/dev/null", "--DisableNetwork", "1", "--ControlPort", f"127.0.0.1:{self.port}",
                "--SocksPort", "0", "--DataDirectory", f"{self.folder}/data", "--Nickname",
                "strange", "--Log", f"notice file {self.folder}/log", "--RunAsDaemon",
                "1" if daemon else "0"]


class Cupsd(Server):
    needs, shape = ("cupsd",), "C; one loop"

    def prepare(self):
        self.pages()
        for name in "root", "spool", "cache", "state", "temp":
            os.makedirs(f"{self.folder}/{name}")
        self.config("conf", "Listen 127.0.0.1:{port}\nBrowsing Off\nPreserveJobHistory No\n"
                    "<Location />\nOrder allow,deny\nAllow all\n</Location>\n")
        self.config("files", "ServerRoot {dir}/root\nDocumentRoot {dir}/pages\nCacheDir {dir}/cache\n"
                    "RequestRoot {dir}/spool\nStateDir {dir}/state\nTempDir {dir}/temp\n"
                    "AccessLog {dir}/access\nErrorLog {dir}/error\nPageLog {dir}/pagelog\n"
                    "User nobody\nGroup nogroup\nSystemGroup root\n")

    def command(self, daemon):
        return ["cupsd", *([] if daemon else ["-f"]), "-c", f"{self.folder}/conf", "-s",
                f"{self.folder}/files"]

