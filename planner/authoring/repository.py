"""Facts of a repository: its tests, and the checks that its own configuration runs.

Files are read, nothing is run. Commands are taken from tox, nox, CI workflows, pre-commit, make and the
tools set up in pyproject.toml, in this order, and without Python tests from the manifests of other
languages. Of those that the catalog accepts as proof, the first of each tool and purpose counts. The
tables of languages and of checks by tool are in ``repository.toml``.
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
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import yaml

from planner.catalog.commands import Command, accepted_command
from planner.catalog.tables import load_table
from planner.catalog.tools import Purpose
from planner.planfile.discovery import project_root
from planner.planfile.project_files import read_regular, walk
from planner.text.glob_patterns import allowed, matches
from planner.text.python_text import parse_module

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LARGEST_READ = 512 * 1024
"""The size in bytes of the largest file that is read."""
MOST_TEST_TODOS = 10
"""The most groups of tests; more test files than these are grouped by their folders."""

_NOT_TESTS = frozenset(
    {"fixtures", "data", "testdata", "templates", "build", "dist", "node_modules", "venv"}
)
_TEST_FILES = ("test_*.py", "*_test.py")
_ROOT_TEST_FILES = ("test.py", "tests.py")
_DEFINES_TESTS = re.compile(
    r"^[ \t]*(?:(?:async[ \t]+)?def test|class \w+\(.*TestCase)|^class \w*Test", re.MULTILINE
)

_TABLE = load_table("repository", "planner.authoring")
LANGUAGES: dict[str, dict[str, Any]] = _TABLE["languages"]

_WORKFLOWS = ".github/workflows/*.y*ml"
_LAUNCHED = re.compile(r"(uv|poetry|pdm|pipenv|rye) run ([a-z].*)")
_RUN_OTHERS = frozenset({"tox", "nox", "pre-commit"})
"""Tools that run other tools: their own configuration is read instead."""

_MAKE_TARGET = re.compile(
    r"^(tests?|lint|style|typecheck|type-check|types|mypy|check-format|format-check)\s*:(?!=)", re.MULTILINE
)


class TestGroup(NamedTuple):
    """Tests that become one todo."""

    __test__ = False  # the name would make pytest collect this class

    name: str
    """Words for the todo's id: ``parser``."""
    place: str
    """The test file or folder."""
    cmd: str
    """The pytest command that runs them."""


class FoundCheck(NamedTuple):
    """A command that the repository uses to check itself."""

    cmd: str
    source: str
    """The file that configures it."""
    purpose: Purpose
    tool: str
    is_installed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryFacts:
    """The tests, checks and sources found below a folder."""

    name: str
    """The project's name in pyproject.toml, else that of the folder."""
    tests: tuple[TestGroup, ...]
    checks: tuple[FoundCheck, ...]
    sources: tuple[str, ...]
    """Glob patterns of product code; empty where none was recognized."""
    runner: str
    """The command that starts pytest: ``pytest`` or ``python -m pytest``."""
    language: str
    """``python``, or a language of the table whose manifest is there."""


def read_repository(folder: Path) -> RepositoryFacts:
    """Read the tests, checks and sources of the repository in ``folder``; skip what cannot be read."""
    pyproject: dict[str, Any] = {}
    with suppress(ValueError, RecursionError):  # also for a number of thousands of digits
        pyproject = tomllib.loads(_text(folder / "pyproject.toml"))
    every = tuple(walk(folder))
    files = _test_files(folder, every)
    runner = _runner(folder, files)
    languages = (name for name, each in LANGUAGES.items() if each["manifest"] in every)
    is_python = bool(files) or any(each.endswith(".py") for each in every)
    packages = (f"{each}/**" for each in _packages(folder))
    sources = ("src/**",) if (folder / "src").is_dir() else (*packages, *_modules(folder))
    return RepositoryFacts(
        name=str(_get(pyproject, "project", "name") or folder.name or "project"),
        tests=tuple(_group_tests(files, runner)),
        checks=tuple(_checks(folder, pyproject, with_tests=not files)),
        sources=(*sources, *dict.fromkeys(_exclusion_of(each) for each in files if allowed(each, sources))),
        runner=runner,
        language="python" if is_python else next(languages, "python"),
    )


# --- tests


