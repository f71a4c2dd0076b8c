"""Answers what the rules of validation ask of a project, by looking at its files: bounded, read once, never
executed, and never outside of the root."""

from __future__ import annotations

import errno
import fnmatch
import json
import os
import stat
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from jsonschema import SchemaError, validators
from pydantic import ValidationError

from planner.edges.project.pytest_settings import read_settings
from planner.model.contract import Contract
from planner.planfile.confinement import is_below
from planner.rules.reading.hollow_code import hollow_script
from planner.rules.reading.make_targets import read_targets
from planner.rules.reading.modules import TestModule, read_tests
from planner.rules.validation.project import Checked, Kind, TestSettings
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from planner.model.plan import Todo

MAX_SOURCE_BYTES = 512 * 1024
"""The size of the largest test file that is read."""

MAX_DATA_BYTES = 4 * 1024 * 1024
"""The size of the largest contract or schema that is read."""

MAX_TOTAL_BYTES = 8 * 1024 * 1024
"""How much is read of all test files together."""

MAX_FILES = 2_000
"""How many test files of one folder are looked at."""

MAX_ENTRIES = 50_000
"""How many entries of folders are looked at, of all folders together."""

MAX_DEPTH = 12
MAX_NEAR = 100
"""After so many missing paths nothing more is guessed."""

_SKIPPED = frozenset(
    ("venv", "node_modules", "__pycache__", "site-packages", "build", "dist", "_darcs", "CVS")
)
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_GONE = (errno.ENOENT, errno.ENOTDIR)


