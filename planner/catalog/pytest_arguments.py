"""Parser of the arguments of a pytest command: selections and options.

``pytest_options.toml`` lists the options of pytest and of common plugins. The word after an unknown option
may be its value or a path.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from planner.catalog.tables import load_table
from planner.errors import CommandSyntaxError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class PytestInvocation:
    """A parsed pytest command."""

    launcher: tuple[str, ...]
    """Words that start pytest: ``("pytest",)``, ``("python", "-m", "pytest")``."""
    foreign: bool
    """Whether another interpreter or a launcher starts pytest, so that a process has to be spawned."""
    as_module: bool
    """Whether it is ``python -m pytest``, which puts the current folder on ``sys.path``."""
    args: tuple[str, ...]
    """All words after the launcher, unchanged."""
    selections: tuple[str, ...] = ()
    """Paths and node ids."""
    keyword: str | None = None
    """``-k``; the last one wins."""
    markexpr: str | None = None
    """``-m``; the last one wins."""
    deselect: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    """All other known options in order, as they are written, but those of the command's own run."""
    option_paths: tuple[tuple[str, str], ...] = ()
    """Files and folders that options name, each with its option; without the null device."""
    alone: bool = False
    """Whether no other command can start as this one does, so that it needs a pytest process of its own."""
    guessed: bool = False
    """Whether an option is unknown, so that a word among the selections may be its value."""


class GivenOption(NamedTuple):
    """One option of a command line with its values, or one word that is no option."""

    name: str
    """Name as pytest declares it: ``--html``, ``-r``; empty for a word that is no option."""
    words: tuple[str, ...]
    """Equivalent words for a command line."""
    value: str | None = None
    """Its value, several values joined by blanks; ``None`` if it has none."""
    known: bool = True
    """Whether the option is in the table. The words after an unknown one may be its values."""


def parse_pytest_arguments(
    launcher: tuple[str, ...], args: tuple[str, ...], *, foreign: bool, as_module: bool
) -> PytestInvocation:
    """Parse the words after the launcher.

    Raises :class:`CommandSyntaxError` for a missing value, and for a value of an option that takes none.
    """
    selections: list[str] = []
    deselect: list[str] = []
    kept: list[str] = []
    paths: list[tuple[str, str]] = []
    expressions: dict[str, str] = {}
    guessed = alone = False
    given = split_options(args)
    for option in given:
        name, value = option.name, option.value or ""
        if not name:
            # All words after ``--`` are selections.
            rest = given if option.words == ("--",) else (option,)
            for word in (word for each in rest for word in each.words):
                if word.startswith("@"):  # a file with further selections and options
                    guessed = alone = True
                else:
                    selections.append(word)
            continue
        if not option.known:
            # The next words may be its values instead of selections, and the option may change the whole
            # session.
            guessed = alone = True
            continue
        known = OPTIONS[name]
        if known.takes == "flags" and option.value is not None:
            raise CommandSyntaxError(f"pytest's {name} takes no value", f"write {name} alone")
        if name == "--debug" and len(option.words) > 1:
            raise CommandSyntaxError(
                f"pytest's --debug would overwrite {value}, the word after it", "write --debug=FILE"
            )
        paths.extend((name, path) for path in _paths_of(name, value) if path != "/dev/null")
        if name in ("-k", "-m"):
            expressions[name] = value
        elif name == "--deselect":
            deselect.append(value)
        elif known.is_own or (name == "-p" and value.startswith(_WITHOUT_PLUGIN)):
            alone = True
        else:
            kept.extend(option.words)
            # The default name and `none` do not ask for a report of this command alone.
            alone |= name == "--json-report-file" and value not in (".report.json", "none", "")
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
        alone=alone,
        guessed=guessed,
    )


def known_options() -> list[str]:
    """Return the long options of the table."""
    return [name for name in OPTIONS if name.startswith("--")]


