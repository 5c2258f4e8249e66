"""vsftpd_client.py PORT: what an anonymous visitor does, three at once."""
import ftplib
import io
import sys
import zlib


def visit(port, number):
    ftp = ftplib.FTP()
    ftp.connect("127.0.0.1", port, 10)
    print(ftp.login())
    print(sorted(ftp.nlst()))
    for name in ("hello", "big"):
        data = bytearray()
        ftp.retrbinary("RETR " + name, data.extend)
        print(name, len(data), zlib.crc32(data))
    ftp.cwd("in")
    print(ftp.storbinary(f"STOR new-{number}", io.BytesIO(b"some data\n" * 20000)))
    print(ftp.size(f"new-{number}"), ftp.pwd())
    return ftp


def main():
    port = int(sys.argv[1])
    try:
        open_ones = [visit(port, f"{port}-{n}") for n in range(3)]
        for ftp in open_ones:
            print(ftp.quit())
    except ftplib.all_errors:
        # Which of its two processes speaks last is a race, natively too.
        print("refused")


main()
