"""What the arguments of a pytest command mean: what they select, what they shape, what sets them apart.

Known are the options of pytest itself and of its common plugins. A command with an option that is not
known can share no session, because the word after it cannot be told from a path.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from planner.errors import CommandSyntaxError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class PytestInvocation:
    """A pytest command, understood."""

    launcher: tuple[str, ...]
    """What starts pytest: ``("pytest",)``, ``("python", "-m", "pytest")``."""
    foreign: bool
    """Another interpreter or launcher than the running one: it must be spawned."""
    as_module: bool
    """``python -m pytest``: the current folder is put on ``sys.path``."""
    args: tuple[str, ...]
    """Everything after the launcher, verbatim."""
    selections: tuple[str, ...] = ()
    keyword: str | None = None
    """``-k``; the last one wins."""
    markexpr: str | None = None
    """``-m``; the last one wins."""
    deselect: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    """All others, each as one word, or a short option and its value, in their order."""
    option_paths: tuple[tuple[str, str], ...] = ()
    """Files and folders that options name, each with its option; the null device is not told."""
    alone: str | None = None
    """One clause on why pytest cannot be configured ahead of it, else ``None``."""
    guessed: bool = False
    """An option is not known, so that what looks like a selection may be its value."""


def parse_pytest_arguments(
    launcher: tuple[str, ...], args: tuple[str, ...], *, foreign: bool, as_module: bool
) -> PytestInvocation:
    """Understand the words after the launcher. Raises :class:`CommandSyntaxError` for a missing value."""
    reading = _Reading()
    words = deque(args)
    while words:
        word = words.popleft()
        if word == "--":
            reading.selections.extend(words)
            break
        if word.startswith("--"):
            _read_long(word, words, reading)
        elif word.startswith("-") and len(word) > 1:
            _read_cluster(word, words, reading)
        else:
            reading.selections.append(word)
    return PytestInvocation(
        launcher=launcher,
        foreign=foreign,
        as_module=as_module,
        args=args,
        selections=tuple(reading.selections),
        keyword=reading.keyword,
        markexpr=reading.markexpr,
        deselect=tuple(reading.deselect),
        options=tuple(reading.kept),
        option_paths=tuple(reading.paths),
        alone=reading.alone,
        guessed=reading.guessed,
    )


class GivenOption(NamedTuple):
    """One option of a command line with its values, or one word that is no option."""

    name: str
    """As pytest declares it: ``--html``, ``-r``; empty for a word that is no option."""
    words: tuple[str, ...]
    """What to write on a command line to say the same."""
    value: str | None = None
    known: bool = True
    """The words after an option that is not known cannot be told from paths."""


def known_options() -> list[str]:
    """Return the long options of pytest and of the plugins that are known here."""
    return list(_LONG)


def split_options(words: Iterable[str]) -> Iterator[GivenOption]:
    """Split a pytest command line, in its order, into options with their values, and other words.

    Clustered short options are taken apart: ``-qrA`` gives ``-q`` and ``-rA``. Raises
    :class:`CommandSyntaxError` for a missing value.
    """
    rest = deque(words)
    while rest:
        word = rest.popleft()
        if word == "--":
            yield from (GivenOption("", (each,)) for each in ("--", *rest))
            return
        if word.startswith("--"):
            yield _split_long(word, rest)
        elif word.startswith("-") and len(word) > 1:
            yield from _split_cluster(word, rest)
        else:
            yield GivenOption("", (word,))


def _split_long(word: str, rest: deque[str]) -> GivenOption:
    name, equals, value = word.partition("=")
    option = _LONG.get(name)
    if option is None:
        return GivenOption(name, (word,), value if equals else None, known=False)
    if equals:
        return GivenOption(name, (word,), value)
    values: list[str] = []
    if option.value in (_Value.ONE, _Value.TWO, _Value.MANY):
        values.append(_value(name, rest))
    if option.value is _Value.TWO:
        values.append(_value(name, rest))
    while (
        rest
        and not rest[0].startswith("-")
        and (option.value is _Value.MANY or (option.value is _Value.OPTIONAL and not values))
    ):
        values.append(rest.popleft())
    return GivenOption(name, (name, *values), " ".join(values) if values else None)


def _split_cluster(word: str, rest: deque[str]) -> Iterator[GivenOption]:
    for position, letter in enumerate(word[1:], 1):
        name = f"-{letter}"
        option = _SHORT.get(letter)
        if option is None:  # what follows may be its value
            yield GivenOption(name, (f"-{word[position:]}",), known=False)
            return
        if option.value is _Value.ONE:
            value = word[position + 1 :].removeprefix("=") or _value(name, rest)
            yield GivenOption(name, (name, value), value)
            return
        yield GivenOption(name, (name,))


class _Effect(Enum):
    DISPLAY = "only changes what is shown or reported"
    SESSION = "shapes the whole session"
    KEYWORD = "selects by keyword"
    MARK = "selects by mark"
    DESELECT = "deselects"
    ALONE = "cannot be configured before its own session begins"


class _Value(Enum):
    NONE = 0
    OPTIONAL = 1
    """After ``=``, or as the next word if that is no option."""
    ONE = 2
    TWO = 3
    MANY = 4
    """One, and as many of the next words as are no options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Option:
    effect: _Effect
    value: _Value = _Value.NONE
    because: str = ""


