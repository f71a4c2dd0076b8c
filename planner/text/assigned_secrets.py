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
_NETRC = re.compile(r"\b(?P<before>login[ \t]{1,8}\S{1,200}+\s{1,8}password[ \t]{1,8})(?=[^\s\"'])")

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
    places = [(head.end(), _kind(head), head) for head in _HEAD.finditer(text)]
    places += [(option.end(), _kind(option), None) for option in _OPTION.finditer(text)]
    places += [(entry.end(), "password", None) for entry in _NETRC.finditer(text)]
    for start, kind, head in sorted(places, key=lambda place: place[0]):
        quoted = _QUOTED.match(text, start)
        if quoted is not None:
            group = "value" if quoted["quote"] else "inner"
            if _is_quoted_secret(quoted[group], quoted["prefix"], kind, is_assigned=head is not None):
                yield quoted.start(group), quoted.end(group), kind
            continue
        in_connection_string = (
            head is not None
            and head["separator"] == "="
            and _IN_CONNECTION.search(text, max(head.start() - 40, 0), head.start())
        )
        bare = (_UP_TO_SEMICOLON if in_connection_string else _BARE).match(text, start)
        if bare is None or _NOTHING.fullmatch(bare[0]) or _PLACEHOLDER.match(bare[0]):
            continue
        if head is None:
            is_secret = bare[0][0] not in "-=|\\" and not (bare[0].isupper() and _SENSITIVE.search(bare[0]))
        else:
            is_secret = _is_bare_secret(text, head, bare, kind)
        if is_secret:
            yield bare.start(), bare.end(), kind


def _kind(found: re.Match[str]) -> str:
    return next(kind for index, (kind, _) in enumerate(_KINDS) if found[f"k{index}"])


def _is_quoted_secret(value: str, prefix: str, kind: str, *, is_assigned: bool) -> bool:
    if not value or value[0] in (")],:" if is_assigned else "-)"):
        return False  # the quote closes a text that ends in the name: input("Password: ")
    is_placeholder = _PLACEHOLDER.match(value) and not (is_assigned and value.startswith("/"))
    if is_placeholder or not is_assigned:
        return not is_placeholder
    is_expression = "f" in prefix.lower() and "{" in value
    is_weak = kind in ("token", "credential") and not _is_random(value)
    is_nothing = _NOTHING.fullmatch(value) or not any(char.isalnum() for char in value)
    return not (is_expression or is_weak or is_nothing)


def _is_bare_secret(text: str, head: re.Match[str], value: re.Match[str], kind: str) -> bool:
    """Return whether a bare value that is assigned is no expression, number, name in code or sentence."""
    said = value[0]
    is_weak = kind in ("token", "credential")
    if _EXPRESSION.match(said) or not any(char.isalnum() for char in said):
        return False
    if _NUMBER.fullmatch(said):
        return kind == "password"
    if _WORD.fullmatch(said) is None:
        return not is_weak or _is_random(said)
    name = head[0][: head.start("close") - head.start()]
    if name.isupper() and head["separator"] == "=":
        return True  # an environment variable
    if is_weak or _SENSITIVE.search(said):
        return False
    in_object = text[max(head.start() - 80, 0) : head.start()].rpartition("\n")[2].rstrip("_").endswith(".")
    return not in_object and len(said) > 3 and _REST.match(text, value.end()) is not None


def _is_random(value: str) -> bool:
    """Return whether a text looks as if it were made to be kept secret, and not to be read."""
    if " " in value or len(value) < 6:
        return False
    return len(value) >= 20 or any(char.isdigit() for char in value)
