"""The targets of a Makefile, and which of them prove nothing when they are made."""

from __future__ import annotations

import re

_RULE = re.compile(r"^(?P<targets>[^\s#:=][^:=#]*?)\s*::?(?![:=])(?P<needs>[^#=]*)(?:#.*)?$")
_UNREADABLE = re.compile(r"^\s*-?(?:include|sinclude|define|\$\(eval)\b", re.MULTILINE)
_EMPTY = re.compile(r"[@\-+]*\s*(?::|true|/bin/true|exit 0|echo\b[^|&;`$]*|printf\b[^|&;`$]*|@?#.*)?\s*")
_IGNORED = re.compile(r"[@+]*-|.*\|\|\s*(?:true|:|exit 0)\s*$")
MAX_LINES = 20_000


def read_targets(text: str) -> dict[str, str | None] | None:
    """By target, in the order of the file, why making it proves nothing, or ``None`` where it may.

    ``None`` instead of the mapping where the file is made by other files or by itself, so that nobody can
    tell without running it.
    """
    if _UNREADABLE.search(text):
        return None
    needs: dict[str, list[str]] = {}
    recipes: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.replace("\\\n", " ").split("\n")[:MAX_LINES]:
        if line.startswith("\t"):
            for target in current:
                recipes[target].append(line.strip())
            continue
        match = _RULE.match(line)
        if match is None:
            current = [] if line.strip() and not line.lstrip().startswith("#") else current
            continue
        wanted, _, inline = match["needs"].partition(";")
        current = match["targets"].split()
        for target in current:
            needs.setdefault(target, []).extend(wanted.split())
            recipes.setdefault(target, [])
            if inline.strip():
                recipes[target].append(inline.strip())
    if any("%" in target or "$" in target for target in needs):
        return None
    special = {target for target in needs if target.startswith(".") and target.isupper()}
    return {
        target: _hollow(target, needs, recipes, frozenset()) for target in needs if target not in special
    }


def _hollow(
    target: str, needs: dict[str, list[str]], recipes: dict[str, list[str]], above: frozenset[str]
) -> str | None:
    """Why a target proves nothing: it does nothing itself, nor does what it needs."""
    lines = [line for line in recipes.get(target, ()) if not _EMPTY.fullmatch(line)]
    if lines:
        return "it ignores every failure" if all(_IGNORED.match(line) for line in lines) else None
    for other in needs.get(target, ()):
        known = other in needs and other not in above and len(above) < 50
        if not known or _hollow(other, needs, recipes, above | {target}) is None:
            return None
    return "its recipe only talks" if recipes.get(target) else "it has no recipe"
