"""Validate plan files: load them, look at their project, and say of each finding where it stands."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.errors import QualificationError
from planner.lint import LINT_RULES, Facts, Finding, check
from planner.lint.facts import made_by
from planner.model.findings import PlanFinding
from planner.planfile.loader import collector_paused, load_with_document, shown_path
from planner.planfile.project_facts import ProjectFiles
from planner.planfile.tree import load_tree
from planner.policy.dependencies import dependency_order
from planner.text.glob_patterns import is_glob
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.plan import Plan
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
    uncovered = tuple(_uncovered(path, top, boundary))
    below = (
        each
        for file, prefix in prefixes.items()
        for each in _validate(
            file, top.widest_boundary, today, qualification, prefix, made_before=_made_before(top, prefix)
        )[1]
    )
    return (*findings, *uncovered, *below)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """A plan with what was safe to correct in it."""

    loaded: LoadedPlan
    plan: Plan
    made: tuple[PlanFinding, ...]
    """What was corrected."""


def fix_plan(path: Path, *, boundary: Path | None = None) -> Fixed:
    """Return a plan file with the corrections that change nothing but what a finding is about.

    Files that a todo must make are added to its ``allowed_files``, the todos that make what it needs to its
    ``dependencies`` where that closes no circle, and retries are set where there are none or too many. Its
    sub-plans are left as they are. Nothing is written.
    """
    loaded, document = load_with_document(path, boundary=boundary)
    plan, made = loaded.plan, list[PlanFinding]()
    name = one_line(shown_path(path), limit=_MAX_PLACE)
    for found in check(Facts(plan, loaded.criteria, ProjectFiles(loaded.root))):
        if found.change is None or found.todo_id is None:
            continue
        key, value = found.change
        todo = plan.todo(found.todo_id)
        held: Any = getattr(todo, key)
        changed: Any = (*held, value) if isinstance(held, tuple) else value
        if isinstance(held, tuple) and value in held:
            continue
        items = [each.model_copy(update={key: changed}) if each is todo else each for each in plan.items]
        with suppress(ValueError):  # a circle
            dependency_order(items)
            plan = plan.model_copy(update={"items": tuple(items)})
            made.append(_place(found, document, name))
    return Fixed(loaded=loaded, plan=plan, made=tuple(made))


def _uncovered(path: Path, top: PlanTree, boundary: Path | None) -> Iterator[PlanFinding]:
    """Yield the files that a parent must make, and no todo below it does."""
    flat, name = top.flat(), one_line(shown_path(path), limit=_MAX_PLACE)
    by_id = {todo.id: todo for todo in flat.loaded.plan.items}
    document = load_with_document(path, boundary=boundary)[1]
    for index, todo in enumerate(top.loaded.plan.items):
        if not todo.has_sub_plan:
            continue
        below, waiting = list[str](), list(flat.children.get(todo.id, ()))
        while waiting:
            below.append(waiting.pop())
            waiting += flat.children.get(below[-1], ())
        made = {
            os.path.normpath(flat.owner(each).root / it) for each in below for it in made_by(by_id[each])
        }
        for position, artifact in enumerate(todo.acceptance_criteria.expected_artifacts):
            file = top.loaded.root / artifact.path
            if not is_glob(artifact.path) and not file.exists() and os.path.normpath(file) not in made:
                loc = ("items", index, "acceptance_criteria", "expected_artifacts", position, "path")
                message = f"'{todo.id}' must make {artifact.path}, and no todo below it does"
                fix = f"list {artifact.path} among the expected_artifacts of a todo below '{todo.id}'"
                yield _place(Finding("parent-uncovered", loc, todo.id, message, fix), document, name)


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
