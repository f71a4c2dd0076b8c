"""A plugin that writes the reports of a session to the file in ``PLANVERIFY_RELAY``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_planverify.observe import relay

VARIABLE = "PLANVERIFY_RELAY"


def pytest_configure(config: pytest.Config) -> None:
    relay.register(config, Path(os.environ[VARIABLE]))
