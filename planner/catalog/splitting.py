"""Splitting a command string into words as a POSIX shell would, and refusing all that only a shell can do.

Quotes and backslashes are honoured. Whatever a shell would act on outside of them (pipes, lists,
redirects, expansions, globs) is refused with what to write instead, because commands are run as argument
vectors and never see a shell.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from planner.errors import CommandSyntaxError

MAX_COMMAND_LENGTH = 10_000
"""Characters; the model allows no longer line either."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command; ``plain`` is the length of the part before the first quoted character."""

    value: str
    plain: int


def split_words(text: str) -> list[Word]:
    """The words of a command. Raises :class:`CommandSyntaxError` for anything that needs a shell."""
    _refuse_unusable(text)
    stripped = _strip(text)
    if _SIMPLE.fullmatch(stripped):
        return [Word(value, len(value)) for value in stripped.split(" ") if value]
    words = _Scanner(stripped).words()
    _refuse_split_id(words)
    return words


_BLANKS = " \t\r\n"
_SIMPLE = re.compile(r"[A-Za-z0-9_./:=,@%+\- ]*")
"""Nothing in such a command means anything to a shell; most commands are of this kind."""

_EXPANSION = re.compile(r"\$[A-Za-z0-9_{(@*#?$!'\"-]")
_EXPANSION_IN_QUOTES = re.compile(r"\$[A-Za-z0-9_{(@*#?$!-]")
_BRACES = re.compile(r"\{[^{}\s]*(?:,|\.\.)[^{}\s]*\}")

_TWO_CRITERIA = "give each command a criterion of its own"
_QUOTE_IT = "put quotes around it if it is meant literally"
_NO_REDIRECT = "leave it out (all output is captured)"
_OPERATORS = (
    ("&&", "joins two commands with '&&'", _TWO_CRITERIA),
    ("||", "joins two commands with '||'", "write the one command that must succeed"),
    ("|&", "pipes its output with '|&'", "write the command whose exit status counts, without the pipe"),
    ("|", "pipes its output with '|'", f"write the command before the pipe only, or {_QUOTE_IT}"),
    (";", "joins two commands with ';'", f"{_TWO_CRITERIA}, or {_QUOTE_IT}"),
    ("&>", "redirects its output with '&>'", _NO_REDIRECT),
    ("&", "runs in the background with '&'", f"leave it out, or {_QUOTE_IT}"),
    ("<", "redirects its input with '<'", f"name the file as an argument, or {_QUOTE_IT}"),
    (">", "redirects its output with '>'", f"{_NO_REDIRECT}, or {_QUOTE_IT}"),
    ("(", "opens a subshell with '('", f"write the command alone, or {_QUOTE_IT}"),
    (")", "has a ')' that only a shell can use", _QUOTE_IT),
    ("\n", "holds more than one line", _TWO_CRITERIA),
)
"""What a shell acts on wherever it stands outside quotes, longest first."""

_OPERATOR_STARTS = frozenset(operator[0] for operator, _, _ in _OPERATORS)
_SPECIAL = re.compile(r"[\s'\"\\`$*?~#{|&;<>()]")


def _refuse(problem: str, remedy: str) -> NoReturn:
    raise CommandSyntaxError(f"the command {problem}", remedy)


def _strip(text: str) -> str:
    """The text without blanks and line ends around it; an escaped blank at its end belongs to a word."""
    stripped = text.rstrip(_BLANKS)
    if stripped.endswith("\\"):
        stripped = text[: len(stripped) + 1]
    return stripped.lstrip(_BLANKS)


def _refuse_unusable(text: str) -> None:
    if len(text) > MAX_COMMAND_LENGTH:
        _refuse(f"has {len(text)} characters", f"keep it under {MAX_COMMAND_LENGTH}")
    if "\0" in text:
        _refuse("holds a NUL character", "remove it")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            _refuse("holds a lone surrogate, which no program can be given", "remove it")


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


