"""served.py PORT REQUEST REPLY STOP: asks a server what REQUEST holds, over and over on
connections of its own, until the file STOP is there, and ten times at least; each answer must
have REPLY."""
import os
import socket
import sys
import time

TIMEOUT_S = 10
LEAST = 10


def ask(port, request, reply):
    got = b""
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as server:
        server.sendall(request)
        while reply not in got:
            piece = server.recv(65536)
            if not piece:
                raise OSError(f"ends with {got[-80:]!r}")
            got += piece


def main():
    port, reply, answers = int(sys.argv[1]), sys.argv[3].encode(), 0
    with open(sys.argv[2], "rb") as file:
        request = file.read()
    while answers < LEAST or not os.path.exists(sys.argv[4]):
        ask(port, request, reply)
        answers += 1
        time.sleep(0.05)
    print(answers, "answers")


main()
