"""Clients of the protocols that servers.py's servers speak.  Each is one connection (or what
stands for it where there is none): ask(n) makes the n-th request and checks its answer, and
raises where it is not the right one.  None of them tries again: what is lost is seen."""
import base64
import hashlib
import http.client
import imaplib
import os
import re
import smtplib
import socket
import ssl
import struct
import subprocess
import sys

WAIT_S = 20     # a machine that others use
sys.path.append("/usr/lib/python3/dist-packages")     # Debian's own modules


class Wrong(Exception):
    pass


def same(got, want, what):
    if got != want:
        raise Wrong(f"{what}: {got!r:.120}, expected {want!r:.120}")


class Client:
    lives = 20      # requests of a connection

    def __init__(self, server, who):
        self.server, self.who, self.port, self.folder = server, who, server.port, server.folder
        self.open()

    def open(self):
        pass

    def close(self):
        pass


class Lines(Client):
    """What is spoken in lines, or at least in bytes."""

    def open(self):
        self.socket = socket.create_connection(("127.0.0.1", self.port), WAIT_S)
        self.socket.settimeout(WAIT_S)
        self.data = b""
        self.greet()

    def greet(self):
        pass

    def close(self):
        self.socket.close()

    def say(self, text):
        self.socket.sendall(text if isinstance(text, bytes) else text.encode())

    def more(self):
        new = self.socket.recv(1 << 16)
        if not new:
            raise Wrong("the server closed the connection")
        self.data += new

    def exactly(self, length):
        while len(self.data) < length:
            self.more()
        got, self.data = self.data[:length], self.data[length:]
        return got

    def until(self, pattern):
        """All up to what this expression finds, that included."""
        while not (found := re.search(pattern, self.data, re.S)):
            self.more()
        got, self.data = self.data[:found.end()], self.data[found.end():]
        return got.decode(errors="replace")


class Http(Client):
    """Files that the server has, or what it echoes: server.page(n) is (path, body)."""

    def open(self):
        self.http = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        self.http.auto_open = 0
        self.http.connect()
        self.over = False

    def close(self):
        self.http.close()

    def ask(self, n):
        if self.over:       # it was said that this connection ends
            self.close()
            self.open()
        path, want = self.server.page(self.who, n)
        self.http.request("GET", path)
        answer = self.http.getresponse()
        body = answer.read()
        self.over = answer.will_close
        same(answer.status, 200, path)
        same(body, want, path)


class HttpOnce(Http):
    lives = 1


class Dav(Http):
    """An entry is put, and read."""

    def ask(self, n):
        path = f"/user/cal/{self.who}-{n % 5}.ics"
        text = ("BEGIN:VCALENDAR\r\nPRODID:a\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:%d-%d\r\n"
                "DTSTAMP:20200101T000000Z\r\nDTSTART:20200101T000000Z\r\nSUMMARY:%d\r\n"
                "END:VEVENT\r\nEND:VCALENDAR\r\n" % (self.who, n % 5, n)).encode()
        for method, body, status in ("PUT", text, 201), ("GET", None, 200):
            if self.over:
                self.close()
                self.open()
            self.http.request(method, path, body, {"Content-Type": "text/calendar"})
            answer = self.http.getresponse()
            got = answer.read()
            self.over = answer.will_close
            same(answer.status, status, path)
            if body is None and b"SUMMARY:%d\r\n" % n not in got:
                raise Wrong(f"{path}: {got!r:.200}")


class Ssh(Client):
    lives = 1

    def ask(self, n):
        words = f"{self.who}-{n}"
        done = subprocess.run(
            ["ssh", "-F", "none", "-i", f"{self.folder}/user", "-p", str(self.port),
             "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
             "-o", "LogLevel=ERROR", "-o", "BatchMode=yes", "127.0.0.1",
             f"read a; echo {words} $a"], input=b"in\n", capture_output=True, timeout=WAIT_S * 2)
        same((done.returncode, done.stdout.decode(), done.stderr.decode()),
             (0, f"{words} in\n", ""), "ssh")


