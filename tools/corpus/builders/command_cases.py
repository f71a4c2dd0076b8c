"""Makes the case of a command criterion: its label and place from its kind, its evidence from the run."""

from __future__ import annotations

from command_runs import Seen
from tool_kinds import Kind
from tool_projects import Change, Project

from planner.model.evidence import Evidence
from planner.model.taxonomy import Category
from tools.corpus.case import Case, Gates, Group, Label, Origin, Place

MAX_SHOWN = 400
"""Characters of the source before and after that are told."""


def case_of(
    kind: Kind,
    project: Project,
    change: Change | None,
    line: int | None,
    command: str,
    seen: Seen,
    seed: int,
    gates: Gates,
) -> Case:
    """The case of one kind in one project."""
    first = change.edits[0] if change else None
    return Case(
        id=f"command-{kind.name}-{project.name}",
        group=Group.COMMAND,
        origin=Origin(
            package=project.name,
            kind=kind.name,
            seed=seed,
            file=first.path if first else None,
            line=line,
            before=first.before[:MAX_SHOWN] if first else "",
            after=(first.after or first.append)[:MAX_SHOWN] if first else "",
            command=command,
            python=seen.python,
            pytest=seen.pytest,
        ),
        gates=gates,
        label=Label(
            category=kind.category,
            owner=kind.owner,
            also=kind.also,
            place=_place(kind, change, line, seen.evidence),
        ),
        evidence=seen.evidence,
    )


def _place(kind: Kind, change: Change | None, line: int | None, evidence: Evidence) -> Place | None:
    if change is None or not kind.placed:
        return None
    raised = change.raises or kind.category is not Category.TEST_REGRESSION
    exact = kind.exact and raised and not change.vague and _is_named(change, line, evidence)
    return Place(path=change.path, first_line=line, last_line=line, exact=exact)


def _is_named(change: Change, line: int | None, evidence: Evidence) -> bool:
    """Whether the output holds the line: else nobody can be asked to say it."""
    text = f"{evidence.stdout_tail}\n{evidence.stderr_tail}"
    name = change.path.rpartition("/")[2]
    forms = (f"{name}:{line}", f'{name}", line {line}', f"{name}({line},", f"{name}: line {line}")
    return any(form in text for form in forms)
