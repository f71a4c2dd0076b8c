"""Changes of the configuration of pytest and of other tools that make them check less.

The effective options of pytest are compared, not the text of the files: a project may move its
configuration from one file to another, or reformat it. Of other tools, only their exit status is known, so
without permission their configuration has to stay as it was.
"""

from __future__ import annotations

import ast
import fnmatch
import json
import posixpath
import re
import shlex
import tomllib
from configparser import ConfigParser
from configparser import Error as ConfigError
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from planner.model.baseline import JudgeKind
from planner.planfile.discovery import INI_FILES, pytest_settings
from pytest_planverify.baseline.work_tree import CONFIGURATIONS
from pytest_planverify.guards.hygiene.changes import PYTHON_JUDGES, WORK, file_signal
from pytest_planverify.guards.hygiene.grants import Permission, configures
from pytest_planverify.guards.hygiene.source import fold, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.evidence import HygieneSignal
    from pytest_planverify.baseline.work_tree import Snapshot
    from pytest_planverify.guards.hygiene.changes import TreeDifferences
    from pytest_planverify.guards.hygiene.source import Module

_NARROWING = frozenset(
    {"-k", "-m", "--deselect", "--ignore", "--ignore-glob", "--co", "--collect-only", "--collectonly",
     "--lf", "--last-failed", "--nf", "--noconftest", "--confcutdir", "--rootdir", "--setup-only",
     "--setup-plan", "-c", "--config-file", "-o", "--override-ini", "--sw", "--stepwise", "--reruns",
     "--only-rerun", "--pyargs", "--fixtures", "--version", "-h", "--help", "--markers", "--testmon",
     "--picked", "--no-cov", "--suppress-no-test-exit-code", "--suppress-tests-failed-exit-code"}
)  # fmt: skip
"""Options that reduce the tests that run, or the effect of their failures."""
# Options whose value may be the next word.
_WITH_VALUE = _NARROWING | {"-p", "-W", "-n", "-r", "--tb", "--color", "--durations", "--maxfail", "--dist",
    "--timeout", "--capture", "--import-mode", "--junitxml", "--numprocesses"}  # fmt: skip
# pytest's defaults: a project that sets an option for the first time is compared with them.
_DEFAULTS: dict[str, tuple[str, ...]] = {
    "python_files": ("test_*.py", "*_test.py"),
    "python_classes": ("Test",),
    "python_functions": ("test",),
    "norecursedirs": ("*.egg", ".*", "_darcs", "build", "CVS", "dist", "node_modules", "venv", "{arch}"),
}
_STRICT = ("xfail_strict", "strict", "strict_xfail", "strict_markers")
_FALSE = ((), ("false",), ("False",), ("0",), ("no",), ("off",))
_STRICTER = re.compile(r"doctest|strict|^-W ?error")
"""Options that make more tests fail."""
_RUNNERS = frozenset({"make", "just", "task", "tox", "nox", "npm", "pnpm", "yarn"})
"""Tools whose configuration lists commands, so that more entries do not make the others check less."""
_DEFAULT_SUFFIXES = ("", ".cfg", ".ini", ".json", ".toml", ".yaml", ".yml")
"""Suffixes of the configuration that runners read although no other file names it."""
_CHECKERS = ("ruff", "mypy", "pyright", "flake8", "pylint", "coverage", "eslint", "tsc")
"""Tools that runners run."""
_SILENCES = re.compile(
    r"(#|//|/\*)\s*(noqa|nosec|nolint|type: *ignore|pragma: no (cover|branch)"
    r"|(pyright|mypy|ruff|pylint|flake8|eslint|biome|@ts)\W? ?\w*-?"
    r"(ignore|disable|noqa|nocheck|expect-error)).*",
    re.IGNORECASE,
)
"""Comments that keep a tool from reporting a line."""


def configuration_findings(changes: TreeDifferences) -> Iterator[HygieneSignal]:
    """Yield changes of the configuration that make pytest run fewer tests, or load another plugin."""
    before, now = changes.before, changes.now
    tests = [path for path in changes.old if path in changes.new and changes.kind(path) is JudgeKind.TEST]
    names = CONFIGURATIONS | {"setup.py"}
    files = sorted(path for path in changes.changed if posixpath.basename(path) in names)
    for folder in dict.fromkeys(posixpath.dirname(path) for path in files):
        old_path, old = read_options(before, folder)
        path, new = read_options(now, folder)
        if new is None:
            message = "pytest's configuration can no longer be parsed"
            yield file_signal("judge-unreadable", message, path)
            continue
        below = [test for test in tests if not folder or test.startswith(f"{folder}/")]
        for name in sorted({*(old or ()), *new}):
            was, value = (old or {}).get(name, ()), new.get(name, ())
            added = _options(value) - _options(was) if name == "addopts" else set[str]()
            if any(word.startswith("-p") for word in added):
                sign = "plugin-added"
            elif was != value and _is_narrower(name, was, value, folder, below):
                sign = "configuration-narrowed"
            else:
                continue
            message, texts = f"pytest's option {name} was changed", (" ".join(was), " ".join(value))
            yield file_signal(sign, message, path or old_path, before=texts[0], after=texts[1])
    for path in files:
        # The name of the entry-point group of pytest plugins is searched for in the text, because projects
        # declare entry points in several ways.
        if b"pytest11" in (now.read(path) or b"") and b"pytest11" not in (before.read(path) or b""):
            message = "The project registers itself as a plugin of pytest"
            yield file_signal("pytest-entry-point", message, path)
    yield from _findings_of_commands(changes)


