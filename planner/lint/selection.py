"""Which tests a pytest command selects, as far as reading files tells."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING

from planner.lint.project import Kind
from planner.lint.sources import PytestSettings, TestModule, read_module, read_settings
from planner.text.glob_patterns import matches, plain

if TYPE_CHECKING:
    from planner.catalog import PytestInvocation
    from planner.lint.project import Project
    from planner.lint.sources import TestFunction

MAX_GUESSES = 50

_READS_OTHERWISE = frozenset({"--pyargs", "--doctest-modules", "--doctest-glob", "-c", "--rootdir"})


@dataclass(slots=True)
class Selected:
    """What one command selects."""

    tests: dict[tuple[str, str], TestFunction] = field(
        default_factory=dict["tuple[str, str]", "TestFunction"]
    )
    """By file and name."""
    certain: bool = True
    """Whether these are all, and no option leaves any of them out."""
    files: list[str] = field(default_factory=list[str])
    """The test files that exist, whether or not something is selected in them."""
    missing_files: list[str] = field(default_factory=list[str])
    missing_tests: list[tuple[str, str, str | None]] = field(
        default_factory=list["tuple[str, str, str | None]"]
    )
    """File, name, and the name that was probably meant."""
    broken: list[str] = field(default_factory=list[str])
    """Files that cannot be parsed, each with the line and what is wrong there."""
    empty: list[str] = field(default_factory=list[str])
    """Selected files and folders without any test."""

    @property
    def sound(self) -> bool:
        """Whether everything that is selected was found and read."""
        return self.certain and not (self.missing_files or self.missing_tests or self.broken)


class Selector:
    """Answers for the commands of one plan; equal selections are worked out once."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._selected: dict[tuple[object, ...], Selected] = {}
        self._modules: dict[str, TestModule] = {}
        self._conftests: dict[str, tuple[str, ...]] = {}
        self._folders: dict[str, tuple[tuple[str, ...], bool]] = {}
        self._guesses = 0

    @cached_property
    def settings(self) -> PytestSettings:
        """The project's pytest settings."""
        return read_settings(self.project.text)

    def module(self, path: str) -> TestModule:
        """Return what reading a Python file tells; nothing for sure where it cannot be read."""
        known = self._modules.get(path)
        if known is None:
            text = self.project.text(path)
            known = TestModule(open_ended=True) if text is None else read_module(text, self.settings)
            self._modules[path] = known
        return known

    def conftests(self, path: str) -> tuple[str, ...]:
        """Return the conftests that hold for a file, the nearest first."""
        folder = path.rpartition("/")[0]
        known = self._conftests.get(folder)
        if known is None:
            own = f"{folder}/conftest.py".removeprefix("/")
            here = (own,) if self.project.kind(own) is Kind.FILE else ()
            known = self._conftests[folder] = (*here, *(self.conftests(folder) if folder else ()))
        return known

    def of(self, command: PytestInvocation) -> Selected:
        """Return what a pytest command selects. What ``-k`` and ``-m`` leave of it only pytest knows."""
        narrowed = bool(command.keyword or command.markexpr or command.deselect)
        otherwise = command.guessed or any(
            word.partition("=")[0] in _READS_OTHERWISE for word in command.args
        )
        key = (command.selections, narrowed, otherwise)
        known = self._selected.get(key)
        if known is None:
            known = self._selected[key] = self._select(command)
            if otherwise:
                # What looks like a path may be the value of an option, a package, or relative to elsewhere.
                known.missing_files, known.missing_tests, known.empty = [], [], []
            known.certain = known.certain and not (narrowed or otherwise)
        return known

    def _select(self, command: PytestInvocation) -> Selected:
        selected = Selected()
        for place in command.selections or self.settings.testpaths or (".",):
            path, _, name = place.partition("::")
            path = plain(path)
            kind = self.project.kind(path)
            if kind is Kind.FILE:
                self._add_file(path, name.partition("[")[0], selected)
            elif kind is Kind.FOLDER:
                files, complete = self._test_files(path)
                selected.certain = selected.certain and complete
                if not files and complete:
                    selected.empty.append(path)
                for file in files:
                    self._add_file(file, "", selected)
            elif kind is Kind.MISSING:
                selected.missing_files.append(path)
            else:
                selected.certain = False
        return selected

    def _test_files(self, folder: str) -> tuple[tuple[str, ...], bool]:
        known = self._folders.get(folder)
        if known is None:
            files, complete = self.project.files(folder)
            named = (file for file in files if any(matches(file, each) for each in self.settings.files))
            known = self._folders[folder] = (tuple(named), complete)
        return known

    def _add_file(self, path: str, name: str, selected: Selected) -> None:
        if not path.endswith(".py"):
            selected.certain = False
            return
        module = self.module(path)
        selected.files.append(path)
        for file in (path, *self.conftests(path)):
            problem = self.module(file).problem
            if problem is not None and f"{file}:{problem}" not in selected.broken:
                selected.broken.append(f"{file}:{problem}")
        tests = [test for test in module.tests if not name or test == name or test.startswith(f"{name}::")]
        selected.tests.update({(path, test): module.tests[test] for test in tests})
        if module.open_ended:
            selected.certain = False
        elif not module.tests and module.problem is None:
            selected.empty.append(path)
        elif not tests and module.problem is None:
            self._guesses += 1
            names = list(module.tests)[:2_000] if self._guesses < MAX_GUESSES else []
            selected.missing_tests.append((path, name, next(iter(get_close_matches(name, names, 1)), None)))
