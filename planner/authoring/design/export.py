"""Export of a frozen design plan as a plan for ``pytest --planverify``, and comparison with its outcomes.

Each milestone becomes a todo that depends on the milestones of the wave before. Its test files and those
acceptance criteria that are commands become test criteria; its files must exist. Other criteria are part of
the todo's instructions; in a milestone without any command they are questions to a person.
"""

from __future__ import annotations

import glob
import re
import shlex
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from planner.authoring.first_plan import fresh_id, make_plan
from planner.catalog.commands import accepted_command
from planner.errors import DesignError
from planner.model.verdicts import TodoState
from planner.planfile.latest_outcomes import find_outcomes
from planner.planfile.loader import shown_path
from planner.text.sanitizing import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.authoring.design.plan import DesignPlan, Milestone
    from planner.model.plan import Plan
    from planner.planfile.loader import LoadedPlan

EXTENSION = "x-design-plan"
"""The key of a plan file that holds the id of the design plan it was exported from."""

FOLDER_PAGES = ("README.md", "CLAUDE.md")
"""The pages that the technical writer updates in every folder that a milestone changes."""

_LONGEST_INTENT = 60_000
_LONGEST_LINE = 9_000


def plan_of_design(design: DesignPlan, *, root: str = ".") -> Plan:
    """Return the plan that verifies a design. Raises ``DesignError`` if the design is not frozen."""
    if design.frozen_at is None:
        fault = "it is not frozen; pass its gates first: planner design gate plan-docs"
        raise DesignError("the plan", fault)
    by_id = {each.id: each for each in design.milestones}
    todos: list[dict[str, Any]] = []
    before: tuple[str, ...] = ()
    for wave in design.waves:
        for milestone in (by_id[each] for each in wave.milestones):
            todo = {
                "id": milestone.id,
                "title": one_line(milestone.name, limit=_LONGEST_LINE) or milestone.id,
                "intent": _instructions(milestone, design),
                "acceptance_criteria": _criteria_of(milestone),
                "allowed_files": _files_of(milestone),
            }
            todos.append(todo | ({"dependencies": before} if before else {}))
        before = wave.milestones or before  # an empty wave must not cut the order of those around it
    title, design_id = design.overview.title, str(design.plan_id)
    plan_id = f"design-{fresh_id(title, set())}-{design_id[:8]}"
    more: dict[str, Any] = {"todo_list_id": plan_id, EXTENSION: design_id}
    return make_plan(title, todos, root=root, **more)


def _criteria_of(milestone: Milestone) -> dict[str, Any]:
    """Return the acceptance criteria of a milestone's todo: commands and artifacts, or else questions."""
    commands = [f"pytest {shlex.quote(each)}" for each in milestone.tests.files if each.endswith(".py")]
    # A criterion is free text, and is written with or without backticks if it is a command.
    bare = (each.strip().strip("`").strip() for each in milestone.acceptance_criteria)
    commands += [each for each in bare if each.isprintable() and accepted_command(each)]
    files = dict.fromkeys([*milestone.touched_files, *milestone.tests.files])
    is_deletion = re.compile(r"^\+\+\+ /dev/null", re.MULTILINE)
    deleted = {each.file for each in milestone.code_changes if is_deletion.search(each.diff)}
    # Expected artifacts are globs: pages/[id].tsx would match pages/i.tsx.
    artifacts = [glob.escape(each) for each in files if each not in deleted]
    criteria: dict[str, Any] = {"expected_artifacts": artifacts} if artifacts else {}
    if commands:
        return criteria | {"tests": [{"cmd": each} for each in dict.fromkeys(commands)]}
    texts = (one_line(each, limit=_LONGEST_LINE) for each in milestone.acceptance_criteria)
    return criteria | {"manual": [{"question": f"Is this true: {each}"} for each in texts]}