def _flags(effect: _Effect, names: str, because: str = "") -> dict[str, _Option]:
    return dict.fromkeys(names.split(), _Option(effect=effect, because=because))


def _valued(
    effect: _Effect, names: str, because: str = "", *, value: _Value = _Value.ONE
) -> dict[str, _Option]:
    return dict.fromkeys(names.split(), _Option(effect=effect, value=value, because=because))


_E = _Effect
_COVERAGE = "it measures coverage of its own run"
_WORKERS = "it asks for worker processes"
_LAST_RUN = "it depends on the last run"
_REPORT = "it asks for a report file of its own run"
_NO_TESTS = "it reports without running tests"
_DEBUGGER = "it asks for a debugger"
_WHOLE_STATUS = "its exit status depends on all that ran"
_SETUP = "it runs fixtures otherwise than a test run does"

_LONG: dict[str, _Option] = {
    **_flags(_E.DISPLAY, "--quiet --verbose --no-header --no-summary --showlocals --no-showlocals"),
    **_flags(
        _E.DISPLAY, "--full-trace --fulltrace --exitfirst --disable-warnings --disable-pytest-warnings"
    ),
    **_flags(_E.DISPLAY, "--json-report --json-report-summary --no-fold-skipped --force-short-summary"),
    **_flags(_E.DISPLAY, "--xfail-tb --rerun-show-tracebacks --continue-on-collection-errors"),
    **_valued(
        _E.DISPLAY, "--tb --color --code-highlight --durations --durations-min --maxfail --verbosity"
    ),
    **_valued(_E.DISPLAY, "--report-chars --show-capture --json-report-file --json-report-indent"),
    **_valued(_E.DISPLAY, "--json-report-verbosity --junit-prefix --junitprefix --pastebin"),
    **_flags(
        _E.SESSION,
        "--strict --strict-config --strict-markers --runxfail --noconftest --keep-duplicates",
    ),
    **_flags(_E.SESSION, "--collect-in-virtualenv --doctest-modules"),
    **_flags(_E.SESSION, "--doctest-ignore-import-errors --doctest-continue-on-failure --no-cov"),
    **_flags(_E.SESSION, "--disable-plugin-autoload --asyncio-debug --timeout-disable-debugger-detection"),
    **_flags(_E.SESSION, "--randomly-dont-reset-seed --randomly-dont-reorganize"),
    **_flags(_E.SESSION, "--benchmark-disable --benchmark-skip --disable-socket --allow-unix-socket"),
    **_flags(_E.SESSION, "--keepduplicates --lsof --reuse-db --create-db --nomigrations --no-migrations"),
    **_flags(_E.SESSION, "--hypothesis-show-statistics --hypothesis-explain"),
    **_valued(
        _E.SESSION, "--rootdir --import-mode --confcutdir --ignore --ignore-glob --capture --basetemp"
    ),
    **_valued(
        _E.SESSION, "--override-ini --config-file --pythonwarnings --assert --log-level --log-format"
    ),
    **_valued(_E.SESSION, "--log-date-format --log-cli-level --log-cli-format --log-cli-date-format"),
    **_valued(
        _E.SESSION, "--log-disable --log-auto-indent --doctest-report --doctest-glob --metadata-from-json"
    ),
    **_valued(_E.SESSION, "--timeout --timeout-method --timeout_method --session-timeout --asyncio-mode"),
    **_valued(
        _E.SESSION, "--reruns --reruns-delay --reruns-delay-backoff-factor --only-rerun --rerun-except"
    ),
    **_valued(_E.SESSION, "--rerun-exclude-path --reruns-mode --force-reruns --max-suite-reruns"),
    **_valued(_E.SESSION, "--randomly-seed --allow-hosts --hypothesis-profile --hypothesis-seed"),
    **_valued(_E.SESSION, "--hypothesis-verbosity --ds --dc --metadata-from-json-file --runpytest"),
    **_valued(_E.SESSION, "--metadata", value=_Value.TWO),
    **_valued(_E.DESELECT, "--deselect"),
    **_valued(_E.ALONE, "--numprocesses --dist --maxprocesses --max-worker-restart --tx --px", _WORKERS),
    **_valued(_E.ALONE, "--rsyncdir --rsyncignore --testrunuid --maxschedchunk", _WORKERS),
    **_flags(_E.ALONE, "--looponfail --no-loadscope-reorder --loadscope-reorder", _WORKERS),
    **_valued(_E.ALONE, "--cov", _COVERAGE, value=_Value.OPTIONAL),
    **_flags(_E.ALONE, "--cov-branch --cov-append --cov-reset --no-cov-on-fail", _COVERAGE),
    **_valued(
        _E.ALONE, "--cov-report --cov-config --cov-fail-under --cov-context --cov-precision", _COVERAGE
    ),
    **_flags(
        _E.ALONE, "--lf --last-failed --ff --failed-first --nf --new-first --sw --stepwise", _LAST_RUN
    ),
    **_flags(_E.ALONE, "--sw-skip --stepwise-skip --sw-reset --stepwise-reset --cache-clear", _LAST_RUN),
    **_valued(_E.ALONE, "--lfnf --last-failed-no-failures", _LAST_RUN),
    **_valued(_E.ALONE, "--junitxml --junit-xml --log-file --log-file-level --log-file-mode", _REPORT),
    **_valued(
        _E.ALONE, "--log-file-format --log-file-date-format --report-log --html --csv --ctrf", _REPORT
    ),
    **_flags(_E.ALONE, "--self-contained-html", _REPORT),
    **_valued(_E.ALONE, "--max-warnings", _WHOLE_STATUS),
    **_flags(_E.ALONE, "--fail-on-flaky", _WHOLE_STATUS),
    **_flags(_E.ALONE, "--pyargs", "its arguments may be names of packages"),
    **_valued(_E.ALONE, "--json-report-omit", "it takes any number of words", value=_Value.MANY),
    **_flags(_E.DISPLAY, "--report-log-exclude-logs-on-passed-tests --exclude-warning-annotations"),
    **_valued(_E.ALONE, "--css --alluredir", _REPORT),
    **_flags(_E.ALONE, "--clean-alluredir --allure-no-capture", _REPORT),
    **_valued(_E.SESSION, "--inversion --allure-severities --allure-epics --allure-features"),
    **_valued(_E.SESSION, "--allure-stories --allure-ids --allure-label --allure-link-pattern"),
    **_flags(
        _E.ALONE,
        "--collect-only --collectonly --co --version --help --fixtures --funcargs --markers",
        _NO_TESTS,
    ),
    **_flags(
        _E.ALONE, "--fixtures-per-test --setup-plan --setupplan --trace-config --traceconfig", _NO_TESTS
    ),
    **_valued(_E.ALONE, "--cache-show", _NO_TESTS, value=_Value.OPTIONAL),
    **_flags(_E.ALONE, "--setup-only --setuponly --setup-show --setupshow", _SETUP),
    **_flags(_E.ALONE, "--pdb --trace", _DEBUGGER),
    **_valued(_E.ALONE, "--pdbcls", _DEBUGGER),
    **_valued(_E.ALONE, "--debug", "it writes a trace of pytest itself", value=_Value.OPTIONAL),
}

