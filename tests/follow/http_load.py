"""http_load.py PORT SECONDS FOLDER KIND...: asks for what lies in FOLDER (as it
was before), over connections that are kept and that are not; KIND: gzip, proxy
(the same files under /proxy/), cgi (/it.cgi echoes its body), large."""
import bz2
import os
import sys
import time
import zlib

from load import Load, Wrong, connect, must

PORT, FOLDER, KINDS = int(sys.argv[1]), sys.argv[3], sys.argv[4:]


def content(name):
    with open(os.path.join(FOLDER, name), "rb") as file:
        return file.read()


PAGES = {"/" + name: content(name) for name in os.listdir(FOLDER)
         if name.endswith((".html", ".txt"))}
LARGE = {"/" + name: content(name) for name in os.listdir(FOLDER) if name.endswith(".bin")}


class Http:
    def __init__(self):
        self.socket = connect(PORT)
        self.file = self.socket.makefile("rb")

    def chunks(self):
        while size := int(self.file.readline(), 16):
            yield self.file.read(size)
            self.file.readline()
        self.file.readline()

    def reply(self, head=False):
        status = self.file.readline().split()
        if len(status) < 2:
            raise Wrong("the connection ended")
        fields = {}
        while line := self.file.readline().strip():
            key, _, value = line.partition(b":")
            fields[key.lower()] = value.strip()
        if head:
            body = b""
        elif b"content-length" in fields:
            body = self.file.read(int(fields[b"content-length"]))
        elif fields.get(b"transfer-encoding") == b"chunked":
            body = b"".join(self.chunks())
        else:
            body = self.file.read()
        if fields.get(b"content-encoding") == b"gzip":
            body = zlib.decompress(body, 31)
        if fields.get(b"content-encoding") == b"bzip2" and not head:
            body = bz2.decompress(body)
        return int(status[1]), fields, body

    def send(self, path, *fields, method="GET", body=b""):
        lines = [f"{method} {path} HTTP/1.1", "Host: here", *fields]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        self.socket.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def get(self, path, *fields, **more):
        self.send(path, *fields, **more)
        status, got, body = self.reply(more.get("method") == "HEAD")
        if got.get(b"connection") == b"close":
            self.again()
        return status, got, body

    def again(self):
        self.file.close()
        self.socket.close()
        self.__init__()


def asks(path, expected, *fields):
    """A task that asks for the same again and again."""
    def make(_, number):
        h = Http()

        def step():
            status, _, body = h.get(path, *fields)
            must((status, zlib.crc32(body)), (200, zlib.crc32(expected)), path)
            return 1
        return step
    make.__name__ = path
    return make


def mixed(_, number):
    h, (path, text), name = Http(), list(PAGES.items())[number % len(PAGES)], [0]

    def step():
        name[0] += 1
        status, _, body = h.get(f"{path}?{name[0]}")
        must((status, body), (200, text), path)
        must(h.get(f"/none-{name[0]}")[0], 404, "none")
        status, fields, _ = h.get(path, method="HEAD")
        must(status, 200, "HEAD")
        if b"content-encoding" not in fields:
            must(int(fields[b"content-length"]), len(text), "HEAD")
        if "noranges" in KINDS:
            return 3
        status, _, body = h.get(path, "Range: bytes=2-5")
        must((status, body), (206, text[2:6]), "a range")
        return 4
    return step


def fresh(_, number):
    path, text = list(PAGES.items())[number % len(PAGES)]

    def step():
        h = Http()
        h.send(path, "Connection: close")
        must(h.reply()[::2], (200, text), path)
        must(h.file.read(), b"", "the end")
        h.file.close()
        h.socket.close()
        return 1
    return step


def pipelined(_, number):
    h, (path, text), turn = Http(), list(PAGES.items())[0], [0]

    def step():
        turn[0] += 1
        if turn[0] % 40 == 0:  # servers have a limit
            h.again()
        for _ in range(20):
            h.send(path)
        for _ in range(20):
            must(h.reply()[::2], (200, text), "pipelined")
        return 20
    return step


def cgi(_, number):
    turn = [0]

    def step():
        turn[0] += 1
        body = b"%d body %d\n" % (number, turn[0])
        h = Http()
        h.send(f"/it.cgi?x={turn[0]}", "Connection: close", method="POST", body=body)
        must(h.reply()[::2], (200, b"from cgi: x=%d\n" % turn[0] + body), "cgi")
        return 1
    return step


def slow_reader(_, number):
    """A large file, read with pauses: the server must wait to write."""
    path, text = list(LARGE.items())[0]

    def step():
        h = Http()
        h.send(path, "Connection: close")
        time.sleep(0.2)
        status, _, got = h.reply()
        must((status, zlib.crc32(got)), (200, zlib.crc32(text)), "a slow reader")
        return 1
    return step


def main():
    load = Load(float(sys.argv[2]))
    load.add(mixed, 4)
    load.add(fresh, 4)
    load.add(pipelined, 2)
    for path, text in LARGE.items():
        load.add(asks(path, text), 2)
    path, text = max(PAGES.items(), key=lambda p: len(p[1]))
    if "gzip" in KINDS:
        load.add(asks(path, text, "Accept-Encoding: gzip"), 2)
    if "proxy" in KINDS:
        load.add(asks("/proxy" + path, text), 2)
    if "cgi" in KINDS:
        load.add(cgi, 2)
    if LARGE:
        load.add(slow_reader, 2)
    load.run()


main()
