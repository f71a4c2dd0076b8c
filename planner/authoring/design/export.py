"""Export of a frozen design plan as a plan for ``pytest --planverify``, and comparison with its outcomes.

Each milestone becomes a todo that depends on the milestones of the wave before. Its test files and those
acceptance criteria that are commands become test criteria; its files must exist. Other criteria are part of
the todo's instructions; in a milestone without any command they are questions to a person.
"""

from __future__ import annotations

import ast
import glob
import re
import shlex
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.catalog.commands import accepted_command
from planner.errors import DesignError
from planner.model.plan import Plan
from planner.model.verdicts import CheckKind, Verdict
from planner.planfile.latest_outcomes import find_outcomes
from planner.planfile.project_files import open_regular
from planner.text.sanitizing import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from planner.authoring.design.plan import CodeIntent, DesignPlan, Milestone
    from planner.model.outcome import Outcome
    from planner.model.plan import Todo
    from planner.planfile.loader import LoadedPlan

EXTENSION = "x-design-plan"
"""The key of a plan file that holds the id of the design plan it was exported from."""

FOLDER_PAGES = ("README.md", "CLAUDE.md")
"""The pages that the technical writer updates in every folder that a milestone changes."""

_LONGEST_INTENT = 60_000
_LONGEST_LINE = 9_000
_LARGEST_SOURCE = 4 * 1024 * 1024
"""The most bytes that are read of a source file."""


def plan_of_design(design: DesignPlan, *, root: str = ".") -> Plan:
    """Return the plan that verifies a design. Raises ``DesignError`` if the design is not frozen."""
    if design.frozen_at is None:
        raise DesignError(
            "the plan", ["the plan is not frozen; pass its gates first: planner design gate plan-docs"]
        )
    by_id = {each.id: each for each in design.milestones}
    todos: list[dict[str, Any]] = []
    before: tuple[str, ...] = ()
    for wave in design.waves:
        for milestone in (by_id[each] for each in wave.milestones):
            todo = {
                "id": milestone.id,
                "title": one_line(milestone.name, limit=_LONGEST_LINE) or milestone.id,
                "intent": clean(_instructions(milestone, design), limit=_LONGEST_INTENT),
                "acceptance_criteria": _criteria_of(milestone),
                "allowed_files": _files_of(milestone),
            }
            todos.append(todo | ({"dependencies": before} if before else {}))
        before = wave.milestones or before  # an empty wave must not cut the order of those around it
    slug = "-".join(re.findall(r"[a-z0-9]+", design.overview.title.casefold())[:5])[:80] or "plan"
    return Plan.model_validate(
        {
            "todo_list_id": f"design-{slug}-{str(design.plan_id)[:8]}",
            "workflow_name": one_line(design.overview.title, limit=_LONGEST_LINE) or slug,
            **({} if root == "." else {"root": root}),
            "items": todos,
            EXTENSION: str(design.plan_id),
        }
    )


def _criteria_of(milestone: Milestone) -> dict[str, Any]:
    """Return the acceptance criteria of a milestone's todo: commands and artifacts, or else questions."""
    commands = [f"pytest {shlex.quote(each)}" for each in milestone.tests.files if each.endswith(".py")]
    # A criterion is free text, and is written with or without backticks if it is a command.
    bare = (each.strip().strip("`").strip() for each in milestone.acceptance_criteria)
    commands += [each for each in bare if each.isprintable() and accepted_command(each)]
    files = dict.fromkeys([*milestone.touched_files, *milestone.tests.files])
    # Expected artifacts are globs: pages/[id].tsx would match pages/i.tsx.
    artifacts = [glob.escape(each) for each in files if each not in _deleted(milestone)]
    criteria: dict[str, Any] = {"expected_artifacts": artifacts} if artifacts else {}
    if commands:
        return criteria | {"tests": [{"cmd": each} for each in dict.fromkeys(commands)]}
    texts = (one_line(each, limit=_LONGEST_LINE) for each in milestone.acceptance_criteria)
    return criteria | {"manual": [{"question": f"Is this true: {each}"} for each in texts]}