def _test_files(folder: Path, files: Iterable[str]) -> list[str]:
    """Return the files in which pytest would find tests, sorted."""
    # An estimate, as pytest is not run: by its settings, the file name, and the definitions inside.
    root = project_root(folder)
    patterns = root.words("python_files") or _TEST_FILES

    def is_test(path: str) -> bool:
        *parents, name = path.split("/")
        return (
            name.endswith(".py")
            and not any(each in _NOT_TESTS or each.startswith(".") for each in parents)
            and (path in _ROOT_TEST_FILES or any(fnmatch(name, pattern) for pattern in patterns))
            and _DEFINES_TESTS.search(_text(folder / path)) is not None
        )

    found = sorted(filter(is_test, files))
    # Testpaths may be globs. pytest ignores those that match nothing, and searches the root if no other is
    # left.
    places = root.words("testpaths")
    return [path for path in found if any(matches(path, place) for place in places)] or found


def _runner(folder: Path, files: list[str]) -> str:
    """Return the command that starts pytest: by ``python -m`` where tests need it to import the product."""
    # pytest adds the first folder above a test file that is no package to sys.path; `python -m` adds the
    # current folder, in which a product without a folder src is.
    if not files or project_root(folder).words("pythonpath") or (folder / "conftest.py").is_file():
        return "pytest"
    has_flat_product = bool(_packages(folder) or _modules(folder))
    has_test_folders = any(
        "/" in each and not (folder / each).with_name("__init__.py").is_file() for each in files
    )
    return "python -m pytest" if has_flat_product and has_test_folders else "pytest"


def _exclusion_of(path: str) -> str:
    """Return the pattern that excludes a test file among the sources, and what belongs to it."""
    folder, _, name = path.rpartition("/")
    if folder.rpartition("/")[2] in ("tests", "test"):
        return f"!{folder}/**"
    return f"!{folder}/test_*.py" if name.startswith("test_") and folder else f"!{path}"


def _group_tests(files: list[str], runner: str) -> Iterator[TestGroup]:
    """Yield the test groups: the files themselves, or where there are many, their folders."""
    groups: dict[str, list[str]] = {path: [path] for path in files}
    # Paths are cut to fewer and fewer folders until there are few enough groups.
    for depth in (8, 4, 3, 2, 1):
        if len(groups) <= MOST_TEST_TODOS:
            break
        groups = {}
        for path in files:
            groups.setdefault("/".join(path.split("/")[:-1][:depth]) or ".", list[str]()).append(path)
    for place, members in groups.items():
        # The distinctive parts: ``api`` and ``cart`` of tests/api/test_cart.py.
        parts = (
            re.sub(r"^test_|_test$|^tests?$|^\.$", "", each)
            for each in place.removesuffix(".py").split("/")
        )
        # A folder is named instead of its files, so that tests written later are included. Folders inside
        # of it that are groups of their own are ignored.
        others = [f"--ignore={each}" for each in groups if each.startswith(f"{place}/")]
        # The files themselves where they are in the top folder, as `.` would run all other groups, too.
        selection = members if place == "." and len(groups) > 1 else [place, *others]
        yield TestGroup(
            "-".join(filter(None, parts)) or "tests",
            place,
            " ".join([runner, *map(shlex.quote, selection)]),
        )


# --- checks


def _checks(folder: Path, pyproject: dict[str, Any], *, with_tests: bool) -> Iterator[FoundCheck]:
    """Yield one check for each tool and purpose; those that run tests only ``with_tests``."""
    taken: set[tuple[object, ...]] = set()
    for source, line in _lines(folder, pyproject, with_tests=with_tests):
        text = " ".join(line.split())
        if launched := _LAUNCHED.match(text):
            # Without uv, the tool may be installed.
            text = text if shutil.which(launched[1]) else launched[2]
        # Plans run commands without a shell. Also refused inside quotes, where tox and CI put variables.
        command = None if re.search(r"[$|<>;`{}*]", text) else accepted_command(text)
        if command is None or command.tool.name in _RUN_OTHERS:
            continue
        tool, purpose = command.tool.name, command.tool.purpose
        if purpose is Purpose.TEST and not with_tests:
            continue
        # A target usually runs the tools that were found in other files.
        if tool == "make" and any(purpose is known for _, known, _ in taken):
            continue
        # ``ruff check`` and ``ruff format`` are two checks of one tool and purpose.
        key = (tool, purpose, " format " in f" {text} ")
        if key not in taken:
            taken.add(key)
            yield FoundCheck(text, source, purpose, tool, _is_installed(command))


def is_there(program: str) -> bool:
    """Return whether a program is on ``PATH``, or beside this interpreter as in a virtual environment."""
    beside = str(Path(sys.executable).parent)
    return shutil.which(program) is not None or shutil.which(program, path=beside) is not None


def is_module_there(name: str) -> bool:
    """Return whether ``python -m NAME`` finds the module, by its top-level package."""
    with suppress(ImportError, ValueError):
        return find_spec(name.partition(".")[0]) is not None
    return False


def is_runnable(cmd: str) -> bool:
    """Return whether the catalog accepts a command and its program is installed."""
    command = accepted_command(cmd)
    return command is not None and _is_installed(command)


