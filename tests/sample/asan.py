"""A sanitizer's build comes late, finds the planted bug of servers/httpd while the
leader answers, and comes again: it is there for the next."""
import subprocess

from session import MVE, NAME, Session, must, within


def follow(session, name):
    server, *words = session.server
    asked = subprocess.run([MVE, "follow", NAME, "--name", name, "--", server + "-asan", *words],
                           capture_output=True, timeout=100, text=True)
    must(asked.returncode == 0, name, asked.stdout, asked.stderr)
    session.get()
    session.get()
    session.steady(name)
    must(session.version(name)["requests"], name, "follows nothing")


def bug(session):
    """The leader survives it in silence."""
    client = session.connect()
    client.socket.sendall(b"GET /100% HTTP/1.1\r\nHost: localhost\r\n\r\n")
    must(client.socket.recv(4096).startswith(b"HTTP/1.1 "), "no reply to the bad request")
    client.close()


def main():
    session = Session("--stateless", "--mark", "epoll_wait")
    session.get()
    must(within(10, lambda: subprocess.run([MVE, "follow", NAME, "--", "/bin/false"],
                                           capture_output=True, timeout=100,
                                           text=True).stderr.find("start is not over") < 0),
         "its start is never over")
    for name in "one", "two", "one":
        follow(session, name)
        bug(session)
        ended = within(20, lambda: session.version(name)["role"] == "ended")
        must(ended, name, "has not found it:", session.version(name))
        for _ in range(20):
            session.get()
    session.stop()
    print("asan: ok")


main()
