"""Files of a plan's root: a snapshot that is comparable with a baseline, and their kinds.

A protected file (:class:`JudgeKind` other than product) decides whether a criterion passes: plans, tests,
conftests, configuration, contracts, test data. Its changes are reported instead of accepted silently.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from planner.catalog.test_paths import is_test_module
from planner.model.baseline import JudgeKind
from planner.planfile.project_files import is_cache_or_report, walk
from planner.text.glob_patterns import is_glob, matches, plain
from pytest_planverify.baseline.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Set
    from pathlib import Path

    from planner.planfile.tree import FlatPlan

MOST_FILES = 50_000
"""Limit of files; protected files (tests, conftests, configuration) are included first."""

LARGEST_BYTES = 64 << 20
"""Limit in bytes; larger files are treated as unreadable."""

CONFIGURATIONS = frozenset(
    {"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "pyproject.toml", "tox.ini", "setup.cfg"}
)
"""pytest's configuration files."""

START_UP = frozenset({"sitecustomize.py", "usercustomize.py"})
"""Modules that every interpreter imports at start, so that they can change any test run."""

_JUDGING_NAME = re.compile(r"conftest\.py$|test_.*\.py$|.*_test\.py$|.*\.pth$")


class Snapshot(Protocol):
    """The files of a tree at one time, by path relative to the plan's root."""

    def digests(self) -> Mapping[str, str]:
        """Return the SHA-256 of every file by path, in hexadecimal."""
        ...

    def read(self, path: str) -> bytes | None:
        """Return the content of a file; ``None`` if missing or unreadable."""
        ...


