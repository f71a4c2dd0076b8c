"""Validation of plan files: load them, lint them with facts of their project, and locate each finding.

Faults that prevent a plan from being loaded are errors and no findings. The rules are in
:mod:`planner.lint`.
"""

from __future__ import annotations

import os
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.lint import LINT_RULES, LintFacts, LintFinding, check
from planner.lint.facts import made_by
from planner.model.findings import PathKind, PlanFinding
from planner.planfile.loader import LoadedPlan, load_plan, shown_path
from planner.planfile.project_facts import misplaced_root
from planner.planfile.project_files import RootedFiles, is_below, source_files, walk
from planner.policy.dependencies import reachable
from planner.text.glob_patterns import is_glob, matches, plain
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from planner.planfile.tree import FlatPlan, PlanTree


MAX_TEXT = 1_500
"""Limit of characters of a message or fix, which may quote the project."""

_MAX_PLACE = 300
_MAX_FILES = 10_000
"""Limit of listed files of a folder."""


def validate_plan(
    path: Path, text: str | None = None, *, boundary: Path | None = None
) -> tuple[PlanFinding, ...]:
    """Return the findings about a plan, in file order; about ``text`` if it is not written there yet.

    Raises :class:`planner.errors.PlanFileError` if the plan cannot be loaded.
    """
    return _findings(load_plan(path, text=text, boundary=boundary))


def validate_plan_tree(top: PlanTree) -> tuple[PlanFinding, ...]:
    """Like :func:`validate_plan`, for a plan and then for its sub-plans, each file once.

    Raises :class:`planner.errors.PlannerError` if a file cannot be loaded.
    """
    loaded = top.loaded
    found = [*_findings(loaded)]
    flat = top.load_all().flat()
    seen = {loaded.path}
    for sub in top.sub_plans().values():
        if sub.loaded.path not in seen:
            seen.add(sub.loaded.path)
            found += _findings(sub.loaded, made_before=_made_before(flat, sub), is_sub_plan=True)
    return tuple(found)


def _made_before(flat: FlatPlan, sub: PlanTree) -> frozenset[str]:
    """Return files that are created before a sub-plan's todos start, by todos outside of it."""
    by_id = {todo.id: todo for todo in flat.loaded.plan.items}
    # A parent is done when the todos below it are, so their files exist, too.
    before = reachable(
        (todo_id for todo_id in by_id if todo_id.startswith(sub.prefix)),
        lambda todo_id: [*by_id[todo_id].dependencies, *flat.children.get(todo_id, ())],
    )
    outside = (by_id[todo_id] for todo_id in before if not todo_id.startswith(sub.prefix))
    made = (flat.owner(todo.id).root / file for todo in outside for file in made_by(todo))
    return frozenset(Path(os.path.relpath(file, sub.loaded.root)).as_posix() for file in made)


def _findings(loaded: LoadedPlan, **known: Any) -> tuple[PlanFinding, ...]:
    """Return one file's findings in order; ``known`` are further arguments of :class:`LintFacts`."""
    facts = LintFacts(loaded.plan, loaded.criteria, ProjectFiles(loaded.root), **known)
    found = list(check(facts))
    if (misplaced := misplaced_root(loaded)) is not None:
        found.append(LintFinding("root-misplaced", ("todo_list_id",), None, *misplaced))
    findings = [_place(each, loaded) for each in found]
    return tuple(sorted(findings, key=lambda finding: (finding.line or 0, finding.column or 0)))


def _place(found: LintFinding, loaded: LoadedPlan) -> PlanFinding:
    """Return a lint finding with its position in the file and texts in one line."""
    place = loaded.document.find(found.loc)
    line, column = loaded.document.source.position(place.start)
    rule = LINT_RULES[found.rule]
    return PlanFinding(
        rule=found.rule,
        severity=rule.severity,
        path=one_line(shown_path(loaded.path), limit=_MAX_PLACE),
        line=line,
        column=column,
        place=one_line(place.path, limit=_MAX_PLACE),
        todo_id=found.todo_id,
        message=one_line(found.message, limit=MAX_TEXT),
        why=rule.why,
        fix=one_line(found.fix or rule.fix, limit=MAX_TEXT),
    )


# -- the project ------------------------------------------------------------------------------------------


class ProjectFiles(RootedFiles):
    """Implementation of :class:`planner.lint.Project` for the files below one root."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        # Per object, as a cache on the method would keep every object alive.
        self.kind = cache(self._kind)
        self.files = cache(self._source_files)

    def text(self, path: str) -> str | None:
        """Return the text of a file; ``None`` if it is missing, outside, too large, binary or not UTF-8."""
        file = self.read(path)
        if file is None or not file.is_whole or file.is_binary:
            return None
        try:
            return file.data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return None

    def _source_files(self, folder: str) -> tuple[str, ...]:
        """Return Python files below a folder, up to a limit, without following links."""
        start = "" if folder == "." else f"{folder.rstrip('/')}/"
        return tuple(f"{start}{path}" for path in islice(source_files(f"{self._root}/{start}"), _MAX_FILES))

    def glob_holds(self, pattern: str) -> bool:
        """Return whether the path exists, or the glob matches a file of a project that is not too large."""
        path = plain(pattern).removesuffix("/**")
        if not is_glob(path):
            return self.kind(path) is not PathKind.MISSING
        return len(self._paths) > _MAX_FILES or any(matches(path, pattern) for path in self._paths)

    @cached_property
    def _paths(self) -> tuple[str, ...]:
        return tuple(islice(walk(self._root), _MAX_FILES + 1))

    def _kind(self, path: str) -> PathKind:
        """Return the kind of a path; what is neither file nor folder counts as outside."""
        place = f"{self._root}/{path}"
        if not os.path.exists(place):
            return PathKind.MISSING
        if not is_below(os.path.realpath(place), self._root):
            return PathKind.OUTSIDE
        if os.path.isdir(place):
            return PathKind.FOLDER
        return PathKind.FILE if os.path.isfile(place) else PathKind.OUTSIDE