def _findings_of_commands(changes: TreeDifferences) -> Iterator[HygieneSignal]:
    """Yield changes that make the commands of criteria succeed, other than pytest."""
    ungranted = [
        path
        for path in sorted(changes.changed)
        if changes.grants.permission(path) is not Permission.GRANTED
    ]
    tools = {tool for todo in changes.grants.todos for tool in todo.tools}
    for runner in tools & _RUNNERS:
        files = [path for path in changes.old if configures(path, runner)]
        commands = str([_settings(path, changes.before.read(path), runner) for path in files])
        tools |= {tool for tool in _CHECKERS if tool in commands}
    for tool in sorted(tools):
        folders = {
            posixpath.dirname(path)
            for path in changes.old
            if configures(path, tool) and _settings(path, changes.before.read(path), tool)
        }
        for path in ungranted if folders else ():
            if not configures(path, tool):
                continue
            old, new = (_settings(path, tree.read(path), tool) for tree in (changes.before, changes.now))
            # A new file may hide the one beside it, as GNUmakefile does with Makefile, but not Makefile.am.
            hides = (
                path not in changes.old
                and posixpath.dirname(path) in folders
                and posixpath.splitext(path)[1] in _DEFAULT_SUFFIXES
            )
            if old != new and (hides or not (tool in _RUNNERS and _has_all(old, new))):
                message = f"The configuration of {tool} was changed"
                yield file_signal("configuration-narrowed", message, path)
    for path in ungranted:
        if any(path in todo.scripts for todo in changes.grants.todos):
            before, now = (changes.module(path, now=now) for now in (False, True))
            if before and now and _can_fail(before) and not _can_fail(now):
                message = f"{path}, which a criterion runs, can no longer fail"
                yield file_signal("assertion-void", message, path)
    for path in changes.of_kind(*WORK, *PYTHON_JUDGES) if not _RUNNERS.issuperset(tools) else ():
        old, new = {*_lines(changes.before.read(path))}, _lines(changes.now.read(path))
        added = [(at, line) for at, line in enumerate(new, 1) if line not in old]
        # Beside other changes of the file, such a comment mostly has a reason.
        if added and all(
            _SILENCES.search(line) and _SILENCES.sub("", line).rstrip() in old for _, line in added
        ):
            message, (at, line) = "Only comments that keep a tool from reporting lines were added", added[0]
            yield file_signal("finding-silenced", message, path, line=at, after=line)


def _settings(path: str, content: bytes | None, tool: str) -> Any:
    """Return what a file sets for a tool, parsed as far as its format is known; false if nothing."""
    text, name = (content or b"").decode("utf-8", "replace"), posixpath.basename(path)
    # AttributeError: Python 3.11 and 3.12 on an indented line below a key without a value.
    with suppress(ValueError, KeyError, TypeError, ConfigError, RecursionError, AttributeError):
        if name == "pyproject.toml":
            return tomllib.loads(text)["tool"][tool]
        if name == "package.json":
            return json.loads(text)["scripts"]
        if name.endswith((".toml", ".json")):
            return tomllib.loads(text) if name.endswith(".toml") else json.loads(text)
        if name in CONFIGURATIONS and name != f"{tool}.ini":
            parser = ConfigParser(interpolation=None, strict=False, allow_no_value=True)
            parser.read_string(text)
            own = re.compile(rf"(tool:)?{re.escape(tool)}\b.*")
            return {each: dict(parser.items(each)) for each in parser.sections() if own.fullmatch(each)}
        return [line for line in _lines(content) if line and line[:1] != "#"]
    return None


def _has_all(old: Any, new: Any) -> bool:
    """Return whether all commands, by name or line, are still as they were."""
    if isinstance(old, dict) and isinstance(new, dict):
        commands = cast("dict[str, object]", new)
        return all(commands.get(name) == each for name, each in cast("dict[str, object]", old).items())
    if not (isinstance(old, list) and isinstance(new, list)):
        return not old
    rest = iter(cast("list[str]", new))
    return all(each in rest for each in cast("list[str]", old))