class WorkTree:
    """Snapshot of the files on disk. Paths and digests are determined on first use and then cached.

    Under git: tracked and non-ignored files, also of submodules; protected files such as conftests are
    included even if ignored. Elsewhere: all files outside of caches and virtual environments. Configuration
    files and conftests of folders above, up to the repository's top or pytest's rootdir, appear as
    ``../conftest.py``. The content of a symbolic link is its target; links are not followed.
    """

    def __init__(self, root: Path, repository: Repository | None = None) -> None:
        """Create a snapshot; ``repository`` is the one around the root, if it is known already."""
        self._root = root
        self._repository = repository

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """All paths, sorted."""
        # Beyond the limit a product file is rather left out than a file that may decide verdicts.
        found = sorted(set(self._listed()), key=lambda path: (not may_judge(path), path))
        return tuple(sorted(found[:MOST_FILES]))

    def digests(self) -> Mapping[str, str]:
        """Return the SHA-256 of every readable file by path, in hexadecimal."""
        return self._digests

    @cached_property
    def _digests(self) -> Mapping[str, str]:
        digests = ((path, digest(self.read(path))) for path in self.paths)
        return {path: each for path, each in digests if each is not None}

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, for a link its target; ``None`` if missing or unreadable."""
        # Outside of the root only the listed configuration may be read.
        if os.path.isabs(path) or ("../" in path and path not in self.paths):
            return None
        return _content(os.path.join(self._root, path))

    def _listed(self) -> Iterator[str]:
        """Yield the paths, some of them twice."""
        yield from above(self._root)
        repository = self._repository or Repository.around(self._root)
        kinds = ("--cached", "--others", "--exclude-standard")
        tracked = () if repository is None else repository.files(*kinds)
        for path in tracked:
            name = path.rstrip("/")
            if path == name and not _is_folder(self._root / name):
                if not is_cache_or_report(path):
                    yield path
            # A folder is listed for a submodule, or with a trailing slash for an untracked repository.
            elif (self._root / name / ".git").exists():
                inside = (f"{name}/{each}" for each in walk(self._root / name))
                yield from (each for each in inside if not each.endswith("/.git"))
        # Under git only for protected files that are ignored.
        for path in walk(self._root):
            if not tracked or may_judge(path):
                yield path


def digest(content: bytes | None) -> str | None:
    """Return the SHA-256 of a content in hexadecimal, ``None`` for that of a missing file."""
    return hashlib.sha256(content).hexdigest() if content is not None else None


def above(root: Path) -> Iterator[str]:
    """Yield configuration files and conftests of the folders above, such as ``../conftest.py``.

    Up to the top of the repository; without one, up to the folder of the nearest configuration file.
    """
    if (root / ".git").exists():
        return
    found: list[str] = []
    prefix = ""
    # pytest searches the folders above for its configuration, and loads their conftests.
    for folder in root.parents:
        prefix += "../"
        names = [name for name in (*CONFIGURATIONS, "conftest.py") if (folder / name).is_file()]
        found += [f"{prefix}{name}" for name in sorted(names)]
        if (folder / ".git").exists():
            yield from found
            return
    # Without a repository, stop at pytest's rootdir, the folder of the nearest configuration.
    nearest = next((path for path in found if not path.endswith("conftest.py")), None)
    if nearest is not None:
        depth = nearest.count("../")
        yield from (path for path in found if path.count("../") <= depth)


def may_judge(path: str) -> bool:
    """Return whether a file may influence verdicts, by its name alone."""
    name = path.rpartition("/")[2]
    return name in CONFIGURATIONS or name in START_UP or _JUDGING_NAME.match(name) is not None


def _is_folder(place: Path) -> bool:
    """Return whether a path is a folder and no link to one."""
    try:
        return stat.S_ISDIR(os.lstat(place).st_mode)
    except OSError:
        return False


def _content(path: str) -> bytes | None:
    """Return the content of a regular file or the target of a link; ``None`` for anything else."""
    try:
        facts = os.lstat(path)  # which does not follow a link, perhaps out of the root
        if stat.S_ISLNK(facts.st_mode):
            return os.fsencode(os.readlink(path))
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST_BYTES:
            return None
        with open(path, "rb", buffering=0) as file:
            return file.readall()
    except OSError:
        return None


# -- kinds of files ------------------------------------------------------------------------------------

_PROSE = (".md", ".rst", ".txt")
_TEST_FOLDER = re.compile(r"_?(?:\w+[_-])?tests?(?:[_-]\w+)?")
_DATA_FOLDER = re.compile(r"fixtures?|test[_-]?data|golden|snapshots|__snapshots__|cassettes|expected")
_SOURCES = frozenset({".py", ".pyi", ".pyx", ".js", ".ts", ".tsx", ".jsx", ".mjs", ".cjs", ".go", ".rs"})
"""Suffixes of source files; in test folders they are test support, elsewhere product."""
_PLUGINS = re.compile(rb"""pytest_plugins\s*(?::[^=\n]{0,200})?=\s*([\[({][^\])}]*|[^\n]*)""")
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
    """Return the facts that classify a tree's files, from plan, collected tests and configuration.

    ``tests`` are node ids. Paths of sub-plans are made relative to the root of the top plan.
    """
    root = flat.loaded.root
    doctests, files = set[str](), set[str]()
    for nodeid in tests:
        (doctests if _is_doctest(nodeid, tree) else files).add(nodeid.partition("::")[0])
    contracts: set[str] = set()
    data: set[str] = set()
    artifacts: dict[str, None] = {}
    for todo in flat.loaded.plan.items:
        above = os.path.relpath(flat.owner(todo.id).root, root)
        if todo.contract_path is not None:
            contracts.add(_joined(above, todo.contract_path))
        criteria = todo.acceptance_criteria
        read = (
            *(command.fixture for command in criteria.tests),
            *(each.json_schema for each in criteria.expected_artifacts),
        )
        data |= {_joined(above, path) for path in read if path is not None}
        artifacts |= {_joined(above, each.path): None for each in criteria.expected_artifacts}
    return Judges(
        tests=frozenset(files),
        plans=frozenset(os.path.relpath(part.path, root) for part in flat.parts),
        contracts=frozenset(contracts),
        data=frozenset(data),
        artifacts=tuple(artifacts),
        test_folders=tuple(
            each for each in _test_paths(tree) if _holds_tests(f"{each}/", tree, files, doctests)
        ),
        plugins=frozenset(_plugins(tree)),
    )


def _joined(above: str, path: str) -> str:
    """Return a path below a sub-plan's root ``above``, relative to the top plan's root."""
    return plain(path) if above == "." else os.path.normpath(f"{above}/{path}")


def _is_doctest(nodeid: str, tree: Snapshot) -> bool:
    """Return whether a test is an example in a docstring of a Python module, which may be product."""
    path, _, name = nodeid.partition("::")
    if not path.endswith(".py"):
        return False
    if "." in name.partition("[")[0]:  # pytest writes dotted names for nothing else
        return True
    # The examples at the top of a module have its name, as a test in it may have.
    is_named_so = f"/{path}".endswith(f"/{name}.py")
    defines = rf"\b(def|class)\s+{re.escape(name)}\b".encode()
    return is_named_so and not re.search(defines, tree.read(path) or b"")


def _holds_tests(start: str, tree: Snapshot, tests: Collection[str], doctests: Set[str]) -> bool:
    """Return whether a folder of ``testpaths`` is one of tests; others are listed for their doctests.

    Of a folder with doctests, at least half of the modules must be tests. ``start`` is the folder's path
    with a slash. Folders of tests inside a package are recognized by their own names.
    """
    modules = [
        path
        for path in tree.digests()
        if path.startswith(start)
        and path.endswith(".py")
        and path.rpartition("/")[2] not in ("__init__.py", "conftest.py")
        and not any(map(_TEST_FOLDER.fullmatch, path.removeprefix(start).split("/")[:-1]))
    ]
    if not modules:  # tests in other files than modules, or a manual
        return any(path.startswith(start) and not path.endswith(_PROSE) for path in tests)
    count = sum(path in tests or is_test_module(path) for path in modules)
    return count > 0 and (doctests.isdisjoint(modules) or 2 * count >= len(modules))


def _test_paths(tree: Snapshot) -> tuple[str, ...]:
    """Return the configured ``testpaths``, except the root itself."""
    words = words_of_setting(tree, "testpaths")
    found = dict.fromkeys(plain(word) for word in words if re.fullmatch(r"[\w.][\w./-]*", word))
    return tuple(folder for folder in found if folder not in (".", ""))


def words_of_setting(tree: Snapshot, name: str) -> Iterator[str]:
    """Yield the words of a setting of pytest that is a list, from all files that may configure pytest."""
    # One pattern for INI and TOML alike.
    setting = re.compile(rf"^{name}\s*=\s*((?:.|\n[ \t\]])*)", re.MULTILINE)
    for path in sorted(CONFIGURATIONS):
        text = (tree.read(path) or b"").decode("utf-8", "replace")
        for found in setting.finditer(text):
            yield from filter(None, re.split(r"[\s,\"'\[\]=]+", found[1].split("\n\n")[0]))


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
