"""What the rules want to know of the project that a plan speaks of. Who answers may look at files."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from planner.rules.reading.modules import Naming

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.model.plan import Todo
    from planner.rules.reading.modules import TestModule


class Kind(StrEnum):
    """What lies at a path."""

    FILE = "file"
    FOLDER = "folder"
    MISSING = "missing"
    OUTSIDE = "outside"
    """A symbolic link leads out of the root; or it is a pipe, a socket, a device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestSettings:
    """What the project's pytest settings say, as far as rules ask."""

    __test__ = False

    naming: Naming = Naming()  # noqa: RUF009 - a frozen value
    files: tuple[str, ...] = ("test_*.py", "*_test.py")
    testpaths: tuple[str, ...] = ()
    addopts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Whether a file can be used: ``problem`` says why not; ``is_empty`` that it says nothing."""

    problem: str | None = None
    is_empty: bool = False


class Project(Protocol):
    """Answers about one root. Paths are relative to it, with ``/``."""

    @property
    def settings(self) -> TestSettings: ...

    def kind(self, path: str) -> Kind:
        """What lies there."""
        ...

    def glob_holds(self, pattern: str) -> bool:
        """Whether a file of that glob exists."""
        ...

    def near(self, path: str) -> str | None:
        """An existing path that looks like a missing one."""
        ...

    def module(self, path: str) -> TestModule:
        """A test module or conftest that exists."""
        ...

    def conftests(self, path: str) -> tuple[tuple[str, TestModule], ...]:
        """The conftests that hold for a test file, the nearest first."""
        ...

    def test_files(self, folder: str) -> tuple[tuple[str, ...], bool]:
        """The test files in a folder and below, and whether these are all."""
        ...

    def contract(self, path: str) -> Checked:
        """Whether a file is a contract."""
        ...

    def json_schema(self, path: str) -> Checked:
        """Whether a file is a JSON Schema."""
        ...

    def script(self, path: str) -> str | None:
        """Why running a script that exists proves nothing, or ``None``."""
        ...

    def make_targets(self) -> Mapping[str, str | None] | None:
        """By the target of the Makefile, why making it proves nothing; ``None`` where nobody can tell."""
        ...

    def npm_scripts(self) -> Mapping[str, str] | None:
        """The scripts of ``package.json``; ``None`` where there are none to be read."""
        ...

    def convention_places(self, todo: Todo) -> tuple[str, ...]:
        """Where the tests of a todo without criteria were looked for."""
        ...
