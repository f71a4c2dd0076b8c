"""pytest's configuration as it takes effect, compared option by option."""

from __future__ import annotations

import configparser
import fnmatch
import posixpath
import shlex
import tomllib
from typing import TYPE_CHECKING, Any, cast

from pytest_planverify.baseline.work_tree import CONFIGURATIONS
from pytest_planverify.guards.hygiene.signals import Finding

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pytest_planverify.baseline.snapshots import Snapshot

_PRECEDENCE = (
    "pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"
)  # fmt: skip
_NARROWING = frozenset(
    {"-k", "-m", "--deselect", "--ignore", "--ignore-glob", "--co", "--collect-only", "--collectonly",
     "--lf", "--last-failed", "--nf", "--noconftest", "--confcutdir", "--rootdir", "--setup-only",
     "--setup-plan", "-c", "--config-file", "-o", "--override-ini", "--sw", "--stepwise", "--reruns",
     "--only-rerun", "--pyargs", "--fixtures", "--version", "-h", "--help", "--markers", "--testmon",
     "--picked", "--suppress-no-test-exit-code", "--suppress-tests-failed-exit-code"}
)  # fmt: skip
"""Options by which fewer tests are run, or their failures count less."""
_WITH_VALUE = _NARROWING | {"-p", "-W", "-n", "-r", "--tb", "--color", "--durations", "--maxfail", "--dist",
    "--timeout", "--capture", "--import-mode", "--junitxml", "--numprocesses"}  # fmt: skip
_DEFAULTS: dict[str, tuple[str, ...]] = {
    "python_files": ("test_*.py", "*_test.py"),
    "python_classes": ("Test",),
    "python_functions": ("test",),
    "norecursedirs": ("*.egg", ".*", "_darcs", "build", "CVS", "dist", "node_modules", "venv", "{arch}"),
}
_STRICT = ("xfail_strict", "strict", "strict_xfail", "strict_markers")
_FALSE = ("", "false", "0", "no", "off")


def configuration_findings(
    before: Snapshot, now: Snapshot, changed: Collection[str], tests: Sequence[str]
) -> Iterator[Finding]:
    """Yield what pytest is told so that it runs fewer tests; ``tests`` are the files that hold tests."""
    files = sorted(path for path in changed if posixpath.basename(path) in CONFIGURATIONS | {"setup.py"})
    for folder in dict.fromkeys(posixpath.dirname(path) for path in files):
        old_path, old = read_options(before, folder)
        path, new = read_options(now, folder)
        where = path or old_path
        if new is None:
            said = "pytest's configuration can no longer be parsed"
            yield Finding(sign="judge-unreadable", message=said, path=where)
            continue
        below = [test for test in tests if not folder or test.startswith(f"{folder}/")]
        had = old or {}
        for name in sorted({*had, *new}):
            was, value = had.get(name, ()), new.get(name, ())
            sign = _narrowing(name, was, value, folder, below) if was != value else None
            if sign is not None:
                how = "was changed" if was and value else "was set" if value else "is gone"
                said = f"pytest's option {name} {how}"
                yield Finding(
                    sign=sign, message=said, path=where, before=" ".join(was), after=" ".join(value)
                )
    for path in files:
        added = _declared_plugins(path, now.read(path)) - _declared_plugins(path, before.read(path))
        if added:
            said = f"The project makes itself a plugin of pytest: {', '.join(sorted(added))}"
            yield Finding(sign="pytest-entry-point", message=said, path=path)


def read_options(snapshot: Snapshot, folder: str) -> tuple[str, dict[str, tuple[str, ...]] | None]:
    """Return the file that pytest would take its options from, and the options as lists of words.

    The options are ``None`` where the file cannot be parsed.
    """
    for name in _PRECEDENCE:
        path = posixpath.join(folder, name)
        content = snapshot.read(path)
        if content is None:
            continue
        try:
            options = _section(name, content.decode("utf-8-sig"))
        except (ValueError, configparser.Error):
            return path, None
        if options is not None:
            return path, {key: _words(value) for key, value in options.items()}
    return "", {}


