"""Classification of files by their role in verdicts: product, or one of the kinds of protected files.

A protected file (:class:`JudgeKind` other than product) decides whether a criterion passes: plans, tests,
conftests, configuration, contracts, test data. Its changes are reported instead of accepted silently.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.catalog.test_paths import is_test_module
from planner.model.baseline import JudgeKind
from planner.text.glob_patterns import is_glob, matches, plain
from pytest_planverify.baseline.work_tree import CONFIGURATIONS, START_UP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.model.plan import Todo
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline.work_tree import Snapshot

_TEST_FOLDER = re.compile(r"_?(?:\w+[_-])?tests?(?:[_-]\w+)?")
_DATA_FOLDER = re.compile(r"fixtures?|test[_-]?data|golden|snapshots|__snapshots__|cassettes|expected")
_SOURCES = frozenset({".py", ".pyi", ".pyx", ".js", ".ts", ".tsx", ".jsx", ".mjs", ".cjs", ".go", ".rs"})
"""Suffixes of source files; in test folders they are test support, elsewhere product."""
_PLUGINS = re.compile(rb"""pytest_plugins\s*(?::[^=\n]*)?=\s*([\[({][^\])}]*|[^\n]*)""")
"""An assignment to ``pytest_plugins``: a string, or a bracketed list of several lines."""
_PLUGIN_OPTION = re.compile(rb"""(?:^|[\s"'=\[])-p[\s"',=]*([\w.]+)(?![\w.:])""")
"""``-p module`` in ``addopts``, but not ``-p no:module``."""
_QUOTED = re.compile(rb"""["']([\w.]+)["']""")
_MOST_SOURCE_BYTES = 1 << 20
"""Bytes of each file that are searched for plugins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judges:
    """Facts of a tree, beyond file names, that determine a file's kind. Paths are relative to the root."""

    tests: frozenset[str] = frozenset()
    """Files from which tests were collected."""
    plans: frozenset[str] = frozenset()
    """Plan files, with those of sub-plans."""
    contracts: frozenset[str] = frozenset()
    data: frozenset[str] = frozenset()
    """Data files of criteria, and schemas of artifacts."""
    artifacts: tuple[str, ...] = ()
    """Paths and globs of expected artifacts."""
    test_folders: tuple[str, ...] = ()
    """``testpaths`` of pytest's configuration."""
    plugins: frozenset[str] = frozenset()
    """Files of modules named by ``pytest_plugins`` or ``-p``."""

    def kind_of(self, path: str) -> JudgeKind:
        """Return the kind of a file; product if no rule matches. The first matching rule decides."""
        folder, _, name = path.rpartition("/")
        suffix = os.path.splitext(name)[1].lower()
        # What the plan and pytest state comes before guesses by the names of folders.
        for kind, is_so in (
            (JudgeKind.PLAN, path in self.plans),
            (JudgeKind.CONFTEST, name == "conftest.py"),
            (JudgeKind.START_UP, name in START_UP or suffix == ".pth"),
            (JudgeKind.CONFIG, name in CONFIGURATIONS),
            (JudgeKind.CONTRACT, path in self.contracts),
            (JudgeKind.TEST, path in self.tests or is_test_module(name)),
            (JudgeKind.FIXTURE, path in self.data),
            (JudgeKind.TEST_SUPPORT, path in self.plugins),
            # Source code that the work has to write is product, though the plan expects the file.
            (JudgeKind.ARTIFACT, suffix not in _SOURCES and self._is_artifact(path)),
        ):
            if is_so:
                return kind
        parts = [part for part in folder.split("/") if part]
        of_tests = any(_TEST_FOLDER.fullmatch(part) for part in parts) or any(
            path.startswith(f"{each}/") for each in self.test_folders
        )
        if suffix in _SOURCES:
            return JudgeKind.TEST_SUPPORT if of_tests else JudgeKind.PRODUCT
        if of_tests or any(_DATA_FOLDER.fullmatch(part) for part in parts):
            return JudgeKind.FIXTURE
        return JudgeKind.PRODUCT

    def _is_artifact(self, path: str) -> bool:
        """Return whether a path is an expected artifact, by name or glob."""
        return any(path == each or (is_glob(each) and matches(path, each)) for each in self.artifacts)


def judges_of(flat: FlatPlan, tests: Iterable[str], tree: Snapshot) -> Judges:
    """Return the facts that classify a tree's files, from plan, collected test files and configuration.

    ``tests`` are the files from which tests were collected. Paths of sub-plans are made relative to the
    root of the top plan.
    """
    root = flat.loaded.root
    contracts: set[str] = set()
    data: set[str] = set()
    artifacts: dict[str, None] = {}
    for todo in flat.loaded.plan.items:
        above = os.path.relpath(flat.owner(todo.id).root, root)
        if todo.contract_path is not None:
            contracts.add(_joined(above, todo.contract_path))
        data |= {_joined(above, path) for path in _data_of(todo)}
        artifacts |= {
            _joined(above, each.path): None for each in todo.acceptance_criteria.expected_artifacts
        }
    return Judges(
        tests=frozenset(tests),
        plans=frozenset(os.path.relpath(part.path, root) for part in flat.parts),
        contracts=frozenset(contracts),
        data=frozenset(data),
        artifacts=tuple(artifacts),
        test_folders=_test_folders(tree),
        plugins=frozenset(_plugins(tree)),
    )


def _data_of(todo: Todo) -> Iterable[str]:
    """Yield the files that a todo's criteria read: data and schemas."""
    for command in todo.acceptance_criteria.tests:
        if command.fixture is not None:
            yield command.fixture
    for artifact in todo.acceptance_criteria.expected_artifacts:
        if artifact.json_schema is not None:
            yield artifact.json_schema


def _joined(above: str, path: str) -> str:
    """Return a path below a sub-plan's root ``above``, relative to the top plan's root."""
    return plain(path) if above == "." else os.path.normpath(f"{above}/{path}")


def _test_folders(tree: Snapshot) -> tuple[str, ...]:
    """Return the configured ``testpaths``, except the root itself."""
    found: dict[str, None] = {}
    # One pattern for INI and TOML alike.
    for name in sorted(CONFIGURATIONS):
        text = (tree.read(name) or b"").decode("utf-8", "replace")
        for line in re.finditer(r"^testpaths\s*=\s*((?:.|\n[ \t\]])*)", text, re.MULTILINE):
            words = re.split(r"[\s,\"'\[\]=]+", line[1].split("\n\n")[0])
            found |= {plain(word): None for word in words if re.fullmatch(r"[\w.][\w./-]*", word)}
    return tuple(folder for folder in found if folder not in (".", ""))


def _plugins(tree: Snapshot) -> Iterable[str]:
    """Yield the files of plugin modules named by configuration, conftests and tests."""
    paths = tree.digests()
    for path in paths:
        name = path.rpartition("/")[2]
        is_configuration = name in CONFIGURATIONS
        if not is_configuration and name != "conftest.py" and not is_test_module(name):
            continue
        content = (tree.read(path) or b"")[:_MOST_SOURCE_BYTES]
        for found in (_PLUGIN_OPTION if is_configuration else _PLUGINS).findall(content):
            for module in [found] if is_configuration else _QUOTED.findall(found):
                file = module.decode().replace(".", "/")
                # With the slash, so that ``plugin`` is not taken for ``myplugin.py``.
                ends = (f"/{file}.py", f"/{file}/__init__.py")
                yield from (each for each in paths if f"/{each}".endswith(ends))
