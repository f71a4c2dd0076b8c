"""Literals given to names that say that they hold a secret: ``DB_PASSWORD=…``, ``api_key: …``,
``"token": "…"``, ``--token …``, in the forms of environments, YAML, JSON, ini files, Python and commands.

A value that is an expression (``os.environ["X"]``, ``parser.next_token()``), a placeholder (``${X}``) or
nothing (``None``) is no secret and stays.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def redact_assigned(text: str) -> str:
    """Return the text with ``[redacted: password]`` and the like for assigned literals."""
    folded = text.lower()
    if not any(stem in folded for stem in _STEMS):
        return text
    pieces: list[str] = []
    done = 0
    for start, end, kind in _secrets(text):
        if start >= done:
            pieces += [text[done:start], f"[redacted: {kind}]"]
            done = end
    return "".join([*pieces, text[done:]]) if done else text


_KINDS: tuple[tuple[str, str], ...] = (
    ("password", r"pass(?:word|wd|phrase|code)|(?<![a-z])pwd|(?<=_)pass"),
    ("connection string", r"connection[_-]?string"),
    ("api key", r"api[_-]?key"),
    ("key", r"(?:access|private|account|encryption|signing|shared[_-]?access)[_-]?key"),
    ("secret", r"secret(?:[_-]?key)?|(?<=[?&])sig"),
    ("access token", r"(?:auth|access|refresh|api|bearer|session|bot)[_-]?token"),
    ("token", r"token"),
    ("credential", r"credential"),
)
_STEMS = ("pass", "pwd", "string", "key", "secret", "sig", "token", "credential")
"""One of these stands in every word above; searching for them is cheap."""
_WORDS = "|".join(f"(?P<k{index}>{words})" for index, (_, words) in enumerate(_KINDS))

_HEAD = re.compile(
    rf"(?:{_WORDS})"
    r"(?:_?\d{1,2}|_(?:prod|production|dev|staging|test|live|main|old|new))?"
    r"(?P<close>\\?[\"']?\]?)[ \t]{0,8}"
    # An annotation may stand between the name and its value: `password: str = "…"`.
    r"(?P<separator>:[ \t]{0,8}[A-Za-z_][\w.\[\], |]{0,40}?[ \t]=[ \t]|:=|=>|:(?!:)|=(?!=))[ \t]{0,8}",
    re.IGNORECASE,
)
_OPTION = re.compile(
    rf"(?<![\w-])--?(?:[A-Za-z0-9]{{1,20}}+[_-](?![ \t]))*?(?:{_WORDS})"
    r"(?:[ \t]{1,8}|\\?[\"'],[ \t]{0,8}(?=\\?[\"']))",
    re.IGNORECASE,
)
_NETRC = re.compile(r"\b(?P<before>login[ \t]{1,8}\S{1,200}+\s{1,8}password[ \t]{1,8})(?=\S)")

_QUOTED = re.compile(
    r"(?P<prefix>[rbfu]{0,2})(?:"
    r"(?P<quote>[\"'])(?P<value>(?:(?!(?P=quote))[^\\\n]|\\[^\n]){0,4000}+)"
    # In a text that is itself quoted, quotes are escaped: \"password\": \"…\"
    r"|\\(?P<escaped>[\"'])(?P<inner>(?:(?!(?P=escaped))[^\\\n]|\\(?!(?P=escaped))){0,4000}+)"
    r")",
    re.IGNORECASE,
)
_BARE = re.compile(r"[^\s,;&\"'`)\]}]{1,512}+")
_UP_TO_SEMICOLON = re.compile(r"[^;\n\"'`]{1,512}+(?=;|$)|[^\s;\"'`]{1,512}+", re.MULTILINE)
_IN_CONNECTION = re.compile(r";[ \t]*(?:[A-Za-z]+[ _]?)?$")
_REST = re.compile(r"[ \t]{0,64}(?:[,;#]|$)", re.MULTILINE)

_WORD = re.compile(r"[A-Za-z_]+")
_EXPRESSION = re.compile(
    r"[A-Za-z_]\w{0,100}+(?:\.[A-Za-z_]\w{0,100}+)*+[(\[]|[A-Za-z_]\w{0,100}+(?:\.[A-Za-z_]\w{0,100}+)++$"
)
_PLACEHOLDER = re.compile(r"[{$<%(\[]|\*+$|\.{3}|…|x{3,}$|-{3,}|/|\\n|[|>&*!][-\w]*$", re.IGNORECASE)
_NOTHING = re.compile(
    r"none|null|nil|true|false|yes|no|str|bytes|int|float|bool|object|any|optional|secretstr|string|text"
    r"|bytearray|undefined|empty|missing|required|invalid|wrong|incorrect|expected|unset|self|args|kwargs"
    r"|value|val|raw|data|line|arg|is|was|the|a|an|to|for|of|in|and|or|not|must|option|flag|argument",
    re.IGNORECASE,
)
"""Words that stand where a value would, and are none."""
_SENSITIVE = re.compile(r"pass|pwd|secret|token|key|cred", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?[\d_.]+")


def _secrets(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield where secrets stand, in order, and what they are."""
    found = [
        *(place for head in _HEAD.finditer(text) if (place := _assigned(text, head))),
        *(place for option in _OPTION.finditer(text) if (place := _given(text, option))),
        *(place for entry in _NETRC.finditer(text) if (place := _bare(text, entry.end(), "password"))),
    ]
    yield from sorted(found)


