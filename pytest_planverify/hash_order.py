"""Whether code does anything whose order the hash seed decides: only then is it worth another interpreter
to see what another seed says."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from planner.model.kinds import Side

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from planner.model.evidence import Evidence

_NAMES = frozenset({"set", "frozenset", "hash", "Set", "FrozenSet", "MutableSet"})
_METHODS = frozenset({"union", "intersection", "difference", "symmetric_difference", "__hash__"})
_LARGEST = 1 << 20


def may_depend_on_seed(evidence: Iterable[Evidence], root: Path) -> bool:
    """Whether a project file that the failure goes through, or that its test names, works with sets."""
    paths = dict.fromkeys(path for piece in evidence for path in _files_of(piece))
    return any(_works_with_sets(root / path) for path in paths)


def _files_of(evidence: Evidence) -> Iterator[str]:
    frames = [frame for error in evidence.exceptions for frame in error.frames]
    for frame in (*frames, *evidence.subjects):
        if frame.side in (Side.TEST, Side.PRODUCT):
            yield frame.path


def _works_with_sets(path: Path) -> bool:
    try:
        if path.stat().st_size > _LARGEST:
            return True
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(_is_of_sets(node) for node in ast.walk(tree))


def _is_of_sets(node: ast.AST) -> bool:
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Name(id=name):
            return name in _NAMES
        case ast.Attribute(attr=name):
            return name in _METHODS
        case _:
            return False
