"""--sample: followers hear of a part of the connections, without differing; which
part is counted, not guessed."""
import socket
import struct
import sys

from session import Client, Session, httpd, must, nginx, within

ROUNDS, OPEN, REQUESTS = 15, 10, 3


def load(session, rounds=ROUNDS):
    """Connections that are open together; each asks several times."""
    for _ in range(rounds):
        clients = [session.connect() for _ in range(OPEN)]
        for _ in range(REQUESTS):
            for client in clients:
                client.get()
        for client in clients:
            client.close()
    return rounds * OPEN


def first_accepted(session):
    """The connection that found it listening may not have been accepted yet."""
    within(30, lambda: session.status()["sample"]["connections"])


def sampled(how, least, most, command=httpd):
    """Sends load; followed connections must be within these shares."""
    session = Session("-f", "same", "--stateless", "--sample", how, command=command)
    first_accepted(session)
    before = session.status()["sample"]
    made = load(session)
    session.steady("f1")
    status = session.status()
    now = status["sample"]
    conns = now["connections"] - before["connections"]
    seen = now["connections_followed"] - before["connections_followed"]
    must(conns == made, how, conns, "connections counted of", made)
    must(least <= seen / made <= most, how, f"{seen} of {made} followed")
    leader, follower = status["versions"]
    share = seen / made
    must(follower["calls"] <= leader["calls"] * (share + 0.45), how,
         f"the follower made {follower['calls']} calls of {leader['calls']}")
    must(follower["calls"] >= seen * REQUESTS * 3, how, f"it made {follower['calls']} only")
    session.stop()
    print(how, f"{seen} of {made} connections", file=sys.stderr)


def from_port(session, port):
    """One request from this port; was the connection followed?"""
    before = session.status()["sample"]["connections_followed"]
    client = Client.__new__(Client)
    client.socket = socket.socket()
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.bind(("127.0.0.1", port))
    client.socket.connect(("127.0.0.1", session.port))
    client.get()
    client.close()
    return session.status()["sample"]["connections_followed"] - before


def same_peers():
    session = Session("-f", "same", "--stateless", "--sample", "conn:50%")
    first_accepted(session)
    ports = []
    while len(ports) < 12:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports.append(free.getsockname()[1])
    first = [from_port(session, port) for port in ports]
    must(0 < sum(first) < len(first), "half of the peers are", first)
    must([from_port(session, port) for port in ports] == first, "other peers the second time")
    session.steady("f1")
    session.stop()


if sys.argv[1:] == ["nginx"]:
    sampled("100%", 1, 1, nginx)
    sampled("20%", 0.15, 0.25, nginx)  # each worker counts its own
    sampled("conn:30%", 0.1, 0.5, nginx)
    print("shares_nginx: ok")
    sys.exit()
sampled("10%", 0.1, 0.1)
sampled("100%", 1, 1)
sampled("conn:30%", 0.1, 0.5)
sampled("window:50%/64", 0.1, 0.9)
sampled("auto", 0.1, 1)
same_peers()
print("shares: ok")
