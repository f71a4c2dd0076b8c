"""Puts figures into a page of the documentation, between two markers, so that they can be renewed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.cli.ending import UsageMistake

if TYPE_CHECKING:
    from pathlib import Path


def with_figures(file: Path, part: str, figures: str) -> str:
    """The text of a page with these figures in it; a page of their own where there is none yet.

    Raises :class:`UsageMistake` for a page that has no place for them.
    """
    begin, end = markers(part)
    placed = f"{begin}\n\n{figures}\n{end}"
    if not file.exists():
        return f"{placed}\n"
    text = file.read_text(encoding="utf-8")
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise UsageMistake(f"--markdown {file}: it has no place for figures; put {begin} and {end} into it")
    return f"{before}{placed}{after}"


def markers(part: str) -> tuple[str, str]:
    """The lines that the figures of a part stand between."""
    return f"<!-- corpus {part}: begin -->", f"<!-- corpus {part}: end -->"
