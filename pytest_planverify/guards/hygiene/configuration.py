"""pytest's configuration as it takes effect, compared option by option."""

from __future__ import annotations

import configparser
import fnmatch
import posixpath
import shlex
import tomllib
from typing import TYPE_CHECKING, Any, cast

from pytest_planverify.guards.hygiene.signs import Find

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from pytest_planverify.snapshots import Snapshot

PRECEDENCE = (
    "pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"
)  # fmt: skip
_SECTIONS = {
    "tox.ini": "pytest",
    "setup.cfg": "tool:pytest",
    "pytest.ini": "pytest",
    ".pytest.ini": "pytest",
}
_HARMLESS = (
    "markers", "console_output_style", "log_", "junit_", "cache_dir", "tmp_path_retention", "verbosity_",
    "minversion", "faulthandler", "truncation", "required_plugins", "planverify",
)  # fmt: skip
_NARROWING = (
    "-k", "-m", "--deselect", "--ignore", "--ignore-glob", "--co", "--collect-only", "--lf",
    "--last-failed", "--nf", "--noconftest", "--confcutdir", "--rootdir", "--setup-only", "--setup-plan",
    "-c", "--collectonly", "--config-file", "-o", "--override-ini", "--sw", "--stepwise",
    "--suppress-no-test-exit-code",
    "--suppress-tests-failed-exit-code", "--reruns", "--only-rerun", "--pyargs", "--fixtures",
    "--version", "-h", "--help", "--markers", "--trace-config-only", "--testmon", "--picked",
)  # fmt: skip
_SHOWING = (
    "-q", "-v", "-r", "--tb", "--color", "--durations", "--showlocals", "-l", "--quiet", "--verbose", "-s",
    "--strict", "--strict-markers", "--strict-config", "--cov", "--no-header", "--no-summary", "--capture",
    "--show-capture", "-n", "--numprocesses", "--dist", "--maxfail", "-x", "--exitfirst",
    "--doctest-modules",
    "--junitxml", "--junit-xml", "--import-mode", "--ff", "--benchmark", "--timeout", "--code-highlight",
    "--full-trace", "--disable-warnings", "--log", "--json-report", "--html", "--force-short-summary",
)  # fmt: skip
_DEFAULTS: dict[str, tuple[str, ...]] = {
    "python_files": ("test_*.py", "*_test.py"),
    "python_classes": ("Test",),
    "python_functions": ("test",),
    "norecursedirs": (
        "*.egg",
        ".*",
        "_darcs",
        "build",
        "CVS",
        "dist",
        "node_modules",
        "venv",
        "{arch}",
    ),
}


def compare_configuration(
    before: Snapshot, now: Snapshot, changed: Collection[str], tests: Collection[str]
) -> Iterator[Find]:
    """What pytest is told otherwise; ``tests`` are the paths of the files that hold tests."""
    folders = {posixpath.dirname(path) for path in changed}
    for folder in sorted(folders):
        old_path, old = effective(before, folder)
        path, new = effective(now, folder)
        if new is None:
            said = "pytest's configuration can no longer be parsed"
            yield Find(sign="judge-unreadable", message=said, path=path)
            continue
        old = old or {}
        where = path or old_path
        below = [test for test in tests if not folder or test.startswith(f"{folder}/")]
        for name in sorted(old.keys() | new.keys()):
            if old.get(name) != new.get(name):
                yield from _option(name, old.get(name), new.get(name), where, folder, below)
        for each in changed:
            if posixpath.dirname(each) == folder:
                yield from _entry_points(before, now, each)


def effective(snapshot: Snapshot, folder: str) -> tuple[str, dict[str, tuple[str, ...]] | None]:
    """The file that pytest would take its options from, and the options as lists of words.

    The options are absent where the file cannot be parsed.
    """
    for name in PRECEDENCE:
        path = posixpath.join(folder, name)
        content = snapshot.read(path)
        if content is None:
            continue
        try:
            options = section(name, content)
        except (ValueError, configparser.Error):
            return path, None
        if options is not None:
            return path, {key: _normal(key, value) for key, value in options.items()}
    return "", {}


