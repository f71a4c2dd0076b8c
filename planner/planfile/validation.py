"""Validate plan files: load them, look at their project, and say of each finding where it stands."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import QualificationError
from planner.lint import LINT_RULES, Facts, check
from planner.lint.facts import made_by
from planner.model.findings import PlanFinding
from planner.planfile.loader import collector_paused, load_with_document, shown_path
from planner.planfile.project_facts import ProjectFiles
from planner.planfile.tree import load_tree
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from planner.lint import Finding
    from planner.model.qualification import Qualification
    from planner.planfile.document import Document
    from planner.planfile.loader import LoadedPlan
    from planner.planfile.tree import PlanTree

MAX_TEXT = 1_500
"""Characters of a message or a fix; what is quoted in them comes from the project."""

_MAX_PLACE = 300


def validate_plan(
    path: Path, *, boundary: Path | None = None, today: str | None = None
) -> tuple[PlanFinding, ...]:
    """Return what is wrong, doubtful or improvable about a plan, in the order of the file.

    Dates of quarantines are judged only where ``today``
    (``YYYY-MM-DD``) is given. Raises :class:`planner.errors.PlanFileError` where the plan cannot be loaded.
    """
    return _validate(path, boundary, today)[1]


def validate_plan_tree(
    path: Path,
    *,
    boundary: Path | None = None,
    today: str | None = None,
    qualification: Qualification | None = None,
) -> tuple[PlanFinding, ...]:
    """As :func:`validate_plan`, of a plan and then of each of its sub-plans, every file once.

    With a ``qualification``, checks that it found bad are findings, too. Raises
    :class:`planner.errors.PlannerError` where a file cannot be loaded or the qualification is of another
    plan.
    """
    loaded, findings = _validate(path, boundary, today, qualification)
    if qualification is not None and qualification.plan != loaded.plan.todo_list_id:
        raise QualificationError(
            f"the qualification is of the plan '{qualification.plan}', and {shown_path(path)} is "
            f"'{loaded.plan.todo_list_id}'; qualify this one: planverify qualify {shown_path(path)}"
        )
    if not any(todo.has_sub_plan for todo in loaded.plan.items):
        return findings
    top = load_tree(path, boundary=boundary).load_all()
    prefixes: dict[Path, str] = {}
    for sub in top.sub_plans().values():
        prefixes.setdefault(sub.loaded.path, sub.prefix)
    return findings + tuple(
        each
        for file, prefix in prefixes.items()
        for each in _validate(
            file, top.widest_boundary, today, qualification, prefix, made_before=_made_before(top, prefix)
        )[1]
    )


def _made_before(top: PlanTree, prefix: str) -> frozenset[Path]:
    """Return the files that are made by the todos outside of a sub-plan for which its todos wait."""
    flat = top.flat()
    items = flat.loaded.plan.items
    by_id = {todo.id: todo for todo in items}
    waiting = [todo.id for todo in items if todo.id.startswith(prefix)]
    seen: set[str] = set()
    while waiting:
        todo_id = waiting.pop()
        if todo_id not in seen:
            seen.add(todo_id)
            waiting += [*by_id[todo_id].dependencies, *flat.children.get(todo_id, ())]
    outside = (todo_id for todo_id in seen if not todo_id.startswith(prefix))
    return frozenset(
        flat.owner(todo_id).root / made for todo_id in outside for made in made_by(by_id[todo_id])
    )


def _validate(
    path: Path,
    boundary: Path | None,
    today: str | None,
    qualification: Qualification | None = None,
    prefix: str = "",
    *,
    made_before: frozenset[Path] = frozenset(),
) -> tuple[LoadedPlan, tuple[PlanFinding, ...]]:
    loaded, document = load_with_document(path, boundary=boundary)
    facts = Facts(
        loaded.plan,
        loaded.criteria,
        ProjectFiles(loaded.root),
        today=today,
        qualification=qualification,
        qualified_prefix=prefix,
        made_before=frozenset(Path(os.path.relpath(each, loaded.root)).as_posix() for each in made_before),
    )
    name = one_line(shown_path(path), limit=_MAX_PLACE)
    with collector_paused():
        findings = [_place(found, document, name) for found in check(facts)]
        findings.sort(key=lambda finding: (finding.line or 0, finding.column or 0))
    return loaded, tuple(findings)


def _place(found: Finding, document: Document, name: str) -> PlanFinding:
    place = document.find(found.loc)
    line, column = document.source.position(place.node.at)
    rule = LINT_RULES[found.rule]
    return PlanFinding(
        rule=found.rule,
        severity=rule.severity,
        path=name,
        line=line,
        column=column,
        place=one_line(place.path, limit=_MAX_PLACE),
        todo_id=found.todo_id,
        message=one_line(found.message, limit=MAX_TEXT),
        why=rule.why,
        fix=one_line(found.fix or rule.fix, limit=MAX_TEXT),
    )
