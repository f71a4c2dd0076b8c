"""Changes of pytest's configuration that make it run fewer tests or weaken their failures.

The effective options are compared, not the text of the files: a project may move its configuration from one
file to another, or reformat it.
"""

from __future__ import annotations

import fnmatch
import posixpath
import shlex
from typing import TYPE_CHECKING, cast

from planner.model.baseline import JudgeKind
from planner.planfile.discovery import INI_FILES, pytest_settings
from pytest_planverify.baseline.work_tree import CONFIGURATIONS
from pytest_planverify.guards.hygiene.changes import file_signal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.evidence import HygieneSignal
    from pytest_planverify.baseline.work_tree import Snapshot
    from pytest_planverify.guards.hygiene.changes import TreeDifferences

_NARROWING = frozenset(
    {"-k", "-m", "--deselect", "--ignore", "--ignore-glob", "--co", "--collect-only", "--collectonly",
     "--lf", "--last-failed", "--nf", "--noconftest", "--confcutdir", "--rootdir", "--setup-only",
     "--setup-plan", "-c", "--config-file", "-o", "--override-ini", "--sw", "--stepwise", "--reruns",
     "--only-rerun", "--pyargs", "--fixtures", "--version", "-h", "--help", "--markers", "--testmon",
     "--picked", "--suppress-no-test-exit-code", "--suppress-tests-failed-exit-code"}
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
        is_less_strict = any("doctest" in word or "strict" in word for word in old_options - new_options)
        return is_less_strict or any(
            word in _NARROWING or word[:2] in ("-k", "-m") or not word.startswith("-") for word in added
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
