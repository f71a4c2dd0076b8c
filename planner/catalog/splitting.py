"""Splitting a command string into words as a POSIX shell would, and refusing all that only a shell can do.

Quotes and backslashes are honoured. Whatever a shell would act on outside of them (pipes, lists,
redirects, expansions, globs) is refused with what to write instead, because commands are run as argument
vectors and never see a shell.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import takewhile
from typing import NoReturn

from planner.catalog.tables import load_table
from planner.errors import CommandSyntaxError

MAX_COMMAND_LENGTH = 10_000
"""Characters; the model allows no longer line either."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command; ``plain`` is the length of the part before the first quoted character."""

    value: str
    plain: int


def split_words(text: str) -> list[Word]:
    """Split a command into words. Raises :class:`CommandSyntaxError` for anything that needs a shell."""
    for is_found, problem, remedy in (
        (
            len(text) > MAX_COMMAND_LENGTH,
            f"has {len(text)} characters",
            f"keep it under {MAX_COMMAND_LENGTH}",
        ),
        ("\0" in text, "holds a NUL character", "remove it"),
        (_SURROGATE.search(text), "holds a lone surrogate, which no program can be given", "remove it"),
    ):
        if is_found:
            _refuse(problem, remedy)
    stripped = text.strip(_BLANKS)
    if stripped.endswith("\\"):  # an escaped blank at the end belongs to a word
        stripped = text.lstrip(_BLANKS)[: len(stripped) + 1]
    if _SIMPLE.fullmatch(stripped):
        return [Word(value, len(value)) for value in stripped.split(" ") if value]
    words = _scan(stripped)
    _refuse_split_id(words)
    return words


_SURROGATE = re.compile("[\ud800-\udfff]")
_BLANKS = " \t\r\n"
_SIMPLE = re.compile(r"[A-Za-z0-9_./:=,@%+\- ]*")
"""Nothing in such a command means anything to a shell; most commands are of this kind."""

_TABLE = load_table("shell")
_REFUSED = tuple(
    (re.compile(row["at"]), row["why"], row["instead"].replace("<literal>", _TABLE["literal"]))
    for row in _TABLE["refused"]
)
_TOKEN = re.compile(
    r"(?P<blank>[ \t]+)|'(?P<single>[^']*)'|\"(?P<double>(?:\\[\s\S]|[^\"\\])*)\"|\\(?P<escaped>[\s\S])"
    r"|(?P<plain>[^\s'\"\\`$*?~#{|&;<>()]+|[\s\S])"
)
_EXPANSION_IN_QUOTES = re.compile(r"\\[\s\S]|(?P<found>`|\$[A-Za-z0-9_{(@*#?$!-])")
_ESCAPED_IN_QUOTES = re.compile(r"\\([$`\"\\\n])")


def _refuse(problem: str, remedy: str) -> NoReturn:
    raise CommandSyntaxError(f"the command {problem}", remedy)


def _scan(text: str) -> list[Word]:
    """Split by tokens; ``parts`` are those of the word that is read, each with whether it was quoted."""
    words: list[Word] = []
    parts: list[tuple[str, bool]] = []

    def close() -> None:
        if parts:
            plain = sum(len(part) for part, _ in takewhile(lambda part: not part[1], parts))
            words.append(Word("".join(part for part, _ in parts), plain))
            parts.clear()

    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "blank":
            close()
        elif kind == "single":
            parts.append((token["single"], True))
        elif kind == "double":
            parts.append((_double_quoted(token["double"]), True))
        elif kind == "escaped":
            if token["escaped"] != "\n":
                parts.append((token["escaped"], True))
        else:
            _refuse_shell(text, token.start(), words, "".join(part for part, _ in parts))
            parts.append((token["plain"], False))
    close()
    return words


def _double_quoted(inner: str) -> str:
    for expansion in _EXPANSION_IN_QUOTES.finditer(inner):
        if expansion["found"]:
            _refuse(
                f"has {inner[expansion.start() : expansion.start() + 12]!r} inside double quotes, which a "
                "shell would replace",
                "use single quotes if it is meant literally, else write the value itself",
            )
    return _ESCAPED_IN_QUOTES.sub(lambda found: "" if found[1] == "\n" else found[1], inner)


def _refuse_shell(text: str, at: int, words: list[Word], word: str) -> None:
    """Refuse what means something to a shell here, behind these words and the beginning of one."""
    char = text[at]
    if char in "*?" and "[" in word.partition("::")[2]:
        return  # in test_a.py::test_b[a*b] no shell finds a file to put there, and pytest gets it as it is
    if char in "&|;\n" and (words[0].value if words else word) == "cd":
        _refuse(
            "changes the folder with 'cd'",
            "set the plan's root, or give the tool its own option for the folder; "
            "two commands are two criteria",
        )
    for pattern, why, instead in _REFUSED:
        if found := pattern.match(text, at):
            _refuse(why.replace("<found>", repr(found[0])), instead)


def _refuse_split_id(words: list[Word]) -> None:
    """An unquoted parameter id with a blank inside would silently become two words."""
    for position, word in enumerate(words):
        _, colons, name = word.value.partition("::")
        if not colons or "[" not in name or name.endswith("]") or word.plain < len(word.value):
            continue
        for end, other in enumerate(words[position + 1 :], position + 1):
            if "::" in other.value or other.value.startswith("-"):
                break
            if other.value.endswith("]"):
                whole = " ".join(each.value for each in words[position : end + 1])
                _refuse(f"has a blank inside {whole}", f'quote the whole id: "{whole}"')