def _files_of(milestone: Milestone) -> tuple[str, ...]:
    """Return globs of the files that may be written: those of a milestone, and pages of their folders."""
    changed = (each.file for each in milestone.code_changes)
    files = [*milestone.touched_files, *changed, *milestone.tests.files]
    folders = dict.fromkeys(["", *(f"{each.rpartition('/')[0]}/" for each in files if "/" in each)])
    pages = [f"{folder}{page}" for folder in folders for page in FOLDER_PAGES]
    return tuple(dict.fromkeys(map(glob.escape, [*files, *pages])))


def _instructions(milestone: Milestone, design: DesignPlan) -> str:
    """Return the todo's intent: requirements, intents, tests, criteria, invariants, constraints and diffs.

    The middle of a text that is longer than ``_LONGEST_INTENT`` is cut.
    """
    decisions = {each.id: each.decision for each in design.planning_context.decision_log}
    scenarios = milestone.tests.scenarios
    intents: list[str] = []
    for each in milestone.code_intents:
        params = "".join(f", {name} = {value}" for name, value in sorted(each.params.items()))
        reasons = "".join(f"\n  because of {ref}: {decisions[ref]}" for ref in each.decision_refs)
        place = " ".join(filter(None, (each.id, each.file, each.function)))
        intents.append(f"{place}: {each.behavior}{params}{reasons}")
    listed = {
        "Requirements": milestone.requirements,
        "Intents": intents,
        "Tests, normal": scenarios.normal,
        "Tests, edge": scenarios.edge,
        "Tests, error": scenarios.error,
        "It is done when": milestone.acceptance_criteria,
        "Keep": design.invisible_knowledge.invariants,
        "Constraints": [each.description for each in design.planning_context.constraints],
    }
    parts = ["\n- ".join([f"{title}:", *texts]) for title, texts in listed.items() if texts]
    parts += (
        f"{each.id} for {each.intent_ref}, {each.file}:\n{each.diff.rstrip()}"
        for each in milestone.code_changes
    )
    return clean("\n".join(parts), limit=_LONGEST_INTENT)


# -- reconciliation ------------------------------------------------------------------------------------


class Match(StrEnum):
    """Relation of the code to the design."""

    VERIFIED = "verified"
    MISSING = "missing"
    DEVIATING = "deviating"


def reconcile(design: DesignPlan, loaded: LoadedPlan) -> Iterator[tuple[Milestone, Match, str]]:
    """Compare a design with the outcomes of the plan exported from it; yield each milestone by number.

    A milestone is verified if its todo is done by the criteria of the design, and none of its files has
    changed since. Raises :class:`planner.errors.PlannerError` if the plan is of another design, or was not
    verified as it is now.
    """
    if loaded.plan.extensions.get(EXTENSION) != str(design.plan_id):
        fault = f"it was not made from the design plan {design.plan_id}; planner design export"
        raise DesignError(shown_path(loaded.path), fault)
    found = find_outcomes(loaded)
    if found.document is None or found.plan_change is not None:
        fault = f"it was not verified in its current state; run first: {found.verify}"
        raise DesignError(shown_path(loaded.path), fault)
    wanted = {each.id: each.acceptance_criteria for each in plan_of_design(design).items}
    current = {each.id: each.acceptance_criteria for each in loaded.plan.items}
    outcomes = {each.todo_id: each for each in found.document.outcomes}

    for milestone in sorted(design.milestones, key=lambda each: each.number):
        name = milestone.id
        outcome, changed = outcomes.get(name), found.files.by_todo.get(name)
        match, because = Match.DEVIATING, ""
        if current.get(name) != wanted[name]:
            because = "its criteria in the plan differ from the design; export it again"
        elif outcome is None or outcome.state in (TodoState.BLOCKED, TodoState.PENDING):
            match, because = Match.MISSING, "it was not verified"
        elif not outcome.success:
            because = f"it is {outcome.state or 'not done'}; planner next shows the details"
        elif changed:
            because = f"{changed[0]} has changed since it was verified"
        else:
            match = Match.VERIFIED
        yield milestone, match, because