def _kind(found: re.Match[str]) -> str:
    return next(kind for index, (kind, _) in enumerate(_KINDS) if found[f"k{index}"])


def _assigned(text: str, head: re.Match[str]) -> tuple[int, int, str] | None:
    kind = _kind(head)
    quoted = _QUOTED.match(text, head.end())
    if quoted:
        return _quoted(quoted, kind)
    in_connection_string = head["separator"] == "=" and _IN_CONNECTION.search(
        text, max(head.start() - 40, 0), head.start()
    )
    value = (_UP_TO_SEMICOLON if in_connection_string else _BARE).match(text, head.end())
    if value is None or _is_harmless(value[0], kind):
        return None
    if _WORD.fullmatch(value[0]) and not _is_literal_word(text, head, value, kind):
        return None
    return value.start(), value.end(), kind


def _is_literal_word(text: str, head: re.Match[str], value: re.Match[str], kind: str) -> bool:
    """Return whether a bare word is the secret itself, and no name in code and no sentence."""
    name = head[0][: head.start("close") - head.start()]
    if name.isupper() and head["separator"] == "=":
        return True  # an environment variable
    if kind in ("token", "credential") or _SENSITIVE.search(value[0]):
        return False
    in_object = text[max(head.start() - 80, 0) : head.start()].rpartition("\n")[2].rstrip("_").endswith(".")
    return not in_object and len(value[0]) > 3 and _REST.match(text, value.end()) is not None


def _quoted(quoted: re.Match[str], kind: str) -> tuple[int, int, str] | None:
    group = "value" if quoted["quote"] else "inner"
    value = quoted[group]
    if not value or value[0] in ")],:" or not any(char.isalnum() for char in value):
        return None  # the quote closes a text that ends in the name: input("Password: ")
    if "f" in quoted["prefix"].lower() and "{" in value:
        return None
    if _PLACEHOLDER.match(value) and not value.startswith("/"):
        return None
    if _NOTHING.fullmatch(value) or (kind in ("token", "credential") and not _is_random(value)):
        return None
    return quoted.start(group), quoted.end(group), kind


def _given(text: str, option: re.Match[str]) -> tuple[int, int, str] | None:
    """Return the value after an option of a command."""
    kind = _kind(option)
    quoted = _QUOTED.match(text, option.end())
    if quoted:
        group = "value" if quoted["quote"] else "inner"
        value = quoted[group]
        if not value or value[0] in "-)" or _PLACEHOLDER.match(value):
            return None
        return quoted.start(group), quoted.end(group), kind
    return _bare(text, option.end(), kind)


def _bare(text: str, start: int, kind: str) -> tuple[int, int, str] | None:
    value = _BARE.match(text, start)
    if value is None or value[0][0] in "-=|\\" or _PLACEHOLDER.match(value[0]):
        return None
    if _NOTHING.fullmatch(value[0]) or (value[0].isupper() and _SENSITIVE.search(value[0])):
        return None
    return value.start(), value.end(), kind


def _is_harmless(value: str, kind: str) -> bool:
    """Return whether it is nothing, a placeholder or an expression; of weak names also a number."""
    if _NOTHING.fullmatch(value) or _PLACEHOLDER.match(value) or _EXPRESSION.match(value):
        return True
    if not any(char.isalnum() for char in value):
        return True
    if kind in ("token", "credential"):
        return _NUMBER.fullmatch(value) is not None or not (_WORD.fullmatch(value) or _is_random(value))
    return kind != "password" and _NUMBER.fullmatch(value) is not None


def _is_random(value: str) -> bool:
    """Return whether a text looks as if it were made to be kept secret, and not to be read."""
    if " " in value or len(value) < 6:
        return False
    digits = any(char.isdigit() for char in value)
    return digits or len(value) >= 20
