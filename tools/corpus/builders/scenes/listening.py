"""Small services on the loopback that a project may need: they listen while a run goes on."""

from __future__ import annotations

import http.server
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Answer = Callable[[socket.socket], None]


@contextmanager
def listening(name: str | None, port: int, home: Path) -> Iterator[None]:
    """The service of this name on the port; none where the name is ``None``."""
    if name is None:
        yield
        return
    if name.startswith("http"):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), HANDLERS[name])
        if name.startswith("https"):
            server.socket = _context(home).wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
        return
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        threading.Thread(target=_accept, args=(listener, ANSWERS[name]), daemon=True).start()
        yield
        listener.shutdown(socket.SHUT_RDWR)


def is_free(port: int) -> bool:
    """Whether nobody listens on the port."""
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) != 0


def _accept(listener: socket.socket, answer: Answer) -> None:
    held: list[socket.socket] = []
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        held.append(client)
        threading.Thread(target=_serve, args=(client, answer), daemon=True).start()


def _serve(client: socket.socket, answer: Answer) -> None:
    try:
        answer(client)
    except OSError:
        client.close()


def _greets(client: socket.socket) -> None:
    """A line for a line: ``+`` and what was said."""
    client.sendall(b"+ready\n")
    for line in client.makefile("rb"):
        client.sendall(b"+" + line)


def _hangs(client: socket.socket) -> None:
    """Takes everything and says nothing."""
    while client.recv(4096):
        pass


def _hangs_up(client: socket.socket) -> None:
    client.close()


def _full(client: socket.socket) -> None:
    client.sendall(b"-too many connections\n")
    client.close()


ANSWERS: dict[str, Answer] = {"lines": _greets, "silent": _hangs, "hangs-up": _hangs_up, "full": _full}


class _Json(http.server.BaseHTTPRequestHandler):
    status = 200

    def do_GET(self) -> None:
        known = self.path in ("/", "/v1/status", "/v1/items")
        status = self.status if known or self.status != 200 else 404
        body = b'{"status": "ok", "items": [1, 2, 3]}' if status == 200 else b"no"
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is written down."""


class _Overloaded(_Json):
    status = 503


class _Closed(_Json):
    status = 401


HANDLERS: dict[str, type[_Json]] = {
    "http": _Json,
    "http-503": _Overloaded,
    "http-401": _Closed,
    "https": _Json,
}


def _context(home: Path) -> ssl.SSLContext:
    """A certificate of its own making; it is left as ``certificate.pem`` for those who shall trust it."""
    folder = home / "var"
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    asked = "req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=localhost"
    asked += " -addext subjectAltName=DNS:localhost"
    subprocess.run(
        ["openssl", *asked.split(), "-keyout", str(key), "-out", str(certificate)],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
