"""Allowlists of files that a todo may write, relative to the plan's root, and their overlap.

A leading ``!`` excludes files again. What a glob matches is defined in :mod:`planner.text.glob_patterns`.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING

from planner.model.base import report_path
from planner.text.glob_patterns import globs_overlap, is_glob, literal_prefix, parts_match, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planner.model.plan import Todo


def is_exclusion(pattern: str) -> bool:
    """Return whether a pattern excludes files (``!`` in front)."""
    return pattern.startswith("!")


def lies_within(pattern: str, other: str) -> bool:
    """Return whether every file that ``pattern`` matches is also matched by ``other``.

    Conservative: ``False`` if the comparison of parts cannot prove it. A part with wildcards lies within
    ``*`` and within an equal part only.
    """
    if pattern == other:
        return True
    inner = parts_of(pattern)
    # A path that leads upwards leaves the folder whose glob seems to cover it.
    if ".." in inner:
        return False
    return parts_match(inner, parts_of(other), _lies_within_part)


def widened_by(old: Iterable[str], new: Sequence[str]) -> str | None:
    """Return the first pattern by which a new allowlist exceeds the old one, or an old exclusion that it
    lacks; ``None`` if the new list is not wider.
    """
    allowed = [pattern for pattern in old if not is_exclusion(pattern)]
    for pattern in new:
        if not is_exclusion(pattern) and not any(lies_within(pattern, each) for each in allowed):
            return pattern
    inclusions = [index for index, pattern in enumerate(new) if not is_exclusion(pattern)]
    if not inclusions:  # nothing is allowed, so nothing need be excluded
        return None
    # A later inclusion undoes an exclusion, so the old exclusions must follow the last inclusion.
    tail = new[inclusions[-1] + 1 :]
    return next((each for each in old if is_exclusion(each) and each not in tail), None)


def without_covered(patterns: Iterable[str]) -> tuple[str, ...]:
    """Return the patterns that do not lie within another of them."""
    kept: list[str] = []
    for each in patterns:
        # Of two patterns that match the same files, one is kept.
        if not any(lies_within(each, other) for other in kept):
            kept = [*(other for other in kept if not lies_within(other, each)), each]
    return tuple(kept)


def _lies_within_part(inner: str, outer: str) -> bool:
    """Return whether ``outer``, a part but not ``**``, matches all names that ``inner`` matches."""
    # Of a part with wildcards it is only known that ``*`` and an equal part cover it.
    if inner == "**" or is_glob(inner):
        return inner != "**" and outer in (inner, "*")
    return fnmatchcase(inner, outer)


def claimed_files(todo: Todo) -> tuple[str, ...]:
    """Return the globs, exclusions included, that a todo claims for writing.

    These are its ``allowed_files``; without them, the target file and the artifacts that it names. Empty
    if it names none, and for a parent, whose files are claimed by the todos of its sub-plan: such a todo
    conflicts with no other.
    """
    # The todos of the sub-plan claim their own files; with a claim on all of them, the parent would hold
    # them back.
    if todo.has_sub_plan:
        return ()
    if todo.allowed_files is not None:
        return todo.allowed_files if any(not is_exclusion(each) for each in todo.allowed_files) else ()
    spec = todo.controller_task_spec
    target = () if spec is None or spec.target_file is None else (spec.target_file,)
    made = (artifact.path for artifact in todo.acceptance_criteria.expected_artifacts)
    # The failure report of a branch's parent exists already; no todo writes it.
    report = report_path(todo.parent_id)
    return tuple(dict.fromkeys((*target, *(path for path in made if path.removeprefix("./") != report))))


# Asked for each pair of a waiting and a live todo, after every event.
@lru_cache(maxsize=4096)
def _inclusions(patterns: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the globs that include files, each with the literal text with which all its paths begin."""
    return tuple((each, literal_prefix(each)) for each in patterns if not is_exclusion(each))


def claims_overlap(patterns: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Return whether two allowlists may include the same file.

    Conservative: exclusions are ignored, so that in doubt two todos are kept apart.
    """
    for one, prefix in _inclusions(patterns):
        for other, start in _inclusions(others):
            # Most globs of a plan begin differently, and comparing prefixes is ten times faster.
            if (start.startswith(prefix) or prefix.startswith(start)) and globs_overlap(one, other):
                return True
    return False
