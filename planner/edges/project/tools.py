"""Which type checkers and linters a project is set up for, told by its configuration files."""

from __future__ import annotations

import configparser
import tomllib
from typing import TYPE_CHECKING, Any, cast

from planner.planfile.faults import Refused
from planner.planfile.source import read_source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_OWN_FILES = {
    "mypy.ini": "mypy",
    ".mypy.ini": "mypy",
    "pyrightconfig.json": "pyright",
    "tsconfig.json": "tsc",
    "ruff.toml": "ruff",
    ".ruff.toml": "ruff",
    ".flake8": "flake8",
    ".pylintrc": "pylint",
    "pylintrc": "pylint",
    "eslint.config.js": "eslint",
    "eslint.config.mjs": "eslint",
    ".eslintrc.json": "eslint",
    ".eslintrc.js": "eslint",
}
"""Files that only one tool reads."""

_TABLES = {
    "mypy": "mypy",
    "pyright": "pyright",
    "basedpyright": "pyright",
    "ruff": "ruff",
    "black": "black",
    "isort": "isort",
    "pylint": "pylint",
}
"""Tables below ``[tool]`` in ``pyproject.toml``."""

_SECTIONS = {"mypy": "mypy", "flake8": "flake8", "pycodestyle": "pycodestyle", "isort": "isort"}
"""Sections of ``setup.cfg`` and ``tox.ini``."""


def configured_tools(root: Path) -> frozenset[str]:
    """The catalog's names of the tools configured in the root. What cannot be read says nothing."""
    return frozenset(_found(root))


def _found(root: Path) -> Iterator[str]:
    for name, tool in _OWN_FILES.items():
        if (root / name).is_file():
            yield tool
    yield from (_TABLES[name] for name in _tool_tables(root) if name in _TABLES)
    for name in ("setup.cfg", "tox.ini"):
        yield from (_SECTIONS[section] for section in _sections(root / name) if section in _SECTIONS)


def _tool_tables(root: Path) -> list[str]:
    try:
        data = tomllib.loads(read_source(root / "pyproject.toml").text)
    except (Refused, tomllib.TOMLDecodeError, RecursionError):
        return []
    tables: Any = data.get("tool")
    return list(cast("dict[str, Any]", tables)) if isinstance(tables, dict) else []


def _sections(path: Path) -> list[str]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(read_source(path).text)
    except (Refused, configparser.Error):
        return []
    return parser.sections()
