"""Which files a todo may write, and which of the todos under work may write the same."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from planner.policy.allowed_files import is_exclusion, lies_within
from planner.text.glob_patterns import globs_overlap, is_glob, literal_prefix, matches

if TYPE_CHECKING:
    from planner.model.plan import Todo

_REPORT = "diagnostics/{}_failure_report.json"


def claimed_files(todo: Todo) -> tuple[str, ...]:
    """The globs of the files that a todo may write, those that take files out again (``!``) among them.

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
    report = _REPORT.format(todo.parent_id)
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