_SHORT: dict[str, _Option] = {
    **_flags(_E.DISPLAY, "q v x l"),
    **_valued(_E.DISPLAY, "r"),
    **_valued(_E.SESSION, "p o c W"),
    **_flags(_E.SESSION, "s"),
    **_valued(_E.KEYWORD, "k"),
    **_valued(_E.MARK, "m"),
    **_valued(_E.ALONE, "n", _WORKERS),
    **_flags(_E.ALONE, "f d", _WORKERS),
    **_flags(_E.ALONE, "h V", _NO_TESTS),
}
"""``-d`` and ``-f`` are xdist's."""

_LONG_NAMES = {"-o": "--override-ini", "-c": "--config-file", "-W": "--pythonwarnings"}
_NULL_DEVICE = "/dev/null"
_NAME_PATHS = frozenset(
    {"-c", "--config-file", "--rootdir", "--confcutdir", "--basetemp", "--ignore", "--junitxml"}
    | {"--junit-xml", "--log-file", "--report-log", "--html", "--csv", "--ctrf", "--json-report-file"}
    | {"--cov-config", "--rsyncdir", "--debug", "--metadata-from-json-file", "--css", "--alluredir"}
)
_PATH_SETTINGS = frozenset({"cache_dir", "log_file", "pythonpath", "testpaths"})
"""Ini options that hold paths, several apart by blanks."""
_COVERAGE_FILES = frozenset({"html", "xml", "json", "lcov", "annotate", "markdown"})
"""Reports that ``--cov-report KIND:PATH`` writes."""
_DEFAULT_JSON_REPORT = frozenset({".report.json", "none", ""})
_OWN_PLUGIN = frozenset({"no:planverify", "no:pytest_planverify", "no:pytest_planverify.plugin"})


