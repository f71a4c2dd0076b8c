"""After a wrong result: reduce the scope, then isolate. What was seen is told by the instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.rules.revision.files import implicated_files
from planner.rules.revision.isolating import isolate
from planner.rules.revision.narrowing import narrow_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.edits import Edit
    from planner.rules.revision.situation import Situation


def after_regression(situation: Situation) -> Iterator[Edit]:
    """Narrows the files and leaves the branch the failing tests."""
    yield from narrow_files(
        situation,
        implicated_files(situation),
        rule="regression-narrows-files",
        why="the failure points to",
        folders=True,
    )
    yield from isolate(situation, rule="regression-isolates", why="what fails is run without company")


def while_unknown(situation: Situation) -> Iterator[Edit]:
    """Reduces the scope: the files where some are known, else the tests.

    That the branch is worked on once only is written in the branch.
    """
    narrower = tuple(
        narrow_files(
            situation,
            implicated_files(situation),
            rule="unknown-narrows-files",
            why="the cause is unknown, and the failure points to",
            folders=True,
        )
    )
    yield from narrower or isolate(
        situation,
        rule="unknown-isolates",
        why="the cause is unknown, so only what fails is run",
    )
