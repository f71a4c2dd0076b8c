"""What a repository offers to verify: its tests, and the checks that its own configuration runs.

Everything is read, nothing is run. Of the commands of tox, nox, CI, make and pre-commit those count that
the catalog accepts as proof; one for each tool, the first that is found.
"""

from __future__ import annotations

import ast
import configparser
import re
import shlex
import shutil
import sys
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import yaml

from planner.catalog.commands import Command, parse_command
from planner.catalog.tools import Purpose
from planner.errors import CommandSyntaxError
from planner.planfile.discovery import project_root
from planner.planfile.project_files import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST_READ = 512 * 1024
MOST_TEST_TODOS = 10
"""More test files than these are grouped by their folders."""

_NOT_TESTS = frozenset(
    {"fixtures", "data", "testdata", "templates", "build", "dist", "node_modules", "venv"}
)
_TEST_FILES = ("test_*.py", "*_test.py")
_ROOT_TEST_FILES = ("test.py", "tests.py")
_DEFINES_TESTS = re.compile(
    r"^\s*(?:async\s+)?def test|^class \w*Test|^\s*class \w+\(.*TestCase", re.MULTILINE
)

_OF_TABLES = (
    ("ruff", "ruff check ."),
    ("mypy", "mypy ."),
    ("pyright", "pyright"),
    ("basedpyright", "basedpyright"),
    ("black", "black --check ."),
    ("isort", "isort --check ."),
)
"""Tables of ``[tool]`` in ``pyproject.toml``, and what they configure."""

_OF_HOOKS = {
    "ruff": "ruff check .",
    "ruff-check": "ruff check .",
    "ruff-format": "ruff format --check .",
    "black": "black --check .",
    "isort": "isort --check .",
    "flake8": "flake8",
    "mypy": "mypy .",
    "pyright": "pyright",
}
"""Hooks of pre-commit by their ids; pre-commit itself would also mend what it finds."""

_OF_FILES = (
    ("Cargo.toml", "cargo test"),
    ("go.mod", "go test ./..."),
    ("package.json", "npm test"),
)
"""Where no tests of Python are found, how those of another language are run."""

_RUN_OTHERS = frozenset({"tox", "nox", "pre-commit"})
"""What these run stands in their own configuration."""

