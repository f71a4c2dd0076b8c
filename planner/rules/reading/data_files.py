"""Which texts of a piece of code may name a data file."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_DATA = re.compile(
    r"(?!/)[^\x00-\x1f\\:*?\"<>|]{1,200}\.(?:json|jsonl|ndjson|csv|tsv|ya?ml|toml|xml|html?|txt|md|parquet|"
    r"feather|pkl|pickle|npy|npz|h5|hdf5|sqlite3?|db|sql|dat|bin|wav|png|jpe?g|gz|zip|arrow|avro|log)"
)
_MAX_FOUND = 50


def data_files(nodes: Iterable[ast.AST]) -> tuple[str, ...]:
    """The relative paths, each as much of it as the code spells out: ``fixtures/cases.json``.

    ``Path(__file__).parent / "data" / "cases.json"`` is ``data/cases.json``.
    """
    found: dict[str, None] = {}
    inner: set[int] = set()
    for node in nodes:
        if len(found) >= _MAX_FOUND:
            break
        if id(node) in inner:
            continue
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            text = _joined(node, inner)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            text = _arguments(node, inner)
        else:
            text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and _DATA.fullmatch(text):
            found[text] = None
    return tuple(found)


def _joined(node: ast.AST, inner: set[int]) -> str | None:
    """The texts at the end of ``folder / "data" / "cases.json"``."""
    parts: list[str] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        inner.add(id(node))
        if not (isinstance(node.right, ast.Constant) and isinstance(node.right.value, str)):
            return "/".join(reversed(parts)) or None
        inner.add(id(node.right))
        parts.append(node.right.value)
        node = node.left
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        node = node.args[0]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        inner.add(id(node))
        parts.append(node.value)
    return "/".join(reversed(parts)) or None


def _arguments(node: ast.Call, inner: set[int]) -> str | None:
    """``os.path.join(here, "data", "cases.json")`` and ``folder.joinpath("data", "cases.json")``."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name not in ("join", "joinpath", "Path", "PurePath"):
        return None
    parts: list[str] = []
    for argument in reversed(node.args):
        if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
            break
        inner.add(id(argument))
        parts.insert(0, argument.value)
    return "/".join(parts) or None
