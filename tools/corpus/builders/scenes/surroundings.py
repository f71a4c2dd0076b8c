"""The environment of a project: variables, packages, programs, permissions, and listening services."""

from __future__ import annotations

import http.server
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scenes.scene import STAND_INS, Machine

Answer = Callable[[socket.socket], None]


@contextmanager
def listening(name: str | None, port: int, home: Path) -> Iterator[None]:
    """Run the service of this name on the port; nothing if the name is ``None``."""
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
    """Return whether nothing listens on the port."""
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
    """Answer each line with ``+`` and the line."""
    client.sendall(b"+ready\n")
    for line in client.makefile("rb"):
        client.sendall(b"+" + line)


def _hangs(client: socket.socket) -> None:
    """Receive everything and answer nothing."""
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
        """Log nothing."""


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
    """Return a context with a self-signed certificate, stored as ``certificate.pem`` for clients."""
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


USER = 64_123
"""Id of an ordinary user without other processes, as limits of processes count by user."""

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True)
class Around:
    """A machine that is set up."""

    python: Path
    """Starts the interpreter in it."""
    variables: Mapping[str, str]
    plugins: tuple[str, ...]


@contextmanager
def around(project: Path, machine: Machine, port: int, named: Callable[[str], str]) -> Iterator[Around]:
    """Set up the machine for one run. Namespaces and limits end with the processes of the run."""
    home = project.parent / "venv"
    shutil.rmtree(home, ignore_errors=True)
    folders = {
        "SITE": home / "lib/python3/site-packages",
        "BIN": home / "tools",
        "VAR": home / "var",
        "PROJECT": project,
        "PYTHON": Path(sys.executable),
    }
    for name in ("SITE", "BIN", "VAR"):
        folders[name].mkdir(parents=True)
    words = {name: str(folder) for name, folder in folders.items()}

    def said(text: str) -> str:
        for word, meaning in words.items():
            text = text.replace(word, meaning)
        return named(text)

    for name in machine.installed:
        for path, text in STAND_INS[name].items():
            _write(folders["SITE"] / path, text)
    for name, text in machine.programs.items():
        _write(folders["BIN"] / name, f"#!/bin/sh\n{text}\n", mode=0o755)
    variables = {"PATH": f"{folders['BIN']}:{SYSTEM_PATH}", "HOME": str(Path.home()), "LANG": "C.UTF-8"}
    variables["PYTHONPATH"] = str(folders["SITE"])
    variables |= {named(name): said(value) for name, value in machine.variables.items()}
    launcher = home / "bin" / "python"
    _write(launcher, _launcher(machine, said(machine.before), project), mode=0o755)
    if machine.user:
        _give(project.parent, USER)
    with listening(machine.service, port, home):
        yield Around(launcher, variables, machine.plugins)
    if machine.user:
        _give(project.parent, os.getuid())


def possible(machine: Machine) -> bool:
    """Return whether this machine can be set up here."""
    if (machine.user or machine.apart) and os.getuid() != 0:
        return False
    if machine.apart:
        tried = subprocess.run(
            ["unshare", *machine.apart.split(), "true"], capture_output=True, check=False
        )
        return tried.returncode == 0
    return True


def _launcher(machine: Machine, lines: str, project: Path) -> str:
    started = f'exec {sys.executable} "$@"'
    if machine.user:
        rights = "--inh-caps=+dac_read_search --ambient-caps=+dac_read_search"
        started = (
            f'exec setpriv --reuid {USER} --regid {USER} --clear-groups {rights} {sys.executable} "$@"'
        )
    if not machine.apart:
        return f"#!/bin/sh\n{lines}\n{started}\n"
    inner = project.parent / "venv" / "bin" / "inside"
    _write(inner, f"#!/bin/sh\n{lines}\n{started}\n", mode=0o755)
    return f'#!/bin/sh\nexec unshare {machine.apart} {inner} "$@"\n'


def _write(path: Path, text: str, *, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


def _give(folder: Path, user: int) -> None:
    subprocess.run(["chown", "-R", f"{user}:{user}", str(folder)], check=True)
