"""Find by convention the tests of a todo that names no criteria."""

from __future__ import annotations

import re
import shlex
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from planner.planfile.project_files import open_regular, source_files
from planner.policy.criteria import pytest_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from planner.model.plan import Todo

MAX_FILES = 50_000
"""How many Python files are looked at under the root."""

_MAX_MAKEFILE = 1024 * 1024
_TEST_WORDS = frozenset(("test", "tests"))
_TARGET = re.compile(r"^([A-Za-z0-9_.][^:=#\t\n]*):(?![=:]?=)", re.MULTILINE)
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")


class Conventions:
    """Find tests under one root. The file system is looked at only when a todo asks."""

    def __init__(self, root: Path, todos: Mapping[str, Todo]) -> None:
        self._root = root
        self._todos = todos

    def command(self, todo: Todo) -> str:
        """Return the test command of a todo without criteria.

        The first of: the test file of a dependency of the same stem (``buffer-impl`` after
        ``buffer-tests``); ``tests/test_{id}.py``; the target ``test-{id}`` of a Makefile; ``{id}_test.py``
        or ``test_{id}.py`` anywhere under the root; else ``tests/test_{id}.py`` though it is not there.
        """
        found = self._of_dependency(todo) or self._in_tests(todo.id)
        if found is None and _folded(todo.id) in self._targets:
            return f"make {shlex.quote(self._targets[_folded(todo.id)])}"
        found = found or self._anywhere(todo.id) or f"tests/test_{_folded(todo.id)}.py"
        return pytest_command(found)

    def _of_dependency(self, todo: Todo) -> str | None:
        stem, _, _ = _folded(todo.id).rpartition("_")
        for dependency in todo.dependencies:
            other, _, last = _folded(dependency).rpartition("_")
            if not stem or other != stem or last not in _TEST_WORDS:
                continue
            tests = self._todos.get(dependency)
            declared = next(_declared_test_files(tests), None) if tests is not None else None
            found = declared or self._in_tests(stem) or self._in_tests(dependency) or self._anywhere(stem)
            if found is not None:
                return found
        return None

    def _in_tests(self, name: str) -> str | None:
        file = self._tests.get(f"test_{_folded(name)}.py")
        return None if file is None else f"tests/{file}"

    def _anywhere(self, name: str) -> str | None:
        folded = _folded(name)
        return self._files.get(f"{folded}_test.py") or self._files.get(f"test_{folded}.py")

    @cached_property
    def _tests(self) -> dict[str, str]:
        try:
            names = sorted(path.name for path in (self._root / "tests").iterdir())
        except OSError:
            return {}
        return {_folded(name): name for name in reversed(names)}

    @cached_property
    def _files(self) -> dict[str, str]:
        """By folded name, the shallowest Python file of that name, relative to the root."""
        found: dict[str, str] = {}
        for path in islice(source_files(self._root), MAX_FILES):
            found.setdefault(_folded(path.rpartition("/")[2]), path)
        return found

    @cached_property
    def _targets(self) -> dict[str, str]:
        """By folded id, the Makefile target ``test-{id}``."""
        for name in _MAKEFILES:
            try:
                with open_regular(self._root / name) as file:
                    text = file.read(_MAX_MAKEFILE).decode("utf-8", "replace")
            except OSError:
                continue
            words = [word for names in _TARGET.findall(text) for word in names.split()]
            return {_folded(word[5:]): word for word in words if _folded(word).startswith("test_")}
        return {}


def _folded(name: str) -> str:
    return name.replace("-", "_")


def _declared_test_files(todo: Todo) -> Iterator[str]:
    if todo.test_file is not None:
        yield todo.test_file
    for artifact in todo.acceptance_criteria.expected_artifacts:
        name = artifact.path.rpartition("/")[2]
        if re.fullmatch(r"test_.*\.py|.*_test\.py", name) and "*" not in name:
            yield artifact.path
    for spec in todo.acceptance_criteria.tests:
        for word in spec.cmd.split():
            file = word.partition("::")[0]
            if file.endswith(".py") and not file.startswith("-"):
                yield file
