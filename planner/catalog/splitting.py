"""Split a command into words by shlex, and refuse all that only a shell can do.

Whatever a shell would act on outside of quotes (pipes, lists, redirects, expansions, globs) is refused with
what to write instead, because commands are run as argument vectors and never see a shell.
"""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple, NoReturn

from planner.catalog.tables import load_table
from planner.errors import CommandSyntaxError

MAX_COMMAND_LENGTH = 10_000
"""Characters; the model allows no longer line either."""


class CommandWord(NamedTuple):
    """One word of a command; ``plain`` is the length of the part before the first quoted character."""

    value: str
    plain: int


_BLANKS = " \t\r\n"
_QUOTED = re.compile(r"'[^']*'|\"(?:\\[\s\S]|[^\"\\])*\"|\\[\s\S]")
_IN_DOUBLE_QUOTES = re.compile(r"\\(?P<escaped>[\s\S])|`|\$[A-Za-z0-9_{(@*#?$!-]")
_MASK = "\0"
"""Stands for each quoted character, so that no pattern of the table meets one."""

_TABLE = load_table("shell")
_REFUSED = re.compile("|".join(f"({row['at']})" for row in _TABLE["refused"]))


def split_words(text: str) -> list[CommandWord]:
    """Split a command into words. Raises :class:`CommandSyntaxError` for anything that needs a shell."""
    if len(text) > MAX_COMMAND_LENGTH:
        _refuse(f"has {len(text)} characters", f"keep it under {MAX_COMMAND_LENGTH}")
    if _MASK in text:
        _refuse("holds a NUL character", "remove it")
    if re.search("[\ud800-\udfff]", text):
        _refuse("holds a lone surrogate, which no program can be given", "remove it")
    text = _QUOTED.sub(_as_shlex_reads_it, text)
    masked = _QUOTED.sub(lambda quoted: _MASK * len(quoted[0]), text)
    begin, end = len(masked) - len(masked.lstrip(_BLANKS)), len(masked.rstrip(_BLANKS))
    text, masked = text[begin:end], masked[begin:end]
    _refuse_shell(text, masked)
    shown = re.findall(rf"[^{_BLANKS}]+", masked)
    words = [
        CommandWord(value, len(each.partition(_MASK)[0]))
        for value, each in zip(shlex.split(text), shown, strict=True)
    ]
    _refuse_split_id(words)
    return words


def _refuse(problem: str, remedy: str) -> NoReturn:
    raise CommandSyntaxError(f"the command {problem}", remedy)


def _as_shlex_reads_it(quoted: re.Match[str]) -> str:
    """Return a quotation without those escapes of a shell that shlex takes literally."""
    text = quoted[0]
    if text[0] != '"':
        return "" if text == "\\\n" else text

    def unescaped(found: re.Match[str]) -> str:
        if found["escaped"] is None:
            shown = text[found.start() : found.start() + 12].removesuffix('"')
            _refuse(
                f"has {shown!r} inside double quotes, which a shell would replace",
                "use single quotes if it is meant literally, else write the value itself",
            )
        return {"\n": "", "$": "$", "`": "`"}.get(found["escaped"], found[0])

    return _IN_DOUBLE_QUOTES.sub(unescaped, text)


def _refuse_shell(text: str, masked: str) -> None:
    """Refuse what means something to a shell, by the first row of the table that matches at its place."""
    for found in _REFUSED.finditer(masked):
        before = masked[: found.start()]
        if found[0] in "*?" and "[" in re.split(r"[ \t]", before)[-1].partition("::")[2]:
            continue  # no shell finds a file for test_a.py::test_b[a*b], and pytest gets it as it is
        if found[0][0] in "&|;\n" and before.split()[:1] == ["cd"]:
            _refuse(
                "changes the folder with 'cd'",
                "set the plan's root, or give the tool its own option for the folder; "
                "two commands are two criteria",
            )
        assert found.lastindex is not None
        row = _TABLE["refused"][found.lastindex - 1]
        shown = repr(text[found.start() : found.end()])
        _refuse(
            row["why"].replace("<found>", shown), row["instead"].replace("<literal>", _TABLE["literal"])
        )


def _refuse_split_id(words: list[CommandWord]) -> None:
    """An unquoted parameter id with a blank inside would silently become two words."""
    for position, word in enumerate(words):
        name = word.value.partition("::")[2]
        if "[" not in name or name.endswith("]") or word.plain < len(word.value):
            continue
        for end, other in enumerate(words[position + 1 :], position + 1):
            if "::" in other.value or other.value.startswith("-"):
                break
            if other.value.endswith("]"):
                whole = " ".join(each.value for each in words[position : end + 1])
                _refuse(f"has a blank inside {whole}", f'quote the whole id: "{whole}"')
