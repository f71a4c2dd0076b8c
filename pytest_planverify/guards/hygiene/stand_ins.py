"""What is replaced by a stand-in: names that a function patches, by whatever library."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_planverify.guards.hygiene.reading import dotted, plain_text

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATCHERS = frozenset({"setattr", "patch", "object", "delattr", "spy", "setitem"})
_OWNERS = ("monkeypatch", "mocker", "mock", "patch", "unittest.mock", "pytest.MonkeyPatch", "mp", "m")


def patches_in(node: ast.AST, aliases: dict[str, str]) -> Iterator[tuple[ast.Call, str, str]]:
    """Every call that patches something: the call, what is patched as a dotted name, and its last part."""
    for each in ast.walk(node):
        if not isinstance(each, ast.Call):
            continue
        meaning = dotted(each.func, aliases)
        last = meaning.rpartition(".")[2]
        is_patch = last == "patch" or ".patch." in f"{meaning}." or last in _PATCHERS
        if not is_patch or not each.args:
            continue
        is_plain = meaning in ("setattr", "builtins.setattr")
        owned = any(part in _OWNERS for part in meaning.split(".")[:-1])
        if last in ("setattr", "delattr") and not (owned or is_plain):
            continue
        whole = plain_text(each.args[0]) or _ending(each.args[0])
        if whole is not None:
            yield each, whole, whole.rpartition(".")[2]
        elif len(each.args) > 1 and (name := plain_text(each.args[1])) is not None:
            owner = dotted(each.args[0], aliases)
            yield each, f"{owner}.{name}" if owner else name, name


def _ending(node: ast.expr) -> str | None:
    """What a text ends with whose beginning is not known: ``__name__ + ".split"``."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        text = plain_text(node.right)
    elif isinstance(node, ast.JoinedStr) and node.values:
        text = plain_text(node.values[-1])
    else:
        return None
    return text if text and "." in text else None


def patched_names(node: ast.AST, aliases: dict[str, str]) -> set[str]:
    """The last parts of what is patched."""
    return {name for _, _, name in patches_in(node, aliases)}