class Sql(Client):
    def open(self):
        import pymysql
        self.db = pymysql.connect(host="127.0.0.1", port=self.port, user="root", password="",
                                  read_timeout=WAIT_S, autocommit=True)
        with self.db.cursor() as at:
            at.execute("create table if not exists test.t (who int, n int, primary key(who, n))")

    def close(self):
        self.db.close()

    def ask(self, n):
        with self.db.cursor() as at:
            same(at.execute("replace into test.t values (%s, %s)", (self.who, n)), 1, "replace")
            at.execute("select n from test.t where who = %s and n = %s", (self.who, n))
            same(at.fetchall(), ((n,),), "select")


class Imap(Client):
    def open(self):
        self.imap = imaplib.IMAP4("127.0.0.1", self.port, WAIT_S)
        self.imap.login(f"u{self.who}", "secret")

    def close(self):
        self.imap.shutdown()

    def ask(self, n):
        text = b"Subject: %d\r\n\r\nbody %d\r\n" % (n, n)
        same(self.imap.append("INBOX", None, None, text)[0], "OK", "append")
        kind, count = self.imap.select("INBOX")
        kind, got = self.imap.fetch(count[0].decode(), "(RFC822)")
        same(got[0][1], text, "fetch")


class Smtp(Client):
    lives = 3

    def open(self):
        self.smtp = smtplib.SMTP("127.0.0.1", self.port, timeout=WAIT_S)

    def close(self):
        self.smtp.close()

    def ask(self, n):
        same(self.smtp.sendmail("a@localhost", ["root@localhost"],
                                f"Subject: {self.who}-{n}\r\n\r\nbody\r\n"), {}, "mail")


class Repeat(Lines):
    """What is sent comes back."""

    def ask(self, n):
        words = b"%d-%d " % (self.who, n) * 50
        self.say(words)
        same(self.exactly(len(words)), words, "echo")


class Socks(Repeat):
    """SOCKS 5, to server.target."""

    def greet(self):
        self.say(b"\5\1\0")
        same(self.exactly(2), b"\5\0", "method")
        self.say(b"\5\1\0\1\x7f\0\0\1" + struct.pack("!H", self.server.target))
        same(self.exactly(10)[:2], b"\5\0", "connect")


class Tls(Repeat):
    """An echo behind TLS."""

    def greet(self):
        context = ssl.create_default_context(cafile=f"{self.folder}/cert.pem")
        context.check_hostname = False
        self.socket = context.wrap_socket(self.socket)


class Ldap(Client):
    def open(self):
        import ldap3
        self.ldap = ldap3.Connection(ldap3.Server("127.0.0.1", self.port, connect_timeout=WAIT_S),
                                     "cn=root,dc=a", "secret", receive_timeout=WAIT_S)
        same(self.ldap.bind(), True, "bind")

    def close(self):
        self.ldap.unbind()

    def ask(self, n):
        name = f"cn={self.who}-{os.getpid()}-{n},dc=a"
        same(self.ldap.add(name, "device", {"description": f"d{n}"}), True, "add")
        same(self.ldap.search(name, "(objectClass=*)", attributes=["description"]), True, "search")
        same(self.ldap.entries[0].description.value, f"d{n}", "description")
        same(self.ldap.delete(name), True, "delete")


