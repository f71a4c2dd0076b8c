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

from planner.text.assigned_secrets import redact_assigned

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
    return redact_assigned(text)


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
