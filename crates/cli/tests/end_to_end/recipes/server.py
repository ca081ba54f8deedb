"""A service for the recipe: WORK is how much each request does."""
import hashlib
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WORK = int(os.environ.get("WORK", "1"))


def digest():
    text = "order"
    for _ in range(WORK):
        text = hashlib.sha256(text.encode()).hexdigest()
    return text.encode()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body in one packet: otherwise Nagle's algorithm waits for the client's delayed acknowledgement.
    wbufsize = -1

    def do_GET(self):
        body = digest()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
