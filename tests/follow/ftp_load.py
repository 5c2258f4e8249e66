"""ftp_load.py PORT SECONDS FOLDER [UNKNOWN]: visitors who come, look, fetch, bring, and go;
UNKNOWN is a command that the server is to refuse as none that it knows."""
import ftplib
import io
import sys
import zlib

from load import Load, must

PORT, FOLDER = int(sys.argv[1]), sys.argv[3]


def file(name):
    with open(f"{FOLDER}/{name}", "rb") as f:
        return f.read()


UNKNOWN = sys.argv[4:]
FILES = {name: file(name) for name in ("hello", "big")}


def visit(_, number):
    turn = [0]

    def step():
        turn[0] += 1
        ftp = ftplib.FTP()
        ftp.connect("127.0.0.1", PORT, 30)
        must(ftp.login()[:3], "230")
        must(sorted(ftp.nlst()), ["big", "hello", "in"], "a list")
        for name, expected in FILES.items():
            got = bytearray()
            ftp.retrbinary("RETR " + name, got.extend)
            must(zlib.crc32(got), zlib.crc32(expected), name)
        ftp.cwd("in")
        for command in UNKNOWN:
            ftp.putcmd(command)
            must(ftp.getline(), "500 Unknown command.", command)
        name, text = f"{number}-{turn[0]}", b"line %d\n" % turn[0] * 5000
        ftp.storbinary("STOR " + name, io.BytesIO(text))
        must(ftp.size(name), len(text), "the size")
        got = bytearray()
        ftp.retrbinary("RETR " + name, got.extend)
        must(zlib.crc32(got), zlib.crc32(text), "what was put")
        lines = []
        ftp.retrlines("LIST", lines.append)
        ftp.delete(name)
        must(ftp.quit()[:3], "221")
        return 10
    return step


def main():
    load = Load(float(sys.argv[2]))
    load.add(visit, 4)
    load.run()


main()
