"""``planner validate``, ``undo`` and ``schema``: commands on a plan file, without a run.

``validate`` is called after each edit of a plan and has to start fast: modules that only the other
commands need are imported inside functions.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.app import command
from planner.cli.arguments import JsonOption, PlanArgument, nearest, option, plan_or_usual
from planner.cli.exits import Status, UsageMistake, say
from planner.cli.screen import Screen, print_json, write
from planner.errors import PlanFileError, PlanTreeError
from planner.model.findings import PlanFinding
from planner.planfile.loader import shown_path
from planner.planfile.plan_folder import PlanFolder
from planner.planfile.tree import load_tree
from planner.planfile.validation import validate_plan_tree
from planner.text.display import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.planfile.tree import FlatPlan

_STYLES = {"error": "bad", "warning": "warn", "advice": "strong"}
_ALIKE = 3
"""The most findings of one rule that are shown; JSON has all of them."""


@command(
    "Exit status: 0 no errors (--strict: and no warnings), 1 errors, 2 wrong usage, 4 an unusable plan."
)
def validate(
    plan: PlanArgument = None,
    as_json: JsonOption = False,
    strict: Annotated[bool, option("--strict", "Fail for warnings, too.")] = False,
) -> int:
    """Check whether every todo of a plan can be verified by trustworthy checks, in a possible order.

    Each finding shows its place and what to do. With an error, the plan cannot be verified; a warning
    should be looked at; advice improves the plan. Sub-plans are validated, too.
    """
    try:
        tree = load_tree(plan_or_usual(plan))
        findings = validate_plan_tree(tree)
        remark = _unprotected(tree.load_all().flat())
    except (PlanFileError, PlanTreeError) as error:
        if as_json:  # a program that reads it needs the faults, too
            errors = error.errors if isinstance(error, PlanTreeError) else (error,)
            _print_document((), ready=False, remarks=[fault for each in errors for fault in each.faults])
        raise
    failing = ("error", "warning") if strict else ("error",)
    ready = not any(finding.severity in failing for finding in findings)
    if as_json:
        _print_document(findings, ready=ready, remarks=[] if remark is None else [remark])
    else:
        _show(findings, ready=ready, remark=remark)
    return Status.OK if ready else Status.FOUND


def _print_document(findings: Sequence[PlanFinding], *, ready: bool, remarks: list[str]) -> None:
    documents = [finding.model_dump(mode="json", exclude_none=True) for finding in findings]
    print_json({"ready": ready, "findings": documents, "remarks": remarks}, sort_keys=True)


def _unprotected(flat: FlatPlan) -> str | None:
    """Return a remark on todos without ``allowed_files``; ``None`` if files are protected anyway.

    By default a baseline protects the files that it has recorded; an empty list protects nothing.
    """
    # Parents are not counted: their work is done by the todos below them.
    todos = [todo for todo in flat.loaded.plan.items if not flat.children.get(todo.id)]
    count = sum(todo.allowed_files is None for todo in todos)
    policy = flat.loaded.plan.metadata
    is_open = "protected_files" in policy.model_fields_set
    has_baseline = PlanFolder(flat.loaded.root, flat.loaded.plan.todo_list_id).baseline.exists()
    if not count or policy.protected_files or (has_baseline and not is_open):
        return None
    verb = "names" if count == 1 else "name"
    if is_open:
        open_to_change = "protected_files is empty, so changed tests are not detected"
    else:
        open_to_change = "changed tests and plans are only detected after planverify baseline"
    return f"{counted(count, 'todo')} {verb} no allowed_files: {open_to_change}"


def _show(findings: Sequence[PlanFinding], *, ready: bool, remark: str | None) -> None:
    """Print the findings, at most ``_ALIKE`` of each rule, the remark, and the verdict with the counts."""
    screen, shown = Screen(), Counter[str]()
    for each in findings:
        shown[each.rule] += 1
        # One weakness is often repeated in all todos, and would hide the other findings.
        if shown[each.rule] <= _ALIKE:
            place = ":".join(str(part) for part in (each.path, each.line, each.column) if part is not None)
            severity = screen.style(each.severity.value, _STYLES[each.severity])
            screen.line(f"{screen.one_line(place)}: {severity} {each.rule} {screen.one_line(each.message)}")
            screen.labelled("fix", each.fix[:1].upper() + each.fix[1:], room=5)
    for rule, count in shown.items():
        if count > _ALIKE:
            screen.line(f"and {count - _ALIKE} more of {rule}; --json shows all")
    if remark is not None:
        screen.paragraph(remark, first=f"{screen.style('!', 'warn')} ", indent=2)
    counts = Counter(each.severity.value for each in findings)
    summary = ", ".join(
        f"{counts[name]} advice" if name == "advice" else counted(counts[name], name)
        for name in _STYLES
        if counts[name]
    )
    word = screen.style("ready", "good") if ready else screen.style("not ready", "bad")
    screen.line(f"{word}: {summary or ('1 remark' if remark else 'no findings')}")
    screen.show()


@command(
    "Exit status: 0 restored, 2 wrong usage, 4 there is no previous version, or the plan was edited since."
)
def undo(
    plan: PlanArgument = None,
    force: Annotated[
        bool, option("--force", "Restore it even if it was edited since; the edits are lost.")
    ] = False,
) -> int:
    """Restore a plan and its sub-plans as they were before their last revision."""
    return undo_last_edit(plan_or_usual(plan), force=force)


def undo_last_edit(plan: Path, *, force: bool) -> int:
    """Restore the version of a plan before its last revision, and print what was restored.

    ``force`` discards edits that were made since. Returns the exit status.
    """
    from planner.planfile.versions import undo_plan

    for path in undo_plan(plan, force=force):
        say(f"{shown_path(path)}: restored the previous version")
    return Status.OK


SCHEMAS = {
    "plan": "the plan file, in YAML or JSON",
    "outcome": "the results of a run: .planverify/outcomes.json",
    "contract": "the interface of a module: the file named by contract_path",
    "answers": "answers to questions of a plan: .planverify/answers.json",
    "failure_report": "the details of a failed todo: diagnostics/TODO_failure_report.json",
    "event": "an input line of planner step",
    "action": "an output line of planner step",
    "baseline": "the state before the work began: .planverify/plans/PLAN/baseline.json",
    "qualification": "the results of planverify qualify: .planverify/plans/PLAN/qualification.json",
}


@command(
    "\b\nNames\n"
    + "\n".join(f"  {name:<16}{text}" for name, text in SCHEMAS.items())
    + "\n\nExit status: 0 printed, 2 unknown schema."
)
def schema(name: Annotated[str, typer.Argument(metavar="NAME", help="The schema; see below.")]) -> None:
    """Print the JSON Schema (draft 2020-12) of a file, for editors and other programs."""
    from planner.planfile.schemas import schema_text

    if name not in SCHEMAS:
        raise UsageMistake(f"unknown schema '{name}'; {nearest(name, SCHEMAS, 'the schemas are')}")
    write(schema_text(name))