def _lines(content: bytes | None) -> list[str]:
    return [each.rstrip() for each in (content or b"").decode("utf-8", "replace").splitlines()]


def _can_fail(script: Module) -> bool:
    """Return whether a program raises an exception, asserts something, or exits with a status but 0."""

    def is_failure(status: ast.expr) -> bool:
        """Return whether a status may be another one than 0; a function of the program may return it."""
        call = status.func if isinstance(status, ast.Call) else None
        function = script.functions.get(name_of(call)) if call else None
        # A decorator may exit itself, as those of click do.
        is_known = function is not None and not function.decorator_list
        nodes = ast.walk(function) if function and is_known else [ast.Return(status)]
        return any(fold(each.value) for each in nodes if isinstance(each, ast.Return))

    return any(
        isinstance(each, ast.Raise | ast.Assert)
        or (
            isinstance(each, ast.Call)
            and name_of(each.func) in ("exit", "SystemExit", "main")
            and bool(each.args)
            and is_failure(each.args[0])
        )
        for each in ast.walk(script.tree)
    )


def read_options(snapshot: Snapshot, folder: str) -> tuple[str, dict[str, tuple[str, ...]] | None]:
    """Return the path of pytest's configuration file in a folder, and its options as tuples of words.

    Without such a file the path is empty and there are no options. The options are ``None`` if the file
    cannot be parsed.
    """
    for name in INI_FILES:
        path = posixpath.join(folder, name)
        content = snapshot.read(path)
        if content is None:
            continue
        try:
            options = pytest_settings(name, content.decode("utf-8-sig"))
        except ValueError:
            return path, None
        if options is not None:
            return path, {key: _words(value) for key, value in options.items()}
    return "", {}


def _words(value: object) -> tuple[str, ...]:
    """Return a list as strings, or a text split as by a shell; by blanks if its quotes are unbalanced."""
    if isinstance(value, list):
        return tuple(str(each) for each in cast("list[object]", value))
    try:
        return tuple(shlex.split(str(value)))
    except ValueError:
        return tuple(str(value).split())


def _is_narrower(
    name: str, old: tuple[str, ...], new: tuple[str, ...], folder: str, tests: list[str]
) -> bool:
    """Return whether a changed option may make pytest run fewer of the ``tests``, or weaken their failures.

    Options without influence on either are never narrower.
    """
    then, now = old or _DEFAULTS.get(name, ()), new or _DEFAULTS.get(name, ())
    if name == "addopts":
        old_options, new_options = _options(old), _options(new)
        added = {word.partition(" ")[0].partition("=")[0] for word in new_options - old_options}
        is_less_strict = any(map(_STRICTER.search, old_options - new_options))
        return (
            is_less_strict
            or _threshold(old) > _threshold(new)
            or any(
                word in _NARROWING or word[:2] in ("-k", "-m") or not word.startswith("-") for word in added
            )
        )
    if name == "testpaths":
        return bool(_covered(old, folder, tests) - _covered(new, folder, tests))
    if name == "python_files":
        return any(_matches_any(test, then) and not _matches_any(test, now) for test in tests)
    if name in ("python_classes", "python_functions"):
        return not set(then) <= set(now)
    if name == "norecursedirs":
        folders = {part for test in tests for part in test.split("/")[:-1]}
        return any(fnmatch.fnmatch(each, pattern) for each in folders for pattern in set(now) - set(then))
    if name in _STRICT:
        return old[:1] not in _FALSE and new[:1] in _FALSE
    return name == "filterwarnings" and any(word.startswith("error") for word in set(old) - set(new))


def _threshold(words: tuple[str, ...]) -> float:
    """Return the coverage in percent below which the options of a command line let a session fail."""
    found = re.findall(r"--cov-fail-under[= ](\d+(?:\.\d+)?)", " ".join(words))
    return float(found[-1]) if found else 0.0


def _options(words: tuple[str, ...]) -> set[str]:
    """Return the options of a command line, each joined with its value, and its other words."""
    found: list[str] = []
    for word in words:
        if found and found[-1] in _WITH_VALUE and not word.startswith("-"):
            found[-1] += f" {word}"
        else:
            found.append(word)
    return set(found)


def _covered(paths: tuple[str, ...], folder: str, tests: list[str]) -> set[str]:
    """Return the tests below ``paths``, which are relative to ``folder``; no path means everything."""
    tops = [posixpath.normpath(posixpath.join(folder, path)) for path in paths] or ["."]
    return {
        test
        for test in tests
        for top in tops
        if top in (".", test) or test.startswith(f"{top}/") or fnmatch.fnmatch(test, f"{top}*")
    }


def _matches_any(path: str, patterns: tuple[str, ...]) -> bool:
    """Return whether the path or file name matches a pattern of ``python_files``."""
    name = posixpath.basename(path)
    return any(fnmatch.fnmatch(each, pattern) for each in (name, path) for pattern in patterns)
