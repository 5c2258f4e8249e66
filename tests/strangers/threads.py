"""More of what servers.py has: servers whose threads share memory.  For those that have a load of
their own in tests/follow (memcached, Redis) it is that: `soak` takes it (rows follow_*_long)."""
import os

import clients
from classics import Origin
from servers import Echo, Server, run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ["PATH"] += ":/usr/local/go/bin"


class Haproxy2(Origin, Server):
    needs, shape, client = ("haproxy",), "C; two threads, a loop each", clients.Http
    reload, daemon, connections, threads = None, False, 8, 2

    def page(self, who, n):
        path = f"/{who}-{n}"
        return path, f"echo {path}".encode()

    def prepare(self):
        self.config("conf", """global
 nbthread {threads}
defaults
 mode http
 timeout connect 30s
 timeout client 30s
 timeout server 30s
 timeout check 10s
frontend in
 bind 127.0.0.1:{port}
 default_backend out
backend out
 option httpchk GET /
 http-reuse always
 server one 127.0.0.1:{behind} check inter 200
""", behind=self.behind(), threads=self.threads)

    def command(self, daemon):
        return ["haproxy", "-db", "-f", f"{self.folder}/conf"]


class Haproxy4(Haproxy2):
    shape, threads = "C; four threads, a loop each", 4


class NginxAio(Server):
    needs, shape = ("nginx",), "C; one loop and a pool of threads"
    connections = 8

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

    def prepare(self):
        self.pages()
        self.config("conf", "ServerRoot {dir}\nListen 127.0.0.1:{port}\nServerName localhost\n"
                    "LoadModule mpm_{model}_module {home}/mod_mpm_{model}.so\n"
                    "LoadModule authz_core_module {home}/mod_authz_core.so\n"
                    "PidFile {dir}/pid\nErrorLog {dir}/log\nUser nobody\nGroup nogroup\n"
                    "StartServers 1\nThreadsPerChild 8\nServerLimit 4\nMaxRequestWorkers 32\n"
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
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.start();
    }
}
"""


class Java(Echo, Server):
    needs, shape, reload, daemon = ("java", "javac"), "Java; a pool of threads", None, False
    begin_s, connections, more = 60, 4, ()

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
    connections = 4

    def prepare(self):
        run("go", "build", "-o", f"{self.folder}/server", f"{ROOT}/tests/servers/go_server.go",
            env={**os.environ, "GO111MODULE": "off", "CGO_ENABLED": "0"})

    def page(self, who, n):
        return ("/hello", b"hello from go\n") if n % 5 else ("/spin", b"sum 190\n")

    def command(self, daemon):
        return [f"{self.folder}/server", f"127.0.0.1:{self.port}"]
