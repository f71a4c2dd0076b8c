"""Arguments of a pytest command: selection, shape of the run, and what sets commands apart.

Known are the options of pytest itself and of its common plugins, ``pytest_options.toml``. A command with an
option that is not known cannot be configured ahead, because the word after it cannot be told from a path.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from planner.catalog.tables import load_table
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
    """Files and folders that options name, each with its option; the null device is left out."""
    alone: str | None = None
    """One clause on why pytest cannot be configured ahead of it, else ``None``."""
    guessed: bool = False
    """An option is not known, so that what looks like a selection may be its value."""


class GivenOption(NamedTuple):
    """One option of a command line with its values, or one word that is no option."""

    name: str
    """As pytest declares it: ``--html``, ``-r``; empty for a word that is no option."""
    words: tuple[str, ...]
    """What to write on a command line to say the same."""
    value: str | None = None
    known: bool = True
    """The words after an option that is not known cannot be told from paths."""


def parse_pytest_arguments(
    launcher: tuple[str, ...], args: tuple[str, ...], *, foreign: bool, as_module: bool
) -> PytestInvocation:
    """Understand the words after the launcher.

    Raises :class:`CommandSyntaxError` for a missing value, and for the value of an option that takes none.
    """
    selections: list[str] = []
    deselect: list[str] = []
    kept: list[str] = []
    paths: list[tuple[str, str]] = []
    expressions: dict[str, str] = {}
    alone: list[str] = []
    guessed = False
    given = split_options(args)
    for option in given:
        name, value = option.name, option.value or ""
        if not name:
            rest = given if option.words == ("--",) else (option,)
            selections.extend(word for each in rest for word in each.words)
            continue
        if not option.known:
            guessed = True
            alone.append(f"it names an option that is not known: {name}")
            continue
        known = OPTIONS[name]
        if known.takes == "flags" and option.value is not None:
            raise CommandSyntaxError(f"pytest's {name} takes no value", f"write {name} alone")
        paths.extend((name, path) for path in _paths_of(name, value) if path != "/dev/null")
        if known.effect in ("keyword", "mark"):
            if name in expressions:
                alone.append(f"it gives {name} more than once")
            expressions[name] = value
        elif known.effect == "deselect":
            deselect.append(value)
        elif known.effect == "alone":
            alone.append(f"{known.because}: {name}")
        else:
            kept.extend(_in_one_spelling(option))
            if name == "-p" and value in (
                "no:planverify",
                "no:pytest_planverify",
                "no:pytest_planverify.plugin",
            ):
                alone.append(f"it switches this plugin off: -p {value}")
            if name == "--json-report-file" and value not in (".report.json", "none", ""):
                alone.append(f"{OPTIONS['--html'].because}: {name}")
    return PytestInvocation(
        launcher=launcher,
        foreign=foreign,
        as_module=as_module,
        args=args,
        selections=tuple(selections),
        keyword=expressions.get("-k"),
        markexpr=expressions.get("-m"),
        deselect=tuple(deselect),
        options=tuple(kept),
        option_paths=tuple(paths),
        alone=alone[0] if alone else None,
        guessed=guessed,
    )


def known_options() -> list[str]:
    """Return the long options of pytest and of the plugins that are known here."""
    return [name for name in OPTIONS if name.startswith("--")]


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
    option = OPTIONS.get(name)
    if option is None or equals:
        return GivenOption(name, (word,), value if equals else None, known=option is not None)
    values = [_value(name, rest) for _ in range(_AT_LEAST[option.takes])]
    while (
        rest
        and not rest[0].startswith("-")
        and (option.takes == "many" or (option.takes == "optional" and not values))
    ):
        values.append(rest.popleft())
    return GivenOption(name, (name, *values), " ".join(values) if values else None)


def _split_cluster(word: str, rest: deque[str]) -> Iterator[GivenOption]:
    """Split short options: ``-qx``, ``-qk expr``, ``-kexpr``, ``-rA``."""
    for position, letter in enumerate(word[1:], 1):
        name = f"-{letter}"
        option = OPTIONS.get(name)
        if option is None:  # what follows may be its value
            yield GivenOption(name, (f"-{word[position:]}",), known=False)
            return
        if option.takes == "one":
            attached = word[position + 1 :]
            value = attached.removeprefix("=") if attached else _value(name, rest)
            yield GivenOption(name, (name, value), value)
            return
        yield GivenOption(name, (name,))


def _value(name: str, words: deque[str]) -> str:
    if not words:
        raise CommandSyntaxError(f"pytest's {name} lacks its value", f"write it after {name}")
    return words.popleft()


_Takes: TypeAlias = Literal["flags", "one", "optional", "two", "many"]
_AT_LEAST: dict[_Takes, int] = {"flags": 0, "optional": 0, "one": 1, "many": 1, "two": 2}
"""How many words an option takes, whatever they look like."""


class PytestOption(NamedTuple):
    """One option of pytest or a plugin."""

    effect: str
    """``display``, ``session``, ``keyword``, ``mark``, ``deselect`` or ``alone``."""
    takes: _Takes
    because: str = ""
    """Of those that set a command apart."""


_TABLE = load_table("pytest_options")


def _read_options(table: dict[str, Any]) -> Iterator[tuple[str, PytestOption]]:
    for effect in ("display", "session", "keyword", "mark", "deselect", "alone"):
        groups = table[effect] if effect == "alone" else [table[effect]]
        for group in groups:
            for takes in _AT_LEAST:
                for name in group.get(takes, "").split():
                    yield name, PytestOption(effect, takes, group.get("because", ""))


OPTIONS: dict[str, PytestOption] = dict(_read_options(_TABLE))
"""By the name that begins with one dash or two."""

_LONG_NAMES = {"-o": "--override-ini", "-c": "--config-file", "-W": "--pythonwarnings"}
_PATH_OPTIONS = frozenset(_TABLE["paths"]["options"].split())
_PATH_SETTINGS = frozenset(_TABLE["paths"]["settings"].split())
_COVERAGE_FILES = frozenset(_TABLE["paths"]["coverage_reports"].split())


def _in_one_spelling(given: GivenOption) -> tuple[str, ...]:
    name, value = given.name, given.value
    if name == "-s":
        return ("--capture=no",)
    if value is None or OPTIONS[name].takes == "two":
        return given.words
    if name.startswith("--") or name in _LONG_NAMES:
        return (f"{_LONG_NAMES.get(name, name)}={value}",)
    return (name, value)


def _paths_of(name: str, value: str) -> tuple[str, ...]:
    """Return the paths that an option's value names."""
    if name in _PATH_OPTIONS:
        return (value,) if value else ()
    if name in ("-o", "--override-ini"):
        setting, _, text = value.partition("=")
        return tuple(text.split()) if setting.strip() in _PATH_SETTINGS else ()
    if name == "--cov-report":
        kind, _, path = value.partition(":")
        return (path,) if path and kind in _COVERAGE_FILES else ()
    return ()
