"""backend.py PORT FOLDER: serves the files of FOLDER, with connections kept."""
import http.server
import sys


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def __init__(self, *args):
        super().__init__(*args, directory=sys.argv[2])


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