def _is_installed(command: Command) -> bool:
    program, rest = command.argv[0], command.argv[1:]
    if re.match(r"python3?$", program):
        return rest[:1] != ("-m",) or is_module_there(rest[1])
    return is_there(program)


def _lines(folder: Path, pyproject: dict[str, Any], *, with_tests: bool) -> Iterator[tuple[str, str]]:
    """Yield every line that may be a command, with the file that has it, the most explicit files first."""
    sources = {
        "tox.ini": _of_tox,
        "noxfile.py": _of_nox,
        **{f".github/workflows/{path.name}": _of_workflow for path in sorted(folder.glob(_WORKFLOWS))},
        ".pre-commit-config.yaml": _of_pre_commit,
    }
    for name, commands in sources.items():
        yield from ((name, line) for line in commands(_text(folder / name)))
    if with_tests and (folder / "manage.py").is_file():  # Django names test files as pytest does not
        yield "manage.py", "python manage.py test"
    for language in LANGUAGES.values() if with_tests else ():
        if (folder / language["manifest"]).is_file():
            yield language["manifest"], language["every_test"]
    targets = _MAKE_TARGET.findall(_text(folder / "Makefile"))
    yield from (("Makefile", f"make {target}") for target in targets)
    of_tools = (cmd for each, cmd in _TABLE["checks"].items() if _get(pyproject, "tool", each) is not None)
    yield from (("pyproject.toml", cmd) for cmd in of_tools)


def _of_tox(text: str) -> Iterator[str]:
    """Yield the commands of all test environments, with the defaults of positional arguments."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    with suppress(configparser.Error):
        parser.read_string(text)
    for section in parser.sections():
        if section.startswith("testenv"):
            for line in parser.get(section, "commands", fallback="").replace("\\\n", " ").splitlines():
                line = line.replace("{toxinidir}/", "")
                bare = re.sub(r"\{posargs:?([^}]*)\}|\[\]", r"\1", line)
                yield bare.replace("{envpython}", "python").strip()


def _of_nox(text: str) -> Iterator[str]:
    """Yield the commands of calls such as ``session.run("ruff", "check", ".")`` with constant arguments."""
    for node in ast.walk(parse_module(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "run":
            words = [each.value for each in node.args if isinstance(each, ast.Constant)]
            if all(isinstance(word, str) for word in words):
                yield shlex.join(cast("list[str]", words))


def _of_pre_commit(text: str) -> Iterator[str]:
    """Yield the command that the table has for each hook; an empty text for an unknown one."""
    hooks = (hook for repo in _items(_get(_yaml(text), "repos")) for hook in _items(_get(repo, "hooks")))
    names = (_get(hook, "id") for hook in hooks)
    # As text, lists that consist of aliases could grow without bound.
    return (_TABLE["checks"].get(name, "") for name in names if isinstance(name, str))


def _of_workflow(text: str) -> Iterator[str]:
    """Yield the commands of all ``run`` steps that are executed in the root folder."""
    for job in _items(_get(_yaml(text), "jobs")):
        for step in _items(_get(job, "steps")):
            run = _get(step, "run")
            if isinstance(run, str) and _get(step, "working-directory") is None:
                for line in run.replace("\\\n", " ").splitlines():
                    yield from line.split("&&")


# --- reading


def _packages(folder: Path) -> list[str]:
    found = (entry.parent.name for entry in folder.glob("*/__init__.py"))
    return sorted(name for name in found if name not in ("tests", "test", "docs", "examples", "src"))


def _modules(folder: Path) -> list[str]:
    names = (entry.name for entry in folder.glob("*.py"))
    excluded = ("setup.py", "noxfile.py", "conftest.py", *_ROOT_TEST_FILES)
    return sorted(each for each in names if each not in excluded and not each.startswith("test_"))


def _text(path: Path) -> str:
    """Return the text of a file; empty if it is missing, unreadable or larger than ``LARGEST_READ``."""
    # Larger files are taken to be generated, not written by a person.
    with suppress(OSError):
        return read_regular(path, LARGEST_READ).decode("utf-8", "replace")
    return ""


def _yaml(text: str) -> Any:
    try:
        return yaml.load(text, Loader=yaml.CSafeLoader)
    # The last three are raised for values that do not fit their tags, as in !!int "".
    except (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError, ArithmeticError):
        return None


def _get(value: Any, *keys: str) -> Any:
    """Return a nested member of mappings, ``None`` where one is missing or something else is there."""
    for key in keys:
        value = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
    return value


def _items(value: Any) -> list[Any]:
    """Return the items of a list, or the values of a mapping."""
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else []