class _Scanner:
    """One pass over a command; :meth:`words` may be called once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.done: list[Word] = []
        self.parts: list[str] = []
        self.length = 0
        self.plain: int | None = None
        self.open_word = False

    def words(self) -> list[Word]:
        text, end = self.text, len(self.text)
        while self.at < end:
            found = _SPECIAL.search(text, self.at)
            stop = found.start() if found else end
            if stop > self.at:
                self._add(text[self.at : stop])
                self.at = stop
            if found:
                self._special(text[stop])
        self._close()
        return self.done

    def _add(self, part: str, *, quoted: bool = False) -> None:
        if quoted and self.plain is None:
            self.plain = self.length
        self.open_word = True
        self.parts.append(part)
        self.length += len(part)

    def _close(self) -> None:
        if self.open_word:
            value = "".join(self.parts)
            self.done.append(Word(value, len(value) if self.plain is None else self.plain))
        self.parts, self.length, self.plain, self.open_word = [], 0, None, False

    def _special(self, char: str) -> None:
        if char in " \t":
            self._close()
            self.at += 1
        elif char == "'":
            self._single_quoted()
        elif char == '"':
            self._double_quoted()
        elif char == "\\":
            self._backslash()
        else:
            self._refuse_shell(char)
            self._add(char)
            self.at += 1

    def _single_quoted(self) -> None:
        close = self.text.find("'", self.at + 1)
        if close < 0:
            _refuse("opens a ' that is never closed", 'close it, or write "\'" for a literal one')
        self._add(self.text[self.at + 1 : close], quoted=True)
        self.at = close + 1

    def _double_quoted(self) -> None:
        text, at = self.text, self.at + 1
        part: list[str] = []
        while at < len(text) and text[at] != '"':
            char = text[at]
            if char == "\\" and text[at + 1 : at + 2] in ("$", "`", '"', "\\", "\n") and at + 1 < len(text):
                part.append("" if text[at + 1] == "\n" else text[at + 1])
                at += 2
                continue
            if char == "`" or (char == "$" and _EXPANSION_IN_QUOTES.match(text, at)):
                _refuse(
                    f"has {text[at : at + 12]!r} inside double quotes, which a shell would replace",
                    "use single quotes if it is meant literally, else write the value itself",
                )
            part.append(char)
            at += 1
        if at >= len(text):
            _refuse('opens a " that is never closed', "close it, or write '\"' for a literal one")
        self._add("".join(part), quoted=True)
        self.at = at + 1

    def _backslash(self) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if not following:
            _refuse("ends with a backslash", "remove it")
        if following != "\n":
            self._add(following, quoted=True)
        self.at += 2

    def _refuse_shell(self, char: str) -> None:
        text, at = self.text, self.at
        if char in _OPERATOR_STARTS:
            self._refuse_operator()
        elif char == "`":
            _refuse("substitutes a command with '`'", "write its result, or give it a criterion of its own")
        elif char == "$" and text.startswith("$(", at):
            _refuse(
                "substitutes a command with '$('", "write its result, or give it a criterion of its own"
            )
        elif char == "$" and _EXPANSION.match(text, at):
            _refuse(f"expands {text[at : at + 20].split()[0]!r}", f"write the value itself, or {_QUOTE_IT}")
        elif char in "*?" and not self._inside_parameters():
            _refuse(
                f"has the glob {char!r}",
                f"name the folder or the files, select tests with -k, or {_QUOTE_IT}",
            )
        elif char == "~" and not self.open_word:
            _refuse("begins a path with '~'", "write a path relative to the plan's root")
        elif char == "#" and not self.open_word:
            _refuse("holds a comment", f"move it out of the command, or {_QUOTE_IT}")
        elif char == "{":
            self._refuse_braces()
        elif char.isspace() and char in "\r\f\v":
            _refuse(f"holds the control character {char!r}", "remove it")

    def _refuse_operator(self) -> None:
        if (self.done and self.done[0].value == "cd") or (self.parts == ["cd"] and not self.done):
            _refuse(
                "changes the folder with 'cd'",
                "set the plan's root, or give the tool its own option for the folder; "
                "two commands are two criteria",
            )
        for operator, problem, remedy in _OPERATORS:
            if self.text.startswith(operator, self.at):
                _refuse(problem, remedy)

    def _refuse_braces(self) -> None:
        alone = not self.open_word and self.text[self.at + 1 : self.at + 2] in ("", " ", "\t")
        if alone or _BRACES.match(self.text, self.at):
            _refuse("has braces that a shell would expand", f"write each word out, or {_QUOTE_IT}")

    def _inside_parameters(self) -> bool:
        """In ``test_a.py::test_b[a*b]`` no shell finds a file to put there, and pytest gets it as it is."""
        word = "".join(self.parts)
        return "[" in word.partition("::")[2]