class Datagrams(Client):
    def open(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(WAIT_S)
        self.socket.connect(("127.0.0.1", self.port))

    def close(self):
        self.socket.close()

    def exchange(self, data):
        self.socket.send(data)
        return self.socket.recv(1 << 16)


class Radius(Datagrams):
    def ask(self, n):
        secret, seed = b"secret", hashlib.md5(b"%d-%d" % (self.who, n)).digest()
        right = n % 3 != 2
        word = (b"word" if right else b"nonsense").ljust(16, b"\0")
        word = bytes(a ^ b for a, b in zip(word, hashlib.md5(secret + seed).digest()))
        body = b"\x01\x05bob" + b"\x02\x12" + word
        answer = self.exchange(struct.pack("!BBH", 1, n % 256, 20 + len(body)) + seed + body)
        same(answer[:2], bytes([2 if right else 3, n % 256]), "answer")
        sign = hashlib.md5(answer[:4] + seed + answer[20:] + secret).digest()
        same(answer[4:20], sign, "signature")


class Snmp(Datagrams):
    """Get of sysLocation."""

    def ask(self, n):
        number = struct.pack("!I", n + 1 + (self.who << 16))
        name = b"\x06\x08\x2b\x06\x01\x02\x01\x01\x06\x00"
        pair = b"\x30" + bytes([len(name) + 2]) + name + b"\x05\x00"
        pdu = b"\x02\x04" + number + b"\x02\x01\x00\x02\x01\x00\x30" + bytes([len(pair)]) + pair
        message = b"\x02\x01\x01\x04\x06public\xa0" + bytes([len(pdu)]) + pdu
        answer = self.exchange(b"\x30" + bytes([len(message)]) + message)
        if not answer.endswith(b"somewhere") or number.lstrip(b"\0") not in answer:
            raise Wrong(f"answer {answer!r}")


class Dns(Client):
    """By datagram and, each third time, by stream."""
    lives = 1

    def ask(self, n):
        name = b"\x02h%d\x01a\x00" % (n % 10)
        query = struct.pack("!HHHHHH", n % 65536, 0x100, 1, 0, 0, 0) + name + b"\0\x01\0\x01"
        kind = socket.SOCK_STREAM if n % 3 == 2 else socket.SOCK_DGRAM
        with socket.socket(socket.AF_INET, kind) as s:
            s.settimeout(WAIT_S)
            s.connect(("127.0.0.1", self.port))
            s.send(struct.pack("!H", len(query)) + query if n % 3 == 2 else query)
            got = s.recv(4096)
            while n % 3 == 2 and len(got) < 2 + struct.unpack("!H", got[:2])[0]:
                got += s.recv(4096) or b"\0" * 4096
        got = got[2:] if n % 3 == 2 else got
        same(got[:2], query[:2], "id")
        if bytes([10, 0, 0, n % 10]) not in got:
            raise Wrong(f"answer {got!r}")


class Tftp(Client):
    lives = 1

    def ask(self, n):
        path, want = self.server.page(self.who, n)
        got, block = b"", 0
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(WAIT_S)
            s.sendto(b"\0\x01" + path[1:].encode() + b"\0octet\0", ("127.0.0.1", self.port))
            while True:
                data, peer = s.recvfrom(1024)
                block += 1
                same(data[:4], struct.pack("!HH", 3, block), "block")
                got += data[4:]
                s.sendto(struct.pack("!HH", 4, block), peer)
                if len(data) < 516:
                    break
        same(got, want, path)


class Rsync(Client):
    lives = 1

    def ask(self, n):
        path, want = self.server.page(self.who, n)
        to = f"{self.folder}/got-{self.who}"
        done = subprocess.run(["rsync", "-I", "--contimeout", str(WAIT_S),
                               f"rsync://127.0.0.1:{self.port}/m{path}", to],
                              capture_output=True, timeout=WAIT_S * 2)
        same((done.returncode, done.stderr), (0, b""), path)
        with open(to, "rb") as file:
            same(file.read(), want, path)


class Dict(Lines):
    def greet(self):
        self.until(rb"220 .*?\r\n")

    def ask(self, n):
        self.say(f"DEFINE a word{n % 10}\r\nDEFINE a nothing\r\n")
        self.until(rb"meaning %d\r\n\.\r\n250 .*?\r\n552 .*?\r\n" % (n % 10))


class Beanstalk(Lines):
    """A job is put, taken and deleted."""

    def greet(self):
        self.say(f"use t{self.who}\r\nwatch t{self.who}\r\nignore default\r\n")
        self.until(rb"USING \S+\r\nWATCHING 2\r\nWATCHING 1\r\n")

    def ask(self, n):
        words = f"job {n}"
        self.say(f"put 0 0 60 {len(words)}\r\n{words}\r\nreserve\r\n")
        seen = self.until(rb"INSERTED \d+\r\nRESERVED \d+ \d+\r\njob %d\r\n" % n)
        self.say("delete " + re.search(r"RESERVED (\d+)", seen)[1] + "\r\n")
        self.until(rb"DELETED\r\n")


class Epmd(Client):
    """A node is registered, and asked for."""
    lives = 1

    def ask(self, n):
        name = b"n%d-%d" % (self.who, n)
        body = b"x" + struct.pack("!HBBHHH", 1000 + n % 50000, 77, 0, 5, 5, len(name)) + name
        with self.spoken(body + b"\0\0") as s:
            same(self.exactly(s, 4)[:2], b"y\0", "alive")
            with self.spoken(b"z" + name) as t:
                same(self.exactly(t, 4), b"w\0" + struct.pack("!H", 1000 + n % 50000), "port")

    def spoken(self, body):
        s = socket.create_connection(("127.0.0.1", self.port), WAIT_S)
        s.sendall(struct.pack("!H", len(body)) + body)
        return s

    @staticmethod
    def exactly(s, length):
        data = b""
        while len(data) < length:
            new = s.recv(length - len(data))
            if not new:
                raise Wrong("the server closed the connection")
            data += new
        return data


class Irc(Lines):
    def greet(self):
        self.say(f"NICK n{self.who}\r\nUSER u 0 * :u\r\n")
        if "PING" in (seen := self.until(rb"(PING :\S+| 001 .*?)\r\n")):
            self.say("PONG" + seen[seen.index("PING") + 4:])
            self.until(rb" 001 .*?\r\n")
        self.until(rb" (376|422) .*?\r\n")
        self.say(f"JOIN #c{self.who}\r\n")
        self.until(rb" 366 .*?\r\n")

    def ask(self, n):
        self.say(f"PRIVMSG n{self.who} :word {n}\r\nPING :{n}\r\n")
        self.until(rb"PRIVMSG n%d :word %d\r\n" % (self.who, n))
        self.until(rb"PONG \S+ :%d\r\n" % n)


class Xmpp(Lines):
    def begin(self):
        self.say("<stream:stream to='localhost' xmlns='jabber:client' version='1.0' "
                 "xmlns:stream='http://etherx.jabber.org/streams'>")
        self.until(rb"</stream:features>")

    def greet(self):
        self.begin()
        word = base64.b64encode(b"\0bob\0secret").decode()
        self.say(f"<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>{word}</auth>")
        self.until(rb"<success[^>]*>")
        self.begin()
        self.say(f"<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
                 f"<resource>r{self.who}</resource></bind></iq>")
        self.until(rb"<iq .*?id='b'.*?</iq>")

    def ask(self, n):
        self.say(f"<message to='bob@localhost/r{self.who}' id='m{n}'><body>word {n}</body>"
                 f"</message><iq type='get' id='p{n}' to='localhost'><ping xmlns='urn:xmpp:ping'/>"
                 f"</iq>")
        seen = self.until(rb"word %d</body>.*?</message>" % n) + "".join(
            [] if b"p%d'" % n in self.data else [])
        if f"id='p{n}'" not in seen:
            self.until(rb"<iq [^>]*id='p%d'[^>]*>" % n)


class Nats(Lines):
    def greet(self):
        self.until(rb"INFO .*?\r\n")
        self.say(f'CONNECT {{"verbose":false}}\r\nSUB s{self.who} 1\r\nPING\r\n')
        self.until(rb"PONG\r\n")

    def ask(self, n):
        words = b"%d-%d" % (self.who, n)
        self.say(b"PUB s%d %d\r\n%s\r\n" % (self.who, len(words), words))
        self.until(rb"MSG s%d 1 \d+\r\n" % self.who)
        same(self.exactly(len(words) + 2), words + b"\r\n", "message")


class TorControl(Lines):
    def greet(self):
        self.say("AUTHENTICATE\r\n")
        self.until(rb"250 OK\r\n")

    def ask(self, n):
        self.say(f"GETCONF Nickname\r\nSETCONF ContactInfo=c{n}\r\nGETCONF ContactInfo\r\n")
        self.until(rb"250 Nickname=strange\r\n250 OK\r\n250 ContactInfo=c\d+\r\n")


class Task(Client):
    """One of a load of tests/follow (server.load, which has Load's over() from us), as one of its
    threads: it keeps its connections, and says how many requests a step was."""
    lives = 1 << 30

    def open(self):
        self.server.load.PORT = self.port
        make, number = self.server.tasks[self.who]
        self.step = make(self, number)

    def over(self):
        return False

    def ask(self, n):
        return self.step()
