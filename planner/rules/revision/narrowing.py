"""Reducing the scope: which of the files that a branch may change are enough for the repair."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.edits import NarrowFiles
from planner.rules.editing.allowed_files import is_exclusion, lies_within, without_covered
from planner.rules.revision.facts import listed
from planner.rules.revision.files import file_pattern, folder_pattern
from planner.text.glob_patterns import matches

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planner.rules.revision.situation import Situation


def narrow_files(
    situation: Situation, files: Sequence[str], *, rule: str, why: str, folders: bool
) -> Iterator[NarrowFiles]:
    """The edit that lets the branch change only these files, or their folders, where that is less."""
    branch = situation.branch
    if branch is None or not files:
        return
    allowed = narrowed(branch.allowed_files, files, folders=folders)
    if allowed is not None:
        because = f"{why} {listed(files)}"
        yield NarrowFiles(rule=rule, because=because, todo_id=branch.id, allowed_files=allowed)


def narrowed(old: tuple[str, ...] | None, files: Sequence[str], *, folders: bool) -> tuple[str, ...] | None:
    """The narrower allowlist, or ``None`` where there is none. Never lets in what the old one does not.

    With ``folders``, patterns of the old list that match the files are kept as they are, as long as that is
    fewer; else the folders within them.
    """
    patterns = (folder_pattern(file) if folders else file_pattern(file) for file in files)
    wanted = without_covered(pattern for pattern in patterns if pattern is not None)
    if old is None:
        return wanted or None
    lets_in = [pattern for pattern in old if not is_exclusion(pattern)]
    exclusions = [pattern for pattern in old if is_exclusion(pattern)]
    inside = [file for file in files if not any(matches(file, each[1:]) for each in exclusions)]
    kept = [pattern for pattern in lets_in if any(matches(file, pattern) for file in inside)]
    chosen = kept if folders and len(kept) < len(lets_in) else _within(wanted, kept, inside)
    allowed = tuple(dict.fromkeys((*chosen, *exclusions)))
    return allowed if chosen and set(allowed) != set(old) else None


def _within(wanted: Sequence[str], kept: Sequence[str], files: Sequence[str]) -> list[str]:
    """Those that lie within the old patterns; for the files that are left over, the old patterns."""
    tight = [pattern for pattern in wanted if any(lies_within(pattern, each) for each in kept)]
    left = [file for file in files if not any(matches(file, pattern) for pattern in tight)]
    return tight + [pattern for pattern in kept if any(matches(file, pattern) for file in left)]