def section(name: str, content: bytes) -> dict[str, Any] | None:
    """pytest's section of a file of that name; nothing where it has none. Raises :class:`ValueError`."""
    text = content.decode("utf-8-sig")
    if name.endswith(".toml"):
        table: Any = tomllib.loads(text)
        if name != "pyproject.toml":
            return cast("dict[str, Any]", table.get("pytest", {}))
        pytest: Any = cast("dict[str, Any]", table.get("tool", {})).get("pytest")
        if not isinstance(pytest, dict):
            return None
        known = cast("dict[str, Any]", pytest)
        return {**known.get("ini_options", {}), **{k: v for k, v in known.items() if k != "ini_options"}}
    parser = configparser.RawConfigParser(strict=False)
    parser.read_string(text)
    wanted = _SECTIONS[name]
    if parser.has_section(wanted):
        return dict(parser.items(wanted))
    return {} if name in ("pytest.ini", ".pytest.ini") else None


def _normal(name: str, value: object) -> tuple[str, ...]:
    """An option as words, whichever way it is spelled."""
    if isinstance(value, list):
        return tuple(str(each) for each in cast("list[object]", value))
    text = str(value)
    if name in ("markers", "filterwarnings") or name.startswith(("log_", "env")):
        return tuple(line.strip() for line in text.splitlines() if line.strip())
    try:
        return tuple(shlex.split(text, comments=False))
    except ValueError:
        return tuple(text.split())


def _option(
    name: str,
    old: tuple[str, ...] | None,
    new: tuple[str, ...] | None,
    path: str,
    folder: str,
    tests: list[str],
) -> Iterator[Find]:
    if name.startswith(_HARMLESS):
        return
    narrows = _NARROWS.get(name)
    sign: str | None = "configuration-changed"
    if narrows is not None:
        sign = narrows(old, new, folder, tests)
    if sign is None:
        return
    what = "was changed" if old and new else "was set" if new else "is gone"
    yield Find(
        sign=sign,
        message=f"pytest's option {name} {what}",
        path=path,
        subject=name,
        before=" ".join(old) if old is not None else None,
        after=" ".join(new) if new is not None else None,
    )


def _addopts(
    old: tuple[str, ...] | None, new: tuple[str, ...] | None, folder: str, tests: list[str]
) -> str | None:
    had, has = _options(old or ()), _options(new or ())
    added, gone = has - had, had - has
    if any(_is_one(word, _NARROWING) for word in added):
        return "configuration-narrowed"
    if any(word.startswith("-p") for word in added):
        return "plugin-added"
    if any("doctest" in word for word in gone) or any(not word.startswith("-") for word in added):
        return "configuration-narrowed"
    quiet = all(_is_one(word, _SHOWING) for word in added) and not any("strict" in word for word in gone)
    widened = all(_is_one(word, _SHOWING + _NARROWING) for word in gone)
    return None if quiet and widened else "configuration-changed"


def _options(words: tuple[str, ...]) -> set[str]:
    """Options with their values, one string each."""
    found: set[str] = set()
    at = 0
    while at < len(words):
        word = words[at]
        takes = word in ("-k", "-m", "-p", "-o", "-c", "-W", "-n", "-r") or (
            word.startswith("--") and "=" not in word and word in _WITH_VALUE
        )
        if takes and at + 1 < len(words):
            word = f"{word} {words[at + 1]}"
            at += 1
        found.add(word)
        at += 1
    return found


_WITH_VALUE = frozenset(
    [
        "--deselect",
        "--ignore",
        "--ignore-glob",
        "--confcutdir",
        "--rootdir",
        "--config-file",
        "--override-ini",
        "--tb",
        "--color",
        "--durations",
        "--maxfail",
        "--dist",
        "--numprocesses",
        "--timeout",
        "--reruns",
        "--capture",
        "--import-mode",
        "--junitxml",
    ]
)


def _is_one(word: str, options: tuple[str, ...]) -> bool:
    head = word.partition(" ")[0].partition("=")[0]
    for option in options:
        if head == option or (option.startswith("--cov") and head.startswith("--cov")):
            return True
        if len(option) == 2 and not head.startswith("--") and head.startswith(option):
            return True
    return False


