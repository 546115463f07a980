"""A server on loopback that answers any request with what it was told, or leaves in the middle."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread


class Answering(ThreadingHTTPServer):
    """Answers alike until told otherwise.

    Attributes:
        status: of the answer.
        body: of the answer; what is no bytes is sent as JSON.
        headers: of the answer.
        leaves: `cut` or `reset` in the middle of the answer, `silent` without one, None not at all.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 200
        self.body: object = {}
        self.headers: Mapping[str, str] = {}
        self.leaves: str | None = None
        self.closing = Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def says(
        self,
        status: int = 200,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        leaves: str | None = None,
    ) -> str:
        """Set the answer, and return where to ask for it."""
        self.status, self.leaves = status, leaves
        self.body, self.headers = {} if body is None else body, headers or {}
        return self.url

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients of these tests leave in the middle as well."""


class _Handler(BaseHTTPRequestHandler):
    server: Answering
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        return

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        server = self.server
        if server.leaves == "silent":
            server.closing.wait()
            return
        if server.leaves == "gone":
            self._leave(reset=False)
            return
        payload = (
            server.body if isinstance(server.body, bytes) else json.dumps(server.body).encode()
        )
        self.send_response(server.status)
        if "Content-Type" not in server.headers:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload) + (9 if server.leaves else 0)))
        for name, value in server.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(payload)
        if server.leaves:
            self._leave(reset=server.leaves == "reset")

    def do_POST(self) -> None:
        self.do_GET()

    def _leave(self, *, reset: bool) -> None:
        self.close_connection = True
        if reset:
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()


@contextmanager
def answering() -> Iterator[Answering]:
    """Such a server, as long as the block lasts."""
    server = Answering()
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


def nobody() -> str:
    """Where nobody listens: a port of loopback that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"
