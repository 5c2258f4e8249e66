"""send.py PORT FILE: sends the bytes of FILE (-: of standard input) to a server on
loopback, over one connection, and writes what comes back until it is quiet for a
while or the connection ends."""
import socket
import sys

QUIET_S = 0.5
FIRST_S = 10


def main():
    with sys.stdin.buffer if sys.argv[2] == "-" else open(sys.argv[2], "rb") as file:
        request = file.read()
    try:
        with socket.create_connection(("127.0.0.1", int(sys.argv[1])), FIRST_S) as server:
            server.sendall(request)
            while got := server.recv(65536):
                sys.stdout.buffer.write(got)
                server.settimeout(QUIET_S)
    except TimeoutError:
        pass
    except OSError as error:
        return f"send: {error}"
    return 0


sys.exit(main())