_MAKE_TARGETS = re.compile(
    r"^(lint|style|typecheck|type-check|types|mypy|check-format|format-check)\s*:(?!=)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TestGroup:
    """Tests that make one todo."""

    __test__ = False

    name: str
    """A word for an id: ``parser``."""
    shown: str
    """The file or folder."""
    cmd: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCheck:
    """A command that the repository uses to check itself."""

    cmd: str
    source: str
    """The file that names it."""
    purpose: Purpose
    tool: str
    is_installed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """What was found below a folder."""

    folder: Path
    name: str
    tests: tuple[TestGroup, ...]
    test_files: int
    checks: tuple[FoundCheck, ...]
    sources: tuple[str, ...]
    """Patterns of product code, as far as it is known."""


def read_repository(folder: Path) -> Repository:
    """Read what the repository in a folder offers to verify."""
    pyproject = _toml(folder / "pyproject.toml")
    files = _test_files(folder)
    checks = tuple(_checks(folder, pyproject, with_tests=not files))
    return Repository(
        folder=folder,
        name=str(_get(pyproject, "project", "name") or folder.name or "project"),
        tests=tuple(_grouped(files, _runner(folder, files))),
        test_files=len(files),
        checks=checks,
        sources=tuple(_sources(folder)),
    )


def accepted(cmd: str) -> Command | None:
    """Return the command where the catalog accepts it as the proof of something."""
    try:
        return parse_command(cmd)
    except CommandSyntaxError:
        return None


# --- tests


def _test_files(folder: Path) -> list[str]:
    """Return the files in which pytest would find tests, sorted."""
    settings = project_root(folder).settings
    patterns = _words(settings.get("python_files")) or _TEST_FILES
    places = [place.strip("/") for place in _words(settings.get("testpaths"))]
    found: list[str] = []
    for path in walk(folder):
        *parents, name = path.split("/")
        if not name.endswith(".py") or any(each in _NOT_TESTS or each.startswith(".") for each in parents):
            continue
        if not any(fnmatch(name, pattern) for pattern in patterns) and path not in _ROOT_TEST_FILES:
            continue
        if places and not any(path == place or path.startswith(f"{place}/") for place in places):
            continue
        if _DEFINES_TESTS.search(_text(folder / path)):
            found.append(path)
    return sorted(found)


def _runner(folder: Path, files: list[str]) -> str:
    """Return how pytest is started: as a module where only that lets the tests import the product.

    pytest itself puts the first folder above a test file on the path that is no package; ``python -m`` adds
    the current one.
    """
    if not files or project_root(folder).settings.get("pythonpath") or (folder / "conftest.py").is_file():
        return "pytest"
    has_flat_product = bool(_packages(folder) or _modules(folder))
    apart = any("/" in each and not (folder / each).with_name("__init__.py").is_file() for each in files)
    return "python -m pytest" if has_flat_product and apart else "pytest"


def _grouped(files: list[str], runner: str) -> Iterator[TestGroup]:
    """Yield a handful of groups: the files themselves, or their folders where there are many."""
    groups: dict[str, list[str]] = {path: [path] for path in files}
    for depth in (8, 4, 3, 2, 1):
        if len(groups) <= MOST_TEST_TODOS:
            break
        groups = {}
        for path in files:
            parents = path.split("/")[:-1][:depth]
            groups.setdefault("/".join(parents) or ".", list[str]()).append(path)
    names = _distinct_names(list(groups))
    for place, members in groups.items():
        yield TestGroup(
            name=names[place], shown=place, cmd=f"{runner} {_selection(place, members, list(groups))}"
        )


def _selection(place: str, members: list[str], places: list[str]) -> str:
    """Return the arguments that select the files of a group, and no others."""
    if members == [place]:
        return shlex.quote(place)
    below = [each for each in places if each != place and (place == "." or each.startswith(f"{place}/"))]
    if not below:
        return shlex.quote(place)
    if len(members) <= MOST_TEST_TODOS:
        return " ".join(map(shlex.quote, members))
    return " ".join([shlex.quote(place), *(f"--ignore={shlex.quote(each)}" for each in below)])


def _distinct_names(places: list[str]) -> dict[str, str]:
    """Return a short name for each file or folder; where two would be alike, more of the path."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for place in sorted(places, key=lambda each: each.count("/")):
        parts = [
            re.sub(r"^test_|_test$|^tests?$", "", part) for part in place.removesuffix(".py").split("/")
        ]
        parts = [part for part in parts if part not in ("", ".")] or ["tests"]
        name = next(
            ("-".join(parts[-n:]) for n in range(1, len(parts) + 1) if "-".join(parts[-n:]) not in taken),
            f"{'-'.join(parts)}-{len(taken)}",
        )
        found[place] = name
        taken.add(name)
    return found


# --- checks


def _checks(folder: Path, pyproject: dict[str, Any], *, with_tests: bool) -> Iterator[FoundCheck]:
    """Yield one command for each tool. Those that run tests count where none were found as files."""
    taken: set[tuple[object, ...]] = set()
    for source, line in _lines(folder, pyproject, with_tests=with_tests):
        found = _check_of(source, line)
        if found is None or (found.purpose is Purpose.TEST and not with_tests):
            continue
        key = (found.tool, found.purpose, " format " in f" {found.cmd} ")
        if found.tool == "make" and any(purpose is found.purpose for _, purpose, _ in taken):
            continue
        if key not in taken:
            taken.add(key)
            yield found


def _check_of(source: str, line: str) -> FoundCheck | None:
    """Return the check that a line of a configuration runs, if it is one."""
    text = " ".join(line.split())
    if not text or re.search(r"[$|<>;`{}*]", text):
        return None
    command = accepted(text)
    if command is None:
        return None
    if not _is_installed(command) and re.match(r"(uv|poetry|pdm|pipenv|rye) run [a-z]", text):
        text = text.split(" run ", 1)[1]  # the tool itself may be there without what starts it
        command = accepted(text)
        if command is None:
            return None
    if command.tool.name in _RUN_OTHERS:
        return None
    return FoundCheck(
        cmd=text,
        source=source,
        purpose=command.tool.purpose,
        tool=command.tool.name,
        is_installed=_is_installed(command),
    )


def _is_installed(command: Command) -> bool:
    program, rest = command.argv[0], command.argv[1:]
    if re.match(r"python3?$", program):
        if rest[:1] != ("-m",):
            return True
        with suppress(ImportError, ValueError):
            return find_spec(rest[1].partition(".")[0]) is not None
        return False
    beside = str(Path(sys.executable).parent)
    return shutil.which(program) is not None or shutil.which(program, path=beside) is not None


def _lines(folder: Path, pyproject: dict[str, Any], *, with_tests: bool) -> Iterator[tuple[str, str]]:
    """Yield every line that may be a command, with the file it stands in, the most explicit files first."""
    for text in _of_tox(_text(folder / "tox.ini")):
        yield "tox.ini", text
    for text in _of_tox(str(_get(pyproject, "tool", "tox", "legacy_tox_ini") or "")):
        yield "pyproject.toml", text
    for text in _of_nox(_text(folder / "noxfile.py")):
        yield "noxfile.py", text
    for path in sorted((folder / ".github/workflows").glob("*.y*ml")):
        for text in _of_workflow(_text(path)):
            yield f".github/workflows/{path.name}", text
    for text in _of_makefile(_text(folder / "Makefile")):
        yield "Makefile", text
    for hook in _of_pre_commit(_text(folder / ".pre-commit-config.yaml")):
        yield ".pre-commit-config.yaml", _OF_HOOKS.get(hook, "")
    for table, cmd in _OF_TABLES:
        if _get(pyproject, "tool", table) is not None:
            yield "pyproject.toml", cmd
    for name, cmd in _OF_FILES if with_tests else ():
        if (folder / name).is_file():
            yield name, cmd


def _of_tox(text: str) -> Iterator[str]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    for section in parser.sections():
        if section.startswith("testenv"):
            for line in parser.get(section, "commands", fallback="").replace("\\\n", " ").splitlines():
                bare = re.sub(r"\{posargs(:[^}]*)?\}|\[\]", "", line).replace("{toxinidir}/", "")
                yield bare.replace("{envpython}", "python").strip()


def _of_nox(text: str) -> Iterator[str]:
    """Yield what ``session.run("ruff", "check", ".")`` runs."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "run":
            words = [each.value for each in node.args if isinstance(each, ast.Constant)]
            if words and all(isinstance(word, str) for word in words):
                yield shlex.join(cast("list[str]", words))


def _of_workflow(text: str) -> Iterator[str]:
    jobs = _get(_yaml(text), "jobs")
    for job in cast("dict[str, Any]", jobs).values() if isinstance(jobs, dict) else ():
        steps = _get(job, "steps")
        for step in cast("list[Any]", steps) if isinstance(steps, list) else ():
            run = _get(step, "run")
            if isinstance(run, str) and _get(step, "working-directory") is None:
                for line in run.replace("\\\n", " ").splitlines():
                    yield from line.split("&&")


def _of_makefile(text: str) -> Iterator[str]:
    """Yield the recipes of targets that check, line by line, and the targets themselves after them."""
    target: str | None = None
    targets: list[str] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("\t"):
            if target is not None:
                yield line.strip().lstrip("@")
        else:
            matched = _MAKE_TARGETS.match(line)
            target = None if matched is None else matched[1]
            targets += [] if target is None else [target]
    yield from (f"make {each}" for each in targets)


def _of_pre_commit(text: str) -> Iterator[str]:
    repos = _get(_yaml(text), "repos")
    for repo in cast("list[Any]", repos) if isinstance(repos, list) else ():
        hooks = _get(repo, "hooks")
        for hook in cast("list[Any]", hooks) if isinstance(hooks, list) else ():
            yield str(_get(hook, "id"))


# --- reading


def _sources(folder: Path) -> Iterator[str]:
    if (folder / "src").is_dir():
        yield "src/**"
        return
    yield from (f"{each}/**" for each in _packages(folder))
    yield from _modules(folder)


def _packages(folder: Path) -> list[str]:
    found = (entry.parent.name for entry in folder.glob("*/__init__.py"))
    return sorted(name for name in found if name not in ("tests", "test", "docs", "examples", "src"))


def _modules(folder: Path) -> list[str]:
    names = (entry.name for entry in folder.glob("*.py"))
    apart = ("setup.py", "noxfile.py", "conftest.py", *_ROOT_TEST_FILES)
    return sorted(each for each in names if each not in apart and not each.startswith("test_"))


def _text(path: Path) -> str:
    """Return the text of a file, nothing where there is none that a person wrote."""
    try:
        if path.is_file() and path.stat().st_size <= LARGEST_READ:
            return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        pass
    return ""


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_text(path))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _yaml(text: str) -> Any:
    try:
        return yaml.load(text, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None


def _get(value: Any, *keys: str) -> Any:
    for key in keys:
        value = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
    return value


def _words(value: object) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(str(each) for each in cast("list[object]", value))
    return tuple(value.split()) if isinstance(value, str) else ()