@dataclass(slots=True)
class _Reading:
    """What has been understood so far."""

    selections: list[str] = field(default_factory=list[str])
    deselect: list[str] = field(default_factory=list[str])
    kept: list[str] = field(default_factory=list[str])
    keyword: str | None = None
    markexpr: str | None = None
    alone: str | None = None
    guessed: bool = False
    paths: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def set_apart(self, because: str) -> None:
        self.alone = self.alone or because

    def unknown(self, name: str) -> None:
        self.guessed = True
        self.set_apart(f"it names an option that is not known: {name}")

    def take(self, option: _Option, name: str, value: str | None) -> None:
        self.paths.extend((name, path) for path in _paths_of(name, value or "") if path != _NULL_DEVICE)
        match option.effect:
            case _Effect.DISPLAY:
                self._keep(name, value)
                if name == "--json-report-file" and value not in _DEFAULT_JSON_REPORT:
                    self.set_apart(f"{_REPORT}: {name}")
            case _Effect.SESSION:
                self._keep(name, value)
            case _Effect.KEYWORD:
                if self.keyword is not None:
                    self.set_apart("it gives -k more than once")
                self.keyword = value
            case _Effect.MARK:
                if self.markexpr is not None:
                    self.set_apart("it gives -m more than once")
                self.markexpr = value
            case _Effect.DESELECT:
                self.deselect.append(value or "")
            case _Effect.ALONE:
                self.set_apart(f"{option.because}: {name}")

    def _keep(self, name: str, value: str | None) -> None:
        if name == "-p" and value in _OWN_PLUGIN:
            self.set_apart(f"it switches this plugin off: -p {value}")
        if name == "-s":
            self.kept.append("--capture=no")
        elif value is None:
            self.kept.append(name)
        elif name == "--metadata":
            self.kept.extend((name, value))
        elif name.startswith("--"):
            self.kept.append(f"{name}={value}")
        elif name in _LONG_NAMES:
            self.kept.append(f"{_LONG_NAMES[name]}={value}")
        else:
            self.kept.extend((name, value))


def _paths_of(name: str, value: str) -> tuple[str, ...]:
    """The paths that an option's value names."""
    if name in _NAME_PATHS:
        return (value,) if value else ()
    if name in ("-o", "--override-ini"):
        setting, _, text = value.partition("=")
        return tuple(text.split()) if setting.strip() in _PATH_SETTINGS else ()
    if name == "--cov-report":
        kind, _, path = value.partition(":")
        return (path,) if path and kind in _COVERAGE_FILES else ()
    return ()


def _read_long(word: str, words: deque[str], reading: _Reading) -> None:
    name, equals, value = word.partition("=")
    option = _LONG.get(name)
    if option is None:
        reading.unknown(name)
        return
    if equals and option.value is _Value.NONE:
        raise CommandSyntaxError(f"pytest's {name} takes no value", f"write {name} alone")
    match option.value:
        case _Value.NONE:
            reading.take(option, name, None)
        case _Value.ONE | _Value.TWO | _Value.MANY:
            reading.take(option, name, value if equals else _value(name, words))
            if option.value is _Value.TWO:
                reading.kept.append(_value(name, words))
        case _Value.OPTIONAL:
            if not equals and words and not words[0].startswith("-"):
                value = words.popleft()
            reading.take(option, name, value)


def _read_cluster(word: str, words: deque[str], reading: _Reading) -> None:
    """Short options: ``-qx``, ``-qk expr``, ``-kexpr``, ``-rA``."""
    for position, letter in enumerate(word[1:], 1):
        name = f"-{letter}"
        option = _SHORT.get(letter)
        if option is None:
            reading.unknown(word if position == 1 else f"{name} in {word}")
            return
        if option.value is _Value.ONE:
            attached = word[position + 1 :]
            reading.take(option, name, attached.removeprefix("=") if attached else _value(name, words))
            return
        reading.take(option, name, None)


def _value(name: str, words: deque[str]) -> str:
    if not words:
        raise CommandSyntaxError(f"pytest's {name} lacks its value", f"write it after {name}")
    return words.popleft()