def _testpaths(
    old: tuple[str, ...] | None, new: tuple[str, ...] | None, folder: str, tests: list[str]
) -> str | None:
    def covered(paths: tuple[str, ...] | None) -> set[str]:
        if not paths:
            return set(tests)
        tops = [posixpath.normpath(posixpath.join(folder, path)) for path in paths]
        return {
            test
            for test in tests
            for top in tops
            if top == "." or test == top or test.startswith(f"{top}/") or fnmatch.fnmatch(test, f"{top}*")
        }

    return "configuration-narrowed" if covered(old) - covered(new) else None


def _patterns(name: str) -> Callable[..., str | None]:
    def compare(
        old: tuple[str, ...] | None, new: tuple[str, ...] | None, folder: str, tests: list[str]
    ) -> str | None:
        had, has = set(old or _DEFAULTS[name]), set(new or _DEFAULTS[name])
        if name == "python_files":
            lost = [
                test
                for test in tests
                if _named(test, had) and not _named(test, has)
            ]  # fmt: skip
            return "configuration-narrowed" if lost else None
        return "configuration-narrowed" if not had <= has else None

    return compare


def _named(path: str, patterns: set[str]) -> bool:
    name = posixpath.basename(path)
    return any(fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(path, pattern) for pattern in patterns)


def _norecursedirs(
    old: tuple[str, ...] | None, new: tuple[str, ...] | None, folder: str, tests: list[str]
) -> str | None:
    more = set(new or _DEFAULTS["norecursedirs"]) - set(old or _DEFAULTS["norecursedirs"])
    folders = {part for test in tests for part in posixpath.dirname(test).split("/") if part}
    if any(fnmatch.fnmatch(each, pattern) for each in folders for pattern in more):
        return "configuration-narrowed"
    return None


def _strict(
    old: tuple[str, ...] | None, new: tuple[str, ...] | None, folder: str, tests: list[str]
) -> str | None:
    is_on = [bool(each) and each[0].lower() in ("true", "1", "yes", "on") for each in (old, new)]
    return "configuration-narrowed" if is_on[0] and not is_on[1] else None


def _warnings(
    old: tuple[str, ...] | None, new: tuple[str, ...] | None, folder: str, tests: list[str]
) -> str | None:
    errors = [{line for line in each or () if line.startswith("error")} for each in (old, new)]
    return "configuration-changed" if errors[0] - errors[1] or (new and set(new) - set(old or ())) else None


_NARROWS: Mapping[str, Callable[..., str | None]] = {
    "addopts": _addopts,
    "testpaths": _testpaths,
    "python_files": _patterns("python_files"),
    "python_classes": _patterns("python_classes"),
    "python_functions": _patterns("python_functions"),
    "norecursedirs": _norecursedirs,
    "xfail_strict": _strict,
    "strict": _strict,
    "strict_xfail": _strict,
    "filterwarnings": _warnings,
}


def _entry_points(before: Snapshot, now: Snapshot, path: str) -> Iterator[Find]:
    old, new = (plugins_declared(path, snapshot.read(path)) for snapshot in (before, now))
    if new - old:
        yield Find(
            sign="pytest-entry-point",
            message=f"The project makes itself a plugin of pytest: {', '.join(sorted(new - old))}",
            path=path,
            after=", ".join(sorted(new - old)),
        )


def plugins_declared(path: str, content: bytes | None) -> set[str]:
    """The ``pytest11`` entry points that a file of the project declares."""
    if content is None or b"pytest11" not in content:
        return set()
    text = content.decode("utf-8", "replace")
    name = posixpath.basename(path)
    try:
        if name == "pyproject.toml":
            table: Any = tomllib.loads(text)
            groups = [
                table.get("project", {}).get("entry-points", {}).get("pytest11", {}),
                table.get("tool", {}).get("poetry", {}).get("plugins", {}).get("pytest11", {}),
            ]
            return {f"{key} = {value}" for group in groups for key, value in group.items()}
        if name == "setup.py":
            return {line.strip() for line in text.splitlines() if "pytest11" in line}
        parser = configparser.RawConfigParser(strict=False)
        parser.read_string(text)
        inner = parser.get("options.entry_points", "pytest11", fallback="")
        lines = {line.strip() for line in inner.splitlines() if line.strip()}
        if parser.has_section("pytest11"):
            lines |= {f"{key} = {value}" for key, value in parser.items("pytest11")}
        return lines
    except (ValueError, AttributeError, configparser.Error):
        return {"pytest11"}