def _deleted(milestone: Milestone) -> set[str]:
    """Return the files that the diffs of a milestone delete."""
    is_deletion = re.compile(r"^\+\+\+ /dev/null", re.MULTILINE)
    return {each.file for each in milestone.code_changes if is_deletion.search(each.diff)}


def _files_of(milestone: Milestone) -> tuple[str, ...]:
    """Return globs of the files that may be written: those of a milestone, and pages of their folders."""
    changed = (each.file for each in milestone.code_changes)
    files = [*milestone.touched_files, *changed, *milestone.tests.files]
    folders = dict.fromkeys(["", *(f"{each.rpartition('/')[0]}/" for each in files if "/" in each)])
    pages = [f"{folder}{page}" for folder in folders for page in FOLDER_PAGES]
    return tuple(dict.fromkeys(map(glob.escape, [*files, *pages])))


def _instructions(milestone: Milestone, design: DesignPlan) -> str:
    """Return the todo's intent: requirements, intents, tests, criteria, invariants, constraints and diffs.

    Diffs beyond ``_LONGEST_INTENT`` characters are replaced by the command that shows them.
    """
    decisions = {each.id: each for each in design.planning_context.decision_log}
    lines = [*_listed("Requirements:", milestone.requirements)]
    for intent in milestone.code_intents:
        params = "".join(f", {name} = {value}" for name, value in sorted(intent.params.items()))
        lines.append(f"{intent.id} {_place_of(intent)}: {intent.behavior}{params}")
        lines += [f"  because of {ref}: {decisions[ref].decision}" for ref in intent.decision_refs]
    scenarios = milestone.tests.scenarios
    for name in ("normal", "edge", "error"):
        lines += _listed(f"Tests, {name}:", getattr(scenarios, name))
    lines += _listed("It is done when:", milestone.acceptance_criteria)
    lines += _listed("Keep:", design.invisible_knowledge.invariants)
    lines += _listed("Constraints:", (each.description for each in design.planning_context.constraints))
    # Diffs come last and are cut first: they can be shown by a command, and the rest cannot be left out.
    room = _LONGEST_INTENT - sum(map(len, lines))
    for change in milestone.code_changes:
        room -= len(change.diff) + len(change.file)
        shown = change.diff.rstrip() if room > 0 else f"see planner design show {change.id}"
        lines += [f"{change.id} for {change.intent_ref}, {change.file}:", shown]
    return "\n".join(lines)


def _listed(title: str, texts: Iterable[str]) -> list[str]:
    items = [f"- {each}" for each in texts]
    return [title, *items] if items else []


def _place_of(intent: CodeIntent) -> str:
    return intent.file if intent.function is None else f"{intent.file} {intent.function}"


# -- reconciliation ------------------------------------------------------------------------------------


class Match(StrEnum):
    """Relation of the code to the design."""

    VERIFIED = "verified"
    MISSING = "missing"
    DEVIATING = "deviating"


class Reconciled(NamedTuple):
    """The reconciled state of a milestone or an intent."""

    id: str
    title: str
    match: Match
    because: str = ""


