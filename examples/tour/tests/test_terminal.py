"""The card terminal."""

from __future__ import annotations

import pytest

from shop.terminal import connect, hello


@pytest.fixture
def terminal():
    with connect() as connection:
        yield connection


def test_the_terminal_answers(terminal):
    assert hello(terminal).startswith(b"TERMINAL")
