"""Takes secrets out of untrusted text: keys and tokens of known shapes, and literals given to names that
say that they hold a secret.

What is taken out is named in its place, ``[redacted: github token]``, so that a reader knows what stood
there. Code that only speaks of secrets stays as it is. No pattern runs back over what it has read, so the
time grows with the length of the text and with nothing else.
"""

from __future__ import annotations

import pkgutil
import re
import tomllib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "[redacted: {kind}]"
"""What stands where a secret stood."""


def redact(text: str) -> str:
    """Return the text without secrets. Redacting twice changes nothing more."""
    if len(text) < _SHORTEST:
        return text
    for hints, pattern, replacement in _SHAPES:
        if any(hint in text for hint in hints):
            text = re.sub(pattern, replacement, text)  # compiled when a hint is met, and cached then
    if _KEY_HINT in text:
        text = _without_private_keys(text)
    if "curl " in text or "wget " in text:
        text = _REQUEST.sub(_without_passwords, text)
    text = _without_header_values(text)
    return _without_assigned(text)


_SHORTEST = 6
"""Characters. No name of a secret with a value is shorter: ``pwd=ab``."""


_SHAPES = tuple(
    (
        row["hints"].split(),
        row["pattern"] if row.get("inside") else rf"(?<![A-Za-z0-9]){row['pattern']}",
        row.get("keep", "") + MARK.format(kind=row["kind"]),
    )
    for row in tomllib.loads((pkgutil.get_data("planner.text", "secrets.toml") or b"").decode())["shapes"]
)
"""Of each shape its hints, its pattern and what stands in its place: the rows of ``secrets.toml``."""

_REQUEST = re.compile(r"\b(?:curl|wget) [^\n]*+")
_USER_OPTION = re.compile(
    r"(?P<user>(?<= )(?:-u|--user)[ =][\"']?[^\s:\"']{1,100}+:)(?!\[redacted: )[^\s\"'{$<]{1,200}+"
)


def _without_passwords(request: re.Match[str]) -> str:
    """Return the rest of a line that asks for a page, without the password of any of its users."""
    return _USER_OPTION.sub(rf"\g<user>{MARK.format(kind='password')}", request[0])


_KEY_HINT = "PRIVATE KEY"
_KEY_BEGINS = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_KEY_ENDS = re.compile(r"-----END (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BODY = re.compile(r"(?:[^-]|-(?!----))*+")
_KEY_LINES = re.compile(r"(?:(?:\s|\\[nr]|[|>E+] )*+[A-Za-z0-9+/]{16,}+={0,2})*+")
"""The lines of a key that was cut off before its end."""
_KEY_LINE = re.compile(r"\W*+[A-Za-z0-9+/]{16,}+={0,2}\W*+")


def _without_private_keys(text: str) -> str:
    """Remove private key blocks, and what is left of one whose beginning or end was cut off."""
    mark = MARK.format(kind="private key")
    pieces: list[str] = []
    done = 0
    for begin in _KEY_BEGINS.finditer(text):
        if begin.start() < done:
            continue
        pieces += [text[done : begin.start()], mark]
        body = _KEY_BODY.match(text, begin.end())
        end = _KEY_ENDS.match(text, body.end()) if body else None
        lines = end or _KEY_LINES.match(text, begin.end())
        done = lines.end() if lines else begin.end()
    text = "".join([*pieces, text[done:]])
    end = _KEY_ENDS.search(text)
    return _without_headless_keys(text) if end else text


def _without_headless_keys(text: str) -> str:
    kept: list[str] = []
    for line in text.split("\n"):
        end = _KEY_ENDS.search(line)
        if end is None:
            kept.append(line)
            continue
        while kept and _KEY_LINE.fullmatch(kept[-1]):
            kept.pop()
        kept.append(MARK.format(kind="private key") + line[end.end() :])
    return "\n".join(kept)


_HEADER = re.compile(
    r"(?P<name>\b(?:proxy-)?authorization\b\\?[\"']?\]?[ \t]{0,8}[:=,][ \t]{0,8}"
    r"(?:[bf](?=[\"']))?\\?[\"']?)"
    r"(?P<scheme>(?:bearer|basic|digest|token|apikey|negotiate|ntlm|bot|aws4-hmac-sha256)[ \t]{1,8})?+"
    r"(?P<value>[^\s\"'\\,;{}<>$()][^\"'\\\n{}<>]{2,4000}+)",
    re.IGNORECASE,
)
_BEARER = re.compile(
    r"\b(?P<scheme>bearer[ \t]{1,8})(?P<value>[A-Za-z0-9._~+/-]{16,4000}+={0,2})", re.IGNORECASE
)
_COOKIE = re.compile(
    r"(?P<name>\b(?:set-)?cookie\\?[\"']?[ \t]{0,8}:[ \t]{0,8}\\?[\"']?)"
    r"(?P<value>[\w.-]{1,100}+=[^\"'\\\n]{4,4000}+)",
    re.IGNORECASE,
)
_CODE = re.compile(r"[A-Za-z_][\w.]*+[ \t]*+[(\[+)\]]")


def _without_header_values(text: str) -> str:
    folded = text.lower()
    if "authorization" in folded:
        text = _HEADER.sub(_header, text)
    if "bearer" in folded:
        text = _BEARER.sub(_bearer, text)
    if "cookie" in folded:
        text = _COOKIE.sub(rf"\g<name>{MARK.format(kind='cookie')}", text)
    return text


def _header(found: re.Match[str]) -> str:
    value = found["value"]
    scheme = found["scheme"] or ""
    quoted = found["name"][-1] in "\"'"
    if "[redacted:" in value or not (scheme or quoted or any(char.isdigit() for char in value)):
        return found[0]  # a name that code reads the value from
    if not scheme and (_CODE.match(value) or " " in value.strip()):
        return found[0]  # an expression, or a sentence about the header
    return f"{found['name']}{scheme}{MARK.format(kind='authorization')}"


def _bearer(found: re.Match[str]) -> str:
    value = found["value"]
    if not any(char.isdigit() for char in value):
        return found[0]  # words of a sentence
    return f"{found['scheme']}{MARK.format(kind='bearer token')}"


# -- literals given to names that say that they hold a secret --------------------------------------------

# ``DB_PASSWORD=…``, ``api_key: …``, ``"token": "…"``, ``--token …``, in the forms of environments, YAML,
# JSON, ini files, Python and commands. A value that is an expression (``os.environ["X"]``,
# ``parser.next_token()``), a placeholder (``${X}``) or nothing (``None``) is no secret and stays.


def _without_assigned(text: str) -> str:
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