def reconcile(design: DesignPlan, loaded: LoadedPlan) -> list[Reconciled]:
    """Compare a design with the outcomes of the plan exported from it, milestone by milestone.

    A milestone is verified if its todo is done by the criteria of the design, none of its files has
    changed since, and the code of all its intents exists. The result has each milestone, by number,
    followed by its intents. Raises :class:`planner.errors.PlannerError` if the plan is of another design,
    or was not verified as it is now.
    """
    if loaded.plan.extensions.get(EXTENSION) != str(design.plan_id):
        raise DesignError(
            str(loaded.path),
            [f"it was not made from the design plan {design.plan_id}; planner design export"],
        )
    found = find_outcomes(loaded)
    if found.document is None or found.plan_change is not None:
        raise DesignError(
            str(loaded.path), [f"it was not verified in its current state; run first: {found.verify}"]
        )
    wanted = {each.id: each for each in plan_of_design(design).items}
    current = {each.id: each for each in loaded.plan.items}
    outcomes = {each.todo_id: each for each in found.document.outcomes}
    results: list[Reconciled] = []
    for milestone in sorted(design.milestones, key=lambda each: each.number):
        problem = _problem_of(milestone.id, wanted, current, outcomes.get(milestone.id))
        changed = found.files.by_todo.get(milestone.id, ())
        if problem is None and changed:
            problem = (Match.DEVIATING, f"{changed[0]} has changed since it was verified")
        intents = list(_intents_of(milestone, loaded.root, is_verified=problem is None))
        lost = [each.id for each in intents if each.match is Match.MISSING]
        if problem is None and lost:
            problem = (Match.DEVIATING, f"it is done, but these checks are missing: {', '.join(lost)}")
        match, because = problem or (Match.VERIFIED, "")
        results += [Reconciled(milestone.id, milestone.name, match, because), *intents]
    return results


def _problem_of(
    name: str, wanted: dict[str, Todo], current: dict[str, Todo], outcome: Outcome | None
) -> tuple[Match, str] | None:
    """Return what is wrong with a milestone by its todo and its outcome; ``None`` if it is done."""
    if name not in current:
        return Match.MISSING, "its todo was removed from the plan"
    if current[name].acceptance_criteria != wanted[name].acceptance_criteria:
        return Match.DEVIATING, "its criteria in the plan differ from those of the design; export it again"
    if outcome is None:
        return Match.MISSING, "it was not verified"
    if outcome.success:
        return None
    if outcome.blocked_by:
        return Match.MISSING, f"it waits for {', '.join(outcome.blocked_by)}"
    open_ = [each for each in outcome.checks if each.counts_as is not Verdict.PASSED]
    red = [each for each in open_ if each.counts_as.is_red]
    absent = [each for each in red if each.kind is CheckKind.ARTIFACT]
    # Without a red check, the work is not wrong but not there yet, or not decided.
    match = Match.MISSING if absent or not red else Match.DEVIATING
    first = next(iter([*absent, *red, *open_]), None)
    if first is None:
        return match, "it is not done"
    if absent:
        return match, f"{first.title} does not exist"
    return match, f"{first.cmd or first.title or first.id}: {first.counts_as.value.replace('_', ' ')}"


def _intents_of(milestone: Milestone, root: Path, *, is_verified: bool) -> Iterator[Reconciled]:
    """Yield the state of each intent; one whose code exists is only verified if its milestone is."""
    deleted = _deleted(milestone)
    unverified = (Match.DEVIATING, f"it exists, but {milestone.id} is not verified")
    for intent in milestone.code_intents:
        # Where the milestone deletes the file, its absence is no fault.
        problem = None if intent.file in deleted else _absence_of(intent, root)
        found = (Match.VERIFIED, "") if is_verified else unverified
        yield Reconciled(
            intent.id, _place_of(intent), *(found if problem is None else (Match.MISSING, problem))
        )


def _absence_of(intent: CodeIntent, root: Path) -> str | None:
    """Return a message if the intent's file is missing, or in a Python file its function; else ``None``."""
    try:
        with open_regular(root / intent.file) as file:
            source = file.read(_LARGEST_SOURCE)
    except OSError:
        return f"{intent.file} does not exist"
    if intent.function is None or not intent.file.endswith(".py"):
        return None
    try:
        names = set(_definitions(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return f"{intent.file} cannot be parsed as Python"
    wanted = intent.function.partition("(")[0].strip()
    return None if wanted in names else f"{intent.file} defines no {wanted}"


def _definitions(tree: ast.AST, above: str = "") -> Iterator[str]:
    """Yield the name of every function and class, both alone and qualified by those around it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from (node.name, f"{above}{node.name}")
            yield from _definitions(node, f"{above}{node.name}.")
        else:
            yield from _definitions(node, above)
