"""Removal of secrets from untrusted text.

Secrets are keys and tokens of known shapes, and literals that are assigned to names like ``password``;
``secrets.toml`` lists the shapes and names. Each is replaced by a mark with its kind, ``[redacted: github
token]``, so that a reader knows what was there. Code that only mentions secrets stays unchanged. No pattern
backtracks over text that it has matched: the time is linear in the length of the text, even for hostile
text.
"""

from __future__ import annotations

import json
import pkgutil
import re
import tomllib
from typing import TYPE_CHECKING, Any, cast

from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

MARK = "[redacted: {kind}]"
"""Replacement of a secret."""
_SHORTEST_VALUE = 8
"""Number of characters of an environment variable from which its value is looked for in texts."""


def redact(text: str) -> str:
    """Return the text without secrets; idempotent."""
    # Known shapes come first, as they name the kind best. Their marks begin with a bracket, which the later
    # steps take for a placeholder, so no mark is redacted again.
    for hints, pattern, replacement in _SHAPES:
        # Most texts have no hint: searching for it is cheaper than compiling and running the pattern.
        if any(hint in text for hint in hints):
            text = re.sub(pattern, replacement, text)
    if _KEY_HINT in text:
        text = _without_private_keys(text)
    # -u has another meaning in most other programs.
    if "curl " in text or "wget " in text:
        text = _REQUEST.sub(_without_passwords, text)
    text = _without_header_values(text)
    return _without_assigned(text)


_TABLE = tomllib.loads((pkgutil.get_data("planner.text", "secrets.toml") or b"").decode())
_SHAPES = tuple(
    (
        row["hints"].split(),
        row["pattern"] if row.get("inside") else rf"(?<![A-Za-z0-9]){row['pattern']}",
        row.get("keep", "") + MARK.format(kind=row["kind"]),
    )
    for row in _TABLE["shapes"]
)
"""Hints, pattern and replacement of each shape. A text without any of the hints cannot match."""

_REQUEST = re.compile(r"\b(?:curl|wget) [^\n]*+")
_USER_OPTION = re.compile(
    r"(?P<user>(?<= )(?:-u|--user)[ =][\"']?[^\s:\"']{1,100}+:)(?!\[redacted: )[^\s\"'{$<]{1,200}+"
)


def _without_passwords(request: re.Match[str]) -> str:
    """Return a ``curl`` or ``wget`` command without the passwords in its ``--user`` options."""
    return _USER_OPTION.sub(rf"\g<user>{MARK.format(kind='password')}", request[0])


