"""The card terminal, a service in the shop's network."""

from __future__ import annotations

import socket

ADDRESS = ("127.0.0.1", 1)
"""Where the terminal is; on an ordinary machine nothing listens there."""


def connect() -> socket.socket:
    """A connection to the terminal."""
    return socket.create_connection(ADDRESS, timeout=1)


def hello(connection: socket.socket) -> bytes:
    """What the terminal calls itself."""
    connection.sendall(b"HELLO\n")
    return connection.recv(100)