def split_options(words: Iterable[str]) -> Iterator[GivenOption]:
    """Yield the options of a pytest command line with their values, and the other words, in order.

    Clustered short options are split: ``-qrA`` is ``-q`` and ``-rA``. Raises :class:`CommandSyntaxError`
    for a missing value.
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


def close_options(words: Sequence[str]) -> tuple[str, ...]:
    """Return options of pytest with an end behind which no word is taken for the value of the last one.

    ``--debug`` would take the path of a test for that of its file, and overwrite the test.
    """
    last = next(reversed(list(split_options(words))), GivenOption("", ("",)))
    option = OPTIONS.get(last.name)
    if option is None:
        takes_more = not last.known
    else:
        takes_more = option.takes == "many" or (option.takes == "optional" and last.value is None)
    if "=" in last.words[0] or not takes_more:
        return tuple(words)
    # Any option ends the values; disabling a plugin that does not exist has no effect.
    return (*words, "-p", "no:end_of_options")


def _split_long(word: str, rest: deque[str]) -> GivenOption:
    """Return a long option; its values are removed from ``rest``."""
    name, equals, value = word.partition("=")
    option = OPTIONS.get(name)
    if option is None or equals:
        return GivenOption(name, (word,), value if equals else None, known=option is not None)
    values = [_value(name, rest) for _ in range(_AT_LEAST[option.takes])]
    # Like argparse, further words are values only if they do not look like options.
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
        if option is None:  # the rest of the word may be its value
            yield GivenOption(name, (f"-{word[position:]}",), known=False)
            return
        if option.takes == "one":
            attached = word[position + 1 :]
            # argparse accepts -k=expr as well as -kexpr.
            value = attached.removeprefix("=") if attached else _value(name, rest)
            yield GivenOption(name, (name, value), value)
            return
        yield GivenOption(name, (name,))


def _value(name: str, words: deque[str]) -> str:
    """Remove and return the next word, the value of an option."""
    if not words:
        raise CommandSyntaxError(f"pytest's {name} lacks its value", f"write it after {name}")
    return words.popleft()


_Takes: TypeAlias = Literal["flags", "one", "optional", "two", "many"]
_AT_LEAST: dict[_Takes, int] = {"flags": 0, "optional": 0, "one": 1, "many": 1, "two": 2}
"""Number of words that an option takes in any case, even if they start with a dash."""


class PytestOption(NamedTuple):
    """One option of pytest or a plugin."""

    takes: _Takes
    is_own: bool
    """Whether it belongs to the command's own run, whose session cannot be configured before it begins."""


_TABLE = load_table("pytest_options")
_WITHOUT_PLUGIN = ("no:planverify", "no:pytest_planverify")
"""Values of ``-p`` that disable this plugin."""


OPTIONS: dict[str, PytestOption] = {
    name: PytestOption(takes, is_own=section == "own")
    for section in ("selecting", "shared", "own")
    for takes in _AT_LEAST
    for name in _TABLE[section].get(takes, "").split()
}
"""The known options by name, with its dashes."""

RUNS_NO_TEST = frozenset(_TABLE["doubtful"][0]["options"].split())
"""Options with which pytest runs no test."""
PATH_OPTIONS = frozenset(_TABLE["paths"]["options"].split())
_PATH_SETTINGS = frozenset(_TABLE["paths"]["settings"].split())
_COVERAGE_FILES = frozenset(_TABLE["paths"]["coverage_reports"].split())


def _paths_of(name: str, value: str) -> tuple[str, ...]:
    """Return the paths that an option's value names."""
    if name in PATH_OPTIONS:
        return (value,) if value else ()
    if name in ("-o", "--override-ini"):
        setting, _, text = value.partition("=")
        return tuple(text.split()) if setting.strip() in _PATH_SETTINGS else ()
    if name == "--cov-report":
        kind, _, path = value.partition(":")
        return (path,) if path and kind in _COVERAGE_FILES else ()
    return ()