_KEY_HINT = "PRIVATE KEY"
_KEY_BEGINS = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_KEY_ENDS = re.compile(r"-----END (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BODY = re.compile(r"(?:[^-]|-(?!----))*+")
_KEY_LINES = re.compile(r"(?:(?:\s|\\[nr]|[|>E+] )*+[A-Za-z0-9+/]{16,}+={0,2})*+")
"""The lines of a key whose end was cut off."""
_KEY_LINE = re.compile(r"\W*+[A-Za-z0-9+/]{16,}+={0,2}\W*+")


def _without_private_keys(text: str) -> str:
    """Remove private key blocks, also those whose beginning or end was cut off."""
    mark = MARK.format(kind="private key")
    pieces: list[str] = []
    done = 0
    for begin in _KEY_BEGINS.finditer(text):
        pieces += [text[done : begin.start()], mark]
        body = _KEY_BODY.match(text, begin.end())
        end = _KEY_ENDS.match(text, body.end()) if body else None
        lines = end or _KEY_LINES.match(text, begin.end())
        done = lines.end() if lines else begin.end()
    # What is left has ends without a beginning: the lines of base64 before them belong to the key.
    kept: list[str] = []
    for line in "".join([*pieces, text[done:]]).split("\n"):
        end = _KEY_ENDS.search(line)
        if end is None:
            kept.append(line)
            continue
        # The lines of a key may be quoted or indented, but nothing else stands on them.
        while kept and _KEY_LINE.fullmatch(kept[-1]):
            kept.pop()
        kept.append(mark + line[end.end() :])
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
    """Remove the values of the HTTP headers ``Authorization`` and ``Cookie``, and bearer tokens."""
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
        return found[0]  # the name of a variable that has the value
    if not scheme and (_CODE.match(value) or " " in value.strip()):
        return found[0]  # an expression, or a sentence about the header
    return f"{found['name']}{scheme}{MARK.format(kind='authorization')}"


def _bearer(found: re.Match[str]) -> str:
    value = found["value"]
    if not any(char.isdigit() for char in value):
        return found[0]  # prose
    return f"{found['scheme']}{MARK.format(kind='bearer token')}"


# -- literals assigned to names of secrets ---------------------------------------------------------------

# ``DB_PASSWORD=…``, ``api_key: …``, ``"token": "…"``, ``--token …``, in the syntax of environments, YAML,
# JSON, ini files, Python and commands. A value that is an expression (``os.environ["X"]``,
# ``parser.next_token()``), a placeholder (``${X}``) or no value (``None``) is no secret and stays.


def _without_assigned(text: str) -> str:
    """Return the text with ``[redacted: password]`` and the like for assigned literals."""
    folded = text.lower()
    if not any(stem in folded for stem in _STEMS):
        return text
    pieces: list[str] = []
    done = 0
    for start, end, kind in _secrets(text):
        # A value may follow two names, as in --password token=x: the first one has replaced all of it.
        if start >= done:
            pieces += [text[done:start], f"[redacted: {kind}]"]
            done = end
    return "".join([*pieces, text[done:]]) if done else text


_KINDS: tuple[tuple[str, str], ...] = tuple(_TABLE["names"].items())
_STEMS = ("pass", "pwd", "string", "key", "secret", "sig", "token", "credential")
"""Each name of a secret contains one of these: a text without them needs no search by pattern."""
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
_NOTHING = re.compile("|".join(_TABLE["no_values"].split()), re.IGNORECASE)
_SENSITIVE = re.compile(r"pass|pwd|secret|token|key|cred", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?[\d_.]+")


def _secrets(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and kind of each assigned secret, sorted by position."""
    places: list[tuple[int, str, re.Match[str] | None]] = []
    start = 0
    for line in text.split("\n"):
        folded = line.lower()
        # The pattern is slow and matches within a line; few lines have a name.
        if any(stem in folded for stem in _STEMS):
            found = _HEAD.finditer(text, start, start + len(line))
            places += [(head.end(), _kind(head), head) for head in found]
        start += len(line) + 1
    places += [(option.end(), _kind(option), None) for option in _OPTION.finditer(text)]
    places += [(entry.end(), "password", None) for entry in _NETRC.finditer(text)]
    for start, kind, head in sorted(places, key=lambda place: place[0]):
        quoted = _QUOTED.match(text, start)
        if quoted is not None:
            group = "value" if quoted["quote"] else "inner"
            if _is_quoted_secret(quoted[group], quoted["prefix"], kind, is_assigned=head is not None):
                yield quoted.start(group), quoted.end(group), kind
            continue
        # In a connection string (Server=x;Password=a b;) a value ends at the semicolon and may have blanks.
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
    """Return whether a quoted value is a secret; ``prefix`` is that of the string literal."""
    if not value or value[0] in (")],:" if is_assigned else "-)"):
        return False  # the quote closes a text that ends in the name: input("Password: ")
    is_placeholder = _PLACEHOLDER.match(value) and not (is_assigned and value.startswith("/"))
    if is_placeholder or not is_assigned:
        return not is_placeholder
    is_expression = "f" in prefix.lower() and "{" in value
    # Tokens of parsers are no secrets: a value of these kinds has to look random.
    is_weak = kind in ("token", "credential") and not _is_random(value)
    is_nothing = _NOTHING.fullmatch(value) or not any(char.isalnum() for char in value)
    return not (is_expression or is_weak or is_nothing)


def _is_bare_secret(text: str, head: re.Match[str], value: re.Match[str], kind: str) -> bool:
    """Return whether an assigned value without quotes is a secret.

    It is none if it is an expression, a number (other than of a password), a name in code, or prose.
    """
    literal = value[0]
    is_weak = kind in ("token", "credential")
    if _EXPRESSION.match(literal) or not any(char.isalnum() for char in literal):
        return False
    # A number is a count or an id, but a password may be a PIN.
    if _NUMBER.fullmatch(literal):
        return kind == "password"
    if _WORD.fullmatch(literal) is None:
        return not is_weak or _is_random(literal)
    name = head[0][: head.start("close") - head.start()]
    if name.isupper() and head["separator"] == "=":
        return True  # an environment variable
    # Code assigns variables with such names to each other: ``password = new_password``.
    if is_weak or _SENSITIVE.search(literal):
        return False
    # An attribute (self.password = value) stands in code, which assigns variables.
    in_object = text[max(head.start() - 80, 0) : head.start()].rpartition("\n")[2].rstrip("_").endswith(".")
    return not in_object and len(literal) > 3 and _REST.match(text, value.end()) is not None


def _is_random(value: str) -> bool:
    """Return whether a text looks generated: no blanks, and at least 20 characters, or 6 with a digit."""
    if " " in value or len(value) < 6:
        return False
    return len(value) >= 20 or any(char.isdigit() for char in value)


def secret_values(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of environment variables that are named like secrets and look generated.

    The longest comes first, as it may contain others. A plain word, such as the password ``postgres``,
    would be found in texts that have nothing to do with it.
    """
    found = {
        form
        for name, value in variables.items()
        # As in the values that a failed assertion shows, and in JSON.
        for form in (value, repr(value)[1:-1], json.dumps(value)[1:-1])
        if len(value) >= _SHORTEST_VALUE
        # First, as the search is slow, and each worker does this when it starts.
        and any(stem in name.lower() for stem in _STEMS)
        and _is_random(value)
        and redact(f"{name}={value}").startswith(f"{name}=[redacted: ")
    }
    return tuple(sorted(found, key=len, reverse=True))


def redact_data(data: Any, values: Sequence[str], identifiers: Container[str]) -> Any:
    """Return a text, or JSON data, without secrets in its texts; each of ``values`` is one, too.

    Texts under the keys ``identifiers`` stay. Data without secrets is returned itself.
    """
    # Most data has none: to search all of its texts at once is many times faster than one by one.
    together = "\n".join(_texts(data, identifiers))
    if redact(together) == together and not any(value in together for value in values):
        return data
    return _redacted(data, values, identifiers)


def _texts(data: Any, identifiers: Container[str]) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, list | tuple):
        for item in cast("list[Any]", data):
            yield from _texts(item, identifiers)
    elif isinstance(data, dict):
        for name, item in cast("dict[str, Any]", data).items():
            if name not in identifiers:
                yield from _texts(item, identifiers)


def _redacted(data: Any, values: Sequence[str], identifiers: Container[str]) -> Any:
    if isinstance(data, str):
        for value in values:
            data = data.replace(value, MARK.format(kind="secret"))
        return redact(data)
    if isinstance(data, list | tuple):
        return [_redacted(item, values, identifiers) for item in cast("list[Any]", data)]
    if isinstance(data, dict):
        return {
            name: item if name in identifiers else _redacted(item, values, identifiers)
            for name, item in cast("dict[str, Any]", data).items()
        }
    return data


def redact_and_clip(text: str, limit: int) -> str:
    """Return text without control sequences and known secrets, of at most ``limit`` characters."""
    # Cleaned first: a control sequence inside a secret would hide it. Cut last: so would the cut.
    return clean(redact(clean(text)), limit=limit)
