"""Where the names of a module come from."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Imported:
    """Where a name of a module comes from."""

    module: str
    """Without the leading dots of a relative import."""
    name: str | None
    """Of ``from module import name``; ``None`` where the module itself is meant."""
    level: int
    """The number of leading dots."""


def imports(node: ast.AST) -> Iterator[tuple[str, Imported]]:
    """The names that a statement binds by importing, each with its source."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            first = alias.name.partition(".")[0]
            yield alias.asname or first, Imported(alias.name if alias.asname else first, None, 0)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name, Imported(node.module or "", alias.name, node.level)
