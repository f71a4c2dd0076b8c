"""The card terminal, a service in the shop's network."""

from __future__ import annotations

import socket

ADDRESS = ("127.0.0.1", 1)
"""Address of the terminal; on an ordinary machine nothing listens there."""


def connect() -> socket.socket:
    """Return a connection to the terminal."""
    return socket.create_connection(ADDRESS, timeout=1)


def hello(connection: socket.socket) -> bytes:
    """Return the name that the terminal reports."""
    connection.sendall(b"HELLO\n")
    return connection.recv(100)
