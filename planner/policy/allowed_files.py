"""Files that a todo may write, relative to the plan's root: allowlists, and which of them overlap.

``*`` matches within one part of a path, ``**`` any number of parts; ``!`` in front takes files out again.
Which files a pattern names stands in :mod:`planner.text.glob_patterns`.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from planner.model.failure_report import report_path
from planner.text.glob_patterns import globs_overlap, is_glob, literal_prefix, matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planner.model.plan import Todo


def is_exclusion(pattern: str) -> bool:
    """Return whether a pattern takes files out instead of letting them in."""
    return pattern.startswith("!")


def lies_within(pattern: str, other: str) -> bool:
    """Return whether every file of a pattern is one of the other's, as far as the two texts show it.

    Conservative: where it cannot be seen part by part, the answer is no. Parts are compared as text; a part
    with wildcards is within ``*`` or within its equal only.
    """
    if pattern == other:
        return True
    inner = _parts(pattern)
    return ".." not in inner and _covers(_parts(other), inner)


def widened_by(old: Iterable[str], new: Sequence[str]) -> str | None:
    """Return the first pattern of a new allowlist that widens the old one, or that is missing from it.

    Exclusions of the old list must stand in the new one, behind everything that it lets in.
    """
    allowed = [pattern for pattern in old if not is_exclusion(pattern)]
    for pattern in new:
        if not is_exclusion(pattern) and not any(lies_within(pattern, each) for each in allowed):
            return pattern
    lets_in = [index for index, pattern in enumerate(new) if not is_exclusion(pattern)]
    tail = new[max(lets_in, default=-1) + 1 :]
    kept = tail if lets_in else ()
    return next((each for each in old if is_exclusion(each) and lets_in and each not in kept), None)


def without_covered(patterns: Iterable[str]) -> tuple[str, ...]:
    """Return the patterns, each once, without those that lie within another."""
    unique = list(dict.fromkeys(patterns))
    return tuple(
        each for each in unique if not any(other != each and lies_within(each, other) for other in unique)
    )


def _parts(pattern: str) -> tuple[str, ...]:
    plain = pattern.removeprefix("./")
    return tuple(f"{plain}**".split("/") if plain.endswith("/") else plain.split("/"))


def _covers(outer: tuple[str, ...], inner: tuple[str, ...]) -> bool:
    """Part by part; at a dead end the last ``**`` takes one part more, so that the cost stays bounded."""
    at = here = 0
    wild = taken = -1
    while here < len(inner):
        part = outer[at] if at < len(outer) else None
        if part == "**":
            wild, taken, at = at, here, at + 1
        elif part is not None and inner[here] != "**" and _part_covers(part, inner[here]):
            at, here = at + 1, here + 1
        elif wild >= 0:
            taken += 1
            at, here = wild + 1, taken
        else:
            return False
    # What is left would have to match nothing, and even ``**`` at the end stands for a part or more.
    return at == len(outer)


def _part_covers(outer: str, inner: str) -> bool:
    if outer in (inner, "*"):
        return True
    return not is_glob(inner) and fnmatchcase(inner, outer)


def claimed_files(todo: Todo) -> tuple[str, ...]:
    """Return the globs of what a todo may write, those that take files out again (``!``) among them.

    Where it has no ``allowed_files``, they are the files that it names: its target and its artifacts.
    Empty where it names none; it is then taken to be apart from all others, as a parent is, whose files
    are those of its sub-plan.
    """
    if todo.has_sub_plan:
        return ()
    if todo.allowed_files is not None:
        return todo.allowed_files if any(not is_exclusion(each) for each in todo.allowed_files) else ()
    spec = todo.controller_task_spec
    target = () if spec is None or spec.target_file is None else (spec.target_file,)
    made = (artifact.path for artifact in todo.acceptance_criteria.expected_artifacts)
    # The report of its parent's failure is there already, and nobody's work.
    report = report_path(todo.parent_id)
    return tuple(dict.fromkeys((*target, *(path for path in made if path.removeprefix("./") != report))))


class Grant(NamedTuple):
    """One glob that lets files in, and the globs behind it that take some of them out again."""

    pattern: str
    without: tuple[str, ...] = ()
    prefix: str = ""
    """The text that all its paths begin with."""

    def overlaps(self, other: Grant) -> bool:
        """Return whether both may let in the same file, as far as the globs show it."""
        return globs_overlap(self.pattern, other.pattern) and not any(
            _holds(out, self.pattern) or _holds(out, other.pattern)
            for out in (*self.without, *other.without)
        )


@lru_cache(maxsize=4096)
def grants_of(patterns: tuple[str, ...]) -> tuple[Grant, ...]:
    """Return what a list of globs lets in, each glob once, without those that are taken out as a whole."""
    found: dict[Grant, None] = {}
    out: tuple[str, ...] = ()
    for pattern in reversed(patterns):
        if is_exclusion(pattern):
            out = (pattern[1:], *out)
        elif not any(_holds(each, pattern) for each in out):
            without = tuple(each for each in out if globs_overlap(each, pattern))
            found[Grant(pattern, without, literal_prefix(pattern))] = None
    return tuple(reversed(found))


def claims_overlap(patterns: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Return whether two lists of globs may let in the same file."""
    for one in grants_of(patterns):
        prefix = one.prefix
        for other in grants_of(others):
            # Most globs of a plan begin differently, and texts are compared ten times faster than globs.
            if (other.prefix.startswith(prefix) or prefix.startswith(other.prefix)) and one.overlaps(other):
                return True
    return False


def _holds(out: str, pattern: str) -> bool:
    """Return whether a glob names all that another one names; where that cannot be seen, ``False``."""
    if not is_glob(pattern):
        return matches(pattern, out)
    return lies_within(pattern, out) or lies_within(pattern, f"{out.rstrip('/')}/**")
