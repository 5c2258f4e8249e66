"""More of what servers.py has: servers whose threads share memory.  Those that have a load of
their own in tests/follow are loaded by that."""
import os
import sys

import clients
from classics import Origin
from servers import Echo, Server, run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ["PATH"] += ":/usr/local/go/bin"
sys.path.append(f"{ROOT}/tests/follow")

import load             # noqa: E402, what those share
import memcached_load   # noqa: E402, where the path leads
import redis_load       # noqa: E402

NONE = b"GET /none HTTP/1.0\r\n\r\n", b"404 Not Found"


class Memcached(Server):
    """With little memory: of what is put there some expires, and most is thrown out."""
    needs, shape, client = ("memcached",), "C; four threads, a loop each", clients.Task
    reload, daemon, build = None, False, "memcached"
    load, plant = memcached_load, (b"version\r\n", b"VERSION 1.")
    tasks = [(make, number) for make in memcached_load.TASKS for number in range(4)]
    connections = len(tasks)

    def command(self, daemon):
        return ["memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", str(self.port), "-U", "0",
                "-t", "4", "-m", "4", "-I", "1m"]


class Redis(Server):
    """Four threads read and write for the clients; it saves all the time."""
    needs, shape, client = ("redis-server",), "C; one loop and its helpers", clients.Task
    reload, daemon, build = None, False, "redis"
    load, plant = redis_load, (b"LSET none 0 x\r\n", b"ERR no such key")
    tasks = [(make, number) for make in redis_load.TASKS for number in range(2)] + [
        *((redis_load.idle, number) for number in range(10)), (redis_load.saving, 0)]
    connections = len(tasks)

    def prepare(self):
        self.file("conf", "save 3600 1\nappendonly yes\nappendfsync always\n"
                  "auto-aof-rewrite-percentage 0\naof-use-rdb-preamble no\n")

    def command(self, daemon):
        return ["redis-server", f"{self.folder}/conf", "--io-threads", "4",
                "--io-threads-do-reads", "yes", "--port", str(self.port), "--bind", "127.0.0.1",
                "--dir", self.folder, "--maxclients", "4000"]


class Haproxy2(Origin, Server):
    needs, shape, client = ("haproxy",), "C; two threads, a loop each", clients.Http
    reload, daemon, connections, threads = None, False, 8, 2
    plant, build = (b"none\r\n\r\n", b"400 Bad request"), "haproxy"

    def page(self, who, n):
        path = f"/{who}-{n}"
        return path, f"echo {path}".encode()

    def prepare(self):
        with open(f"{ROOT}/tests/follow/haproxy.cfg") as file:
            text = file.read()
        for name in ("threads", "port"):
            text = text.replace(f"@{name}@", str(getattr(self, name)))
        self.file("conf", text.replace("@behind@", str(self.behind())))

    def command(self, daemon):
        return ["haproxy", "-db", "-f", f"{self.folder}/conf"]


class Haproxy4(Haproxy2):
    shape, threads = "C; four threads, a loop each", 4


class NginxAio(Server):
    needs, shape = ("nginx",), "C; one loop and a pool of threads"
    connections, plant, build = 8, NONE, "nginx"

    def prepare(self):
        self.pages()
        os.makedirs(f"{self.folder}/logs")
        self.config("conf", "worker_processes 1;\nerror_log {dir}/log;\npid {dir}/pid;\n"
                    "user root;\nthread_pool default threads=4;\nevents {{}}\nhttp {{\n"
                    "access_log off;\nsendfile off;\naio threads;\n"
                    "server {{ listen 127.0.0.1:{port}; root {dir}/pages; }}\n}}\n")

    def command(self, daemon):
        return ["nginx", "-p", self.folder, "-c", f"{self.folder}/conf", "-g",
                f"daemon {'on' if daemon else 'off'};"]


class ApacheEvent(Server):
    needs, shape, reload = ("apache2",), "C; a parent, processes with threads (event)", "USR1"
    home, model, connections = "/usr/lib/apache2/modules", "event", 8
    plant, build = NONE, "apache_event"

    def prepare(self):
        self.pages()
        self.config("conf", "ServerRoot {dir}\nListen 127.0.0.1:{port}\nServerName localhost\n"
                    "<IfModule mod_so.c>\n"    # who has none has these built in
                    "LoadModule mpm_{model}_module {home}/mod_mpm_{model}.so\n"
                    "LoadModule authz_core_module {home}/mod_authz_core.so\n</IfModule>\n"
                    "<IfModule mod_mime.c>\nTypesConfig /dev/null\n</IfModule>\n"
                    "PidFile {dir}/pid\nErrorLog {dir}/log\nUser nobody\nGroup nogroup\n"
                    # A log that is a file is told how the server was called.
                    "<IfModule !mod_so.c>\nErrorLog syslog\nLogLevel crit\n</IfModule>\n"
                    # Idle connections are closed where all threads are busy, or after so long.
                    "StartServers 1\nThreadsPerChild 16\nServerLimit 4\nMaxRequestWorkers 64\n"
                    "KeepAliveTimeout 300\nMaxKeepAliveRequests 0\n"
                    "DocumentRoot {dir}/pages\nDefaultRuntimeDir {dir}\n", home=self.home,
                    model=self.model)

    def command(self, daemon):
        return ["apache2", "-f", f"{self.folder}/conf", *([] if daemon else ["-DFOREGROUND"])]


JAVA = """import com.sun.net.httpserver.*;
import java.net.*;
import java.util.concurrent.*;

class Echo {
    public static void main(String[] words) throws Exception {
        HttpServer server = HttpServer.create(
            new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 100);
        server.createContext("/", e -> {
            byte[] said = ("echo " + e.getRequestURI().getPath()).getBytes();
            e.sendResponseHeaders(200, said.length);
            e.getResponseBody().write(said);
            e.close();
        });
        server.createContext("/none", e -> {
            e.sendResponseHeaders(404, 0);
            e.getResponseBody().write("nothing is here\\n".getBytes());
            e.close();
        });
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.start();
    }
}
"""


class Java(Echo, Server):
    needs, shape, reload, daemon = ("java", "javac"), "Java; a pool of threads", None, False
    begin_s, connections, more = 60, 4, ()
    plant = NONE[0], b"nothing is here"

    def prepare(self):
        self.file("Echo.java", JAVA)
        run("javac", "-d", self.folder, f"{self.folder}/Echo.java")

    def command(self, daemon):
        return ["java", *self.more, "-cp", self.folder, "Echo", str(self.port)]


class JavaPlain(Java):
    """As little of HotSpot's own threads as it knows how to do without."""
    more = ("-Xint", "-XX:+UseSerialGC", "-Xmx64m")


class Golang(Server):
    needs, shape, reload, daemon = ("go",), "Go; threads by need", None, False
    connections, plant = 4, (NONE[0], b"404 page not found")

    def prepare(self):
        run("go", "build", "-o", f"{self.folder}/server", f"{ROOT}/tests/servers/go_server.go",
            env={**os.environ, "GO111MODULE": "off", "CGO_ENABLED": "0"})

    def page(self, who, n):
        return ("/hello", b"hello from go\n") if n % 5 else ("/spin", b"sum 190\n")

    def command(self, daemon):
        return [f"{self.folder}/server", f"127.0.0.1:{self.port}"]