def _section(name: str, text: str) -> dict[str, Any] | None:
    if name.endswith(".toml"):
        table: Any = tomllib.loads(text)
        if name != "pyproject.toml":
            return cast("dict[str, Any]", table.get("pytest", {}))
        known: Any = table.get("tool", {}).get("pytest")
        return None if known is None else {**known.get("ini_options", known)}
    parser = configparser.RawConfigParser(strict=False)
    parser.read_string(text)
    section = "tool:pytest" if name == "setup.cfg" else "pytest"
    if parser.has_section(section):
        return dict(parser.items(section))
    return {} if name.endswith("pytest.ini") else None


def _words(value: object) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(str(each) for each in cast("list[object]", value))
    try:
        return tuple(shlex.split(str(value)))
    except ValueError:
        return tuple(str(value).split())


def _narrowing(
    name: str, old: tuple[str, ...], new: tuple[str, ...], folder: str, tests: list[str]
) -> str | None:
    """Return the sign that a changed option is."""
    narrower = False
    if name == "addopts":
        had, has = _options(old), _options(new)
        added = {word.partition(" ")[0].partition("=")[0] for word in has - had}
        if any(word.startswith("-p") for word in added):
            return "plugin-added"
        gone = had - has
        narrower = (
            any(word in _NARROWING or (word[:2] in ("-k", "-m") and word[1:2] != "-") for word in added)
            or any(not word.startswith("-") for word in added)
            or any("doctest" in word or "strict" in word for word in gone)
        )
    elif name == "testpaths":
        narrower = bool(_covered(old, folder, tests) - _covered(new, folder, tests))
    elif name == "python_files":
        kept = [{test for test in tests if _is_named(test, each or _DEFAULTS[name])} for each in (old, new)]
        narrower = bool(kept[0] - kept[1])
    elif name in ("python_classes", "python_functions"):
        narrower = not set(old or _DEFAULTS[name]) <= set(new or _DEFAULTS[name])
    elif name == "norecursedirs":
        more = set(new or _DEFAULTS[name]) - set(old or _DEFAULTS[name])
        folders = {part for test in tests for part in test.split("/")[:-1]}
        narrower = any(fnmatch.fnmatch(each, pattern) for each in folders for pattern in more)
    elif name in _STRICT:
        narrower = _is_on(old) and not _is_on(new)
    elif name == "filterwarnings":
        narrower = any(word.startswith("error") for word in set(old) - set(new))
    return "configuration-narrowed" if narrower else None


def _is_on(words: tuple[str, ...]) -> bool:
    return bool(words) and words[0].lower() not in _FALSE


def _options(words: tuple[str, ...]) -> set[str]:
    """Return options with their values, one string each."""
    found: list[str] = []
    for word in words:
        if found and found[-1] in _WITH_VALUE and not word.startswith("-"):
            found[-1] += f" {word}"
        else:
            found.append(word)
    return set(found)


def _covered(paths: tuple[str, ...], folder: str, tests: list[str]) -> set[str]:
    tops = [posixpath.normpath(posixpath.join(folder, path)) for path in paths]
    return {
        test
        for test in tests
        if not tops
        or any(
            top in (".", test) or test.startswith(f"{top}/") or fnmatch.fnmatch(test, f"{top}*")
            for top in tops
        )
    }


def _is_named(path: str, patterns: tuple[str, ...]) -> bool:
    name = posixpath.basename(path)
    return any(fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(path, pattern) for pattern in patterns)


def _declared_plugins(path: str, content: bytes | None) -> set[str]:
    """Return the ``pytest11`` entry points that a file of the project declares."""
    if content is None or b"pytest11" not in content:
        return set()
    text = content.decode("utf-8", "replace")
    name = posixpath.basename(path)
    try:
        if name == "pyproject.toml":
            table: Any = tomllib.loads(text)
            project = table.get("project", {}).get("entry-points", {}).get("pytest11", {})
            poetry = table.get("tool", {}).get("poetry", {}).get("plugins", {}).get("pytest11", {})
            return {f"{key} = {value}" for key, value in {**project, **poetry}.items()}
        if name == "setup.cfg":
            parser = configparser.RawConfigParser(strict=False)
            parser.read_string(text)
            inner = parser.get("options.entry_points", "pytest11", fallback="")
            return {line.strip() for line in inner.splitlines() if line.strip()}
    except (ValueError, AttributeError, configparser.Error):
        return {"pytest11"}
    return {line.strip() for line in text.splitlines() if "pytest11" in line}
