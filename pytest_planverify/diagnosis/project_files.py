"""What the evidence of a command tells of the project: its root, its files, its own packages."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from planner.catalog.test_paths import is_test_path
from planner.model.kinds import Side

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from planner.model.evidence import Evidence

_ROOTS = frozenset({"src", "lib", "python"})
_CODE = frozenset(
    {".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".m", ".f90", ".rs", ".go", ".java", ".kt", ".cs",
     ".js", ".jsx", ".cjs", ".mjs", ".ts", ".tsx", ".vue", ".swift", ".scala", ".rb", ".sh"}
)  # fmt: skip
_PYTHON = (".py", ".pyi")
_PRINTED = re.compile(r"(?:^|[\s\"'(`]|file://)(?P<path>/[^\s\"'():`]+)", re.MULTILINE)


def files_of(evidence: Evidence) -> Iterator[str]:
    """The files of the project that the evidence names, relative to its root."""
    for file in evidence.changed or ():
        yield file.path
    for finding in evidence.command.findings if evidence.command else ():
        if finding.path and not finding.path.startswith(("/", "<")) and "/" in finding.path:
            yield finding.path


def sides_of(evidence: Evidence) -> tuple[tuple[str, Side | None], ...]:
    """The changed files and their sides; of a command's project also those of other languages."""
    known = evidence.command is not None
    return tuple(
        (file.path, file.side or (_side_by_name(file.path) if known else None))
        for file in evidence.changed or ()
    )


def _side_by_name(path: str) -> Side | None:
    if PurePosixPath(path).suffix not in _CODE:
        return None
    return Side.TEST if is_test_path(path) else Side.PRODUCT


def own_names(evidence: Evidence) -> frozenset[str]:
    """Top-level names that the project's files provide: what was told, or else what its files say."""
    if evidence.first_party:
        return frozenset(evidence.first_party)
    found = (_top(path) for path in files_of(evidence) if not is_test_path(path))
    return frozenset(name for name in found if name)


def _top(path: str) -> str:
    """``shop`` of ``shop/cart.py``, of ``src/shop/cart.py`` and of ``shop.py``."""
    if not path.endswith(_PYTHON):
        return ""
    parts = PurePosixPath(path).parts
    parts = parts[1:] if len(parts) > 1 and parts[0] in _ROOTS else parts
    return parts[0] if len(parts) > 1 else PurePosixPath(path).stem


def within_project(path: str, evidence: Evidence) -> str:
    """A path as it is below the project's root, where what was printed tells the root."""
    if not path.startswith("/"):
        return path.removeprefix("./")
    files = tuple(dict.fromkeys(files_of(evidence)))
    for file in files:
        if path.endswith(f"/{file}"):
            return file
    root = _root(files, evidence)
    return path[len(root) :] if root and path.startswith(root) else path


def _root(files: Iterable[str], evidence: Evidence) -> str:
    """The root, by a printed path that ends in a file of the project, or in what the command names."""
    command = evidence.command
    if command is None:
        return ""
    named = (word for word in command.argv if "/" in word and not word.startswith(("/", "-", ".")))
    ends = tuple(f"/{name}" for name in (*files, *named))
    if not ends:
        return ""
    for found in _PRINTED.finditer(command.output_tail):
        for end in ends:
            if found["path"].endswith(end):
                return found["path"][: -len(end) + 1]
    return ""
