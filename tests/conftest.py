"""Shared by all tests: pytest's own fixture for running pytest on small projects."""

from __future__ import annotations

pytest_plugins = ["pytester"]
