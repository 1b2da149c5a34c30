"""Serve the items of one file to those who know a token: a script of its own, run on the host that stands for a store.

It needs nothing but the standard library. It listens on the one address that it is told, and ends when its standard
input closes, which the kernel does when its owner dies, however that came about.

The first line of its standard input says what to serve, as JSON: {"address", "token", "fd", "item_bytes",
"rate_bits_per_s"}, where fd is that of the file, which it inherits. It answers with one line, {"port"}. A client asks for
`GET /items?ids=3,7,9` with the header `Authorization: Bearer TOKEN` and gets these items, one after the other. With a rate,
all answers together leave no faster than that, piece by piece in turn, as over one link; without, the link does it.
"""

import contextlib
import hmac
import http.server
import json
import os
import select
import signal
import socketserver
import sys
import threading
import time
from urllib.parse import parse_qs, urlsplit

PIECE_BYTES = 16 << 10
MAX_ITEMS = 65536
LATE_S = 0.005
"""A sender that woke up late may catch up by this much."""


class Pace:
    """One link's worth of bytes: who sends waits until the bytes before its own have left."""

    def __init__(self, bits_per_s):
        self.bytes_per_s, self.free_at, self.lock = bits_per_s / 8, 0.0, threading.Lock()

    def wait(self, num_bytes, goes_on):
        """Wait until the piece has left; `goes_on` says that the sender's piece before was the last thing it waited for."""
        if not self.bytes_per_s:
            return
        with self.lock:
            earliest = time.monotonic() - (LATE_S if goes_on else 0)  # a link that lay idle has nothing to catch up
            self.free_at = max(self.free_at, earliest) + num_bytes / self.bytes_per_s
            until = self.free_at
        while (left := until - time.monotonic()) > 0:
            time.sleep(left)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60
    disable_nagle_algorithm = True  # or the last piece of an answer waits for an acknowledgement
    server: "Server"

    def do_GET(self):
        asked = self.server.asked
        given = self.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {asked['token']}".encode()):
            return self.refuse(401, "the token is missing or wrong")
        address = urlsplit(self.path)
        try:
            ids = [int(word) for word in parse_qs(address.query)["ids"][0].split(",")]
        except (KeyError, ValueError):
            return self.refuse(400, "ask for /items?ids=3,7,9")
        total = self.server.num_items
        if address.path != "/items" or len(ids) > MAX_ITEMS or not all(0 <= i < total for i in ids):
            return self.refuse(404, f"items count from 0 to {total - 1}")
        size = asked["item_bytes"]
        content = b"".join(os.pread(self.server.fd, size, i * size) for i in ids)
        self.answer(200, content)

    def refuse(self, status, words):
        self.answer(status, words.encode())

    def answer(self, status, content):
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        view = memoryview(content)
        for start in range(0, len(content), PIECE_BYTES):
            piece = view[start : start + PIECE_BYTES]
            self.server.pace.wait(len(piece), goes_on=start > 0)
            self.wfile.write(piece)

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512  # all ranks and their workers may come at once

    def __init__(self, asked):
        super().__init__((asked["address"], 0), Handler)
        self.asked, self.pace = asked, Pace(asked["rate_bits_per_s"])
        self.fd = asked["fd"]
        self.num_items = os.fstat(self.fd).st_size // asked["item_bytes"]

    def server_bind(self):
        """Without the look-up of the host's name that HTTPServer makes: it may take seconds where there is no DNS."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request, client_address):
        pass  # a client that went away in the middle of an answer


def main():
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the owner's to act upon
    server = Server(json.loads(sys.stdin.readline()))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 5}, daemon=True).start()
    print(json.dumps({"port": server.server_port}), flush=True)
    wait_for_the_end()
    os._exit(0)


def wait_for_the_end():
    """Wait until the owner closes its end or dies: what it forked may keep that end open."""
    waits = [0]
    with contextlib.suppress(AttributeError, OSError):  # a kernel before 5.3, or another system
        waits.append(os.pidfd_open(os.getppid()))
    while True:
        ready = select.select(waits, [], [])[0]
        if ready[-1] != 0 or not os.read(0, 4096):
            return


if __name__ == "__main__":
    main()