class ProjectFiles:
    """The project below one root, as :class:`planner.rules.validation.project.Project` has it."""

    def __init__(self, root: Path) -> None:
        self._root = os.path.realpath(root)
        self._kinds: dict[str, Kind] = {}
        self._modules: dict[str, TestModule] = {}
        self._conftests: dict[str, tuple[tuple[str, TestModule], ...]] = {}
        self._folders: dict[str, tuple[tuple[str, ...], bool]] = {}
        self._checked: dict[tuple[str, str], Checked] = {}
        self._bytes_left = MAX_TOTAL_BYTES
        self._entries_left = MAX_ENTRIES
        self._near_left = MAX_NEAR

    @property
    def settings(self) -> TestSettings:
        """The project's pytest settings."""
        return self._settings

    def kind(self, path: str) -> Kind:
        """What lies at a path."""
        known = self._kinds.get(path)
        if known is None:
            known = self._kinds[path] = self._look(path)
        return known

    def glob_holds(self, pattern: str) -> bool:
        """Whether a file of that glob exists."""
        try:
            return next(Path(self._root).glob(pattern), None) is not None
        except (OSError, ValueError, NotImplementedError):
            return False

    def near(self, path: str) -> str | None:
        """An existing path beside a missing one that looks like it."""
        self._near_left -= 1
        if self._near_left < 0:
            return None
        folder, _, name = path.rpartition("/")
        if folder and self.kind(folder) is not Kind.FOLDER:
            return None
        try:
            with os.scandir(f"{self._root}/{folder}") as entries:
                names = [entry.name for entry, _ in zip(entries, range(5_000), strict=False)]
        except OSError:
            return None
        found = get_close_matches(name, sorted(names), n=1, cutoff=0.75)
        return f"{folder}/{found[0]}".removeprefix("/") if found else None

    def module(self, path: str) -> TestModule:
        """A test module or conftest that exists."""
        known = self._modules.get(path)
        if known is None:
            known = self._modules[path] = self._read_module(path)
        return known

    def conftests(self, path: str) -> tuple[tuple[str, TestModule], ...]:
        """The conftests that hold for a file, the nearest first."""
        folder = path.rpartition("/")[0]
        known = self._conftests.get(folder)
        if known is None:
            own = f"{folder}/conftest.py".removeprefix("/")
            here = ((own, self.module(own)),) if self.kind(own) is Kind.FILE else ()
            known = self._conftests[folder] = (*here, *(self.conftests(folder) if folder else ()))
        return known

    def test_files(self, folder: str) -> tuple[tuple[str, ...], bool]:
        """The test files in a folder and below, and whether these are all."""
        known = self._folders.get(folder)
        if known is None:
            self._complete = True
            files = tuple(self._walk("" if folder == "." else folder))
            known = self._folders[folder] = (files[:MAX_FILES], self._complete and len(files) <= MAX_FILES)
        return known

    def contract(self, path: str) -> Checked:
        """Whether a file is a contract."""
        return self._check("contract", path, _contract)

    def json_schema(self, path: str) -> Checked:
        """Whether a file is a JSON Schema."""
        return self._check("schema", path, _json_schema)

    def script(self, path: str) -> str | None:
        """Why running a script proves nothing, or ``None``."""
        text, _ = self._text(path, MAX_SOURCE_BYTES)
        return None if text is None else hollow_script(text)

    def make_targets(self) -> Mapping[str, str | None] | None:
        """The targets of the Makefile."""
        return self._targets

    def npm_scripts(self) -> Mapping[str, str] | None:
        """The scripts of ``package.json``."""
        return self._scripts

    def convention_places(self, todo: Todo) -> tuple[str, ...]:
        """Where the tests of a todo without criteria were looked for, the first place first."""
        name = todo.id.replace("-", "_")
        stem = name.rpartition("_")[0]
        of_dependency = [
            f"the tests of '{each}'"
            for each in todo.dependencies
            if stem and each.replace("-", "_").startswith(stem)
        ]
        return (
            *of_dependency[:3],
            f"tests/test_{name}.py",
            f"the target test-{todo.id} of a Makefile",
            f"{name}_test.py and test_{name}.py in any folder",
        )

    def _look(self, path: str) -> Kind:
        try:
            status = os.stat(f"{self._root}/{path}")
        except OSError as error:
            return Kind.MISSING if error.errno in _GONE else Kind.OUTSIDE
        except ValueError:
            return Kind.MISSING
        if not is_below(os.path.realpath(f"{self._root}/{path}"), self._root):
            return Kind.OUTSIDE
        if stat.S_ISDIR(status.st_mode):
            return Kind.FOLDER
        return Kind.FILE if stat.S_ISREG(status.st_mode) else Kind.OUTSIDE

    def _text(self, path: str, most: int) -> tuple[str | None, str]:
        """The text of a file, or ``None`` and why not."""
        if self.kind(path) is not Kind.FILE:
            return None, "it is no regular file below the root"
        try:
            handle = os.open(f"{self._root}/{path}", os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
            with open(handle, "rb") as file:
                data = file.read(most + 1)
        except OSError as error:
            return None, f"it cannot be read ({error.strerror})"
        if len(data) > most:
            return None, f"it is larger than {most // 1024} KiB"
        if b"\0" in data:
            return None, "it is binary"
        try:
            return data.decode("utf-8-sig"), ""
        except UnicodeDecodeError:
            return None, "it is not UTF-8"

    def _read_module(self, path: str) -> TestModule:
        text, problem = self._text(path, MAX_SOURCE_BYTES)
        if text is None:
            # Python reads other encodings that say so, and pytest runs larger files.
            known = "larger" in problem or "UTF-8" in problem
            return TestModule(problem=problem, unexamined=known)
        self._bytes_left -= len(text)
        if self._bytes_left < 0:
            return TestModule(problem="too much was read before it", unexamined=True)
        return read_tests(text, self.settings.naming)

    def _walk(self, folder: str) -> Iterator[str]:
        """The test files below a folder. Links are not followed."""
        level = [folder]
        for _ in range(MAX_DEPTH):
            deeper: list[str] = []
            for each in level:
                for name, is_folder in self._entries(each):
                    path = f"{each}/{name}".removeprefix("/")
                    if is_folder:
                        if (
                            not name.startswith(".")
                            and name not in _SKIPPED
                            and not name.endswith(".egg-info")
                        ):
                            deeper.append(path)
                    elif any(fnmatch.fnmatch(name, pattern) for pattern in self.settings.files):
                        yield path
            level = deeper
        self._complete = self._complete and not level

    def _entries(self, folder: str) -> list[tuple[str, bool]]:
        found: list[tuple[str, bool]] = []
        try:
            with os.scandir(f"{self._root}/{folder}") as entries:
                for entry in entries:
                    self._entries_left -= 1
                    if self._entries_left < 0:
                        self._complete = False
                        break
                    if entry.is_dir(follow_symlinks=False):
                        found.append((entry.name, True))
                    elif entry.is_file(follow_symlinks=False):
                        found.append((entry.name, False))
        except OSError:
            self._complete = False
        return sorted(found)

    def _check(self, sort: str, path: str, judge: Callable[[Any], Checked]) -> Checked:
        known = self._checked.get((sort, path))
        if known is None:
            known = self._checked[sort, path] = self._judge(path, judge)
        return known

    def _judge(self, path: str, judge: Callable[[Any], Checked]) -> Checked:
        text, problem = self._text(path, MAX_DATA_BYTES)
        if text is None:
            return Checked(problem=problem)
        try:
            return judge(json.loads(text))
        except ValueError as error:
            return Checked(problem=f"it is no JSON: {error}")
        except RecursionError:
            return Checked(problem="it is nested too deeply")

    @cached_property
    def _settings(self) -> TestSettings:
        return read_settings(lambda name: self._text(name, MAX_SOURCE_BYTES)[0])

    @cached_property
    def _targets(self) -> Mapping[str, str | None] | None:
        for name in _MAKEFILES:
            if self.kind(name) is Kind.FILE:
                text, _ = self._text(name, MAX_SOURCE_BYTES)
                return None if text is None else read_targets(text)
        return None

    @cached_property
    def _scripts(self) -> Mapping[str, str] | None:
        text, _ = self._text("package.json", MAX_SOURCE_BYTES)
        try:
            document: Any = json.loads(text) if text is not None else None
        except (ValueError, RecursionError):
            return None
        if not isinstance(document, dict):
            return None
        scripts = cast("dict[str, Any]", document).get("scripts", {})
        if not isinstance(scripts, dict):
            return None
        named = cast("dict[str, Any]", scripts)
        return {name: script for name, script in named.items() if isinstance(script, str)}


def _contract(document: Any) -> Checked:
    try:
        contract = Contract.model_validate(document)
    except ValidationError as error:
        return Checked(problem=_first_errors(error))
    for schema in contract.schemas:
        checked = _json_schema(schema)
        if checked.problem is not None:
            return Checked(problem=f"one of its schemas is none: {checked.problem}")
    return Checked(is_empty=contract.is_empty)


def _first_errors(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_input=False, include_context=False)
    said = [
        f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}".removeprefix(": ") for detail in details[:3]
    ]
    more = f" (and {len(details) - 3} more)" if len(details) > 3 else ""
    return clean("; ".join(said), limit=400) + more


def _json_schema(document: Any) -> Checked:
    if not isinstance(document, dict | bool):
        return Checked(problem="a JSON Schema is an object")
    try:
        validators.validator_for(cast("Any", document)).check_schema(cast("Any", document))
    except SchemaError as error:
        return Checked(problem=clean(f"it is no JSON Schema: {error.message}", limit=400))
    return Checked()
