"""Decomposition of a goal into todos, as one flat plan or a plan with a sub-plan for each phase.

A goal is an outline of pieces (:mod:`planner.authoring.outline`). For each leaf a template is chosen by
the leaf's words and filled with facts of the repository; the todos of numbered pieces depend on those of
the piece before. Words and domains are data, in ``goal_words.toml``. No language model is involved.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from planner.authoring.first_plan import fresh_id, make_plan, root_for, short_title
from planner.authoring.plan_templates import fill_template, values_of_goal
from planner.catalog.tables import load_table
from planner.lint.rules import MANY_TODOS
from planner.model.plan import CommandSpec
from planner.planfile.loader import load_plan_text
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from planner.authoring.outline import Piece
    from planner.model.plan import Plan, Todo

PHASES = "phases"
"""The folder of the plans of phases, beside the plan that names them."""
MANY_DOMAINS = 3
"""The number of different domains from which on phases are suggested."""

_WORDS = load_table("goal_words", "planner.authoring")


@dataclass(slots=True, kw_only=True)
class Decomposer:
    """Decomposes goals with the facts of one repository."""

    facts: Mapping[str, Any]
    """The facts of the repository, as :func:`planner.authoring.plan_templates.read_values` returns them."""
    folder: Path
    """The folder of the repository."""
    done_before: str = ""
    """The results of earlier work, which are added to the intent of every todo."""
    _todo_ids: set[str] = field(default_factory=set[str], init=False)
    _phase_ids: set[str] = field(default_factory=set[str], init=False)
    """The ids in use in the plans that are being made; names of files follow from both."""

    def plans(self, goal: Piece, output: Path, *, depth: int) -> dict[Path, Plan]:
        """Return the plan for a goal, and with a ``depth`` above 1 a plan for each phase, by their files.

        The plan of ``output`` comes first. ``depth`` is the greatest number of levels of plans; the todos
        of a plan with levels below are the goal's phases. ``output`` must be inside the repository then.
        """
        self._todo_ids.clear()
        self._phase_ids.clear()
        return self._plans(goal, output, depth)

    def _plans(self, goal: Piece, output: Path, depth: int) -> dict[Path, Plan]:
        if depth == 1:
            return {output: self._plan(goal, self._todos(goal, output), output)}
        plans: dict[Path, Plan] = {}
        items: list[dict[str, Any]] = []
        for number, phase in enumerate(goal.parts, 1):
            phase_id = fresh_id(phase.title, self._phase_ids)
            below = output.parent / PHASES / f"{phase_id}.yaml"
            # A phase whose parts have none of their own is small enough for one plan.
            inner = depth - 1 if any(part.parts for part in phase.parts) else 1
            plans |= self._plans(phase, below, inner)
            items.append(
                {
                    "id": phase_id,
                    "title": short_title(f"Phase {number}: {phase.title}"),
                    "sub_plan": below.resolve().relative_to(self.folder.resolve()).as_posix(),
                    **({"dependencies": [items[-1]["id"]]} if items and goal.in_order else {}),
                }
            )
        return {output: self._plan(goal, items, output), **plans}

    def _todos(self, goal: Piece, output: Path) -> list[Todo]:
        """Return the todos of all leaves.

        Numbered leaves depend on the leaf before. The commands of a piece are criteria of its last todo.
        The last leaf also runs the checks of the whole repository, and depends on all others.
        """
        leaves = list(goal.leaves())
        proofs: dict[int, list[str]] = {}
        for piece in goal.walk():
            *_, final = piece.leaves()  # a command of a heading proves all parts below it
            proofs.setdefault(id(final), []).extend(piece.commands)
        found: list[Todo] = []
        ends: list[str] = []
        for leaf in leaves:
            is_end = leaf is leaves[-1]
            todos = self._fill_template(leaf, goal, is_end=is_end, output=output)
            inner = {name for todo in todos for name in todo.dependencies}
            # A template may make several todos; those on which no other of them depends are the ends of
            # the leaf.
            last = [todo.id for todo in todos if todo.id not in inner]
            after = ends[-1:] if goal.in_order else []
            for todo in todos:
                # The others wait for the leaf before by way of these.
                before = after if not todo.dependencies else []
                commands: list[str] = []
                if todo.id in last:
                    before = [*before, *(ends if is_end else [])]
                    # Earlier todos, such as that of the tests, are done while the commands still fail.
                    commands = proofs[id(leaf)]
                found.append(_extended(todo, before, commands, self.done_before))
            ends += last
        return found

    def _fill_template(self, leaf: Piece, goal: Piece, *, is_end: bool, output: Path) -> Sequence[Todo]:
        """Return the todos of the template for a leaf; repository-wide checks only where ``is_end``."""
        text = leaf.goal if leaf is goal else f"{leaf.goal}\n(Part of: {one_line(goal.title, limit=300)})"
        of_goal = values_of_goal(leaf.title, self.facts, taken=self._todo_ids)
        values = {**self.facts, **of_goal, "goal": text, "root": root_for(output, self.folder)}
        values |= {} if is_end else {"every_test": [], "checks": []}
        filled = fill_template(template_for(leaf.title), values)
        loaded = load_plan_text(filled, output, boundary=self.folder)
        self._todo_ids.update(todo.id for todo in loaded.plan.items)
        return loaded.plan.items

    def _plan(self, goal: Piece, items: Sequence[Any], output: Path) -> Plan:
        root, tools = root_for(output, self.folder), self.facts["tools"]
        return make_plan(goal.title, items, root=root, tools=tools, **{"x-goal": goal.title})


def _extended(todo: Todo, before: Sequence[str], commands: Sequence[str], results: str) -> Todo:
    """Return a todo with further dependencies and criteria, and with earlier results in its intent."""
    changes: dict[str, Any] = {}
    if before:
        changes["dependencies"] = tuple(dict.fromkeys([*before, *todo.dependencies]))
    criteria = todo.acceptance_criteria
    stated = {spec.cmd for spec in criteria.tests}
    if new := [CommandSpec(cmd=each) for each in dict.fromkeys(commands) if each not in stated]:
        changes["acceptance_criteria"] = criteria.model_copy(update={"tests": (*criteria.tests, *new)})
    if results:
        changes["intent"] = f"{todo.intent or ''}\n{results}".strip()
    return todo.model_copy(update=changes)


def template_for(text: str) -> str:
    """Return the first template whose words occur in the text of a piece; ``feature`` if none do."""
    return next((name for name, words in _WORDS["templates"].items() if _mentions(words, text)), "feature")


def reasons_for_phases(goal: Piece, todos: int) -> list[str]:
    """Return why a goal of so many todos should be planned in phases; empty if a flat plan is enough."""
    if len(goal.parts) < 2:
        return []
    reasons: list[str] = []
    if todos > MANY_TODOS:
        reasons.append(f"about {todos} todos, and more than {MANY_TODOS} are hard to follow")
    if any(part.is_phase or part.parts for part in goal.parts):
        reasons.append("the goal lists phases")
    titles = [each.title for each in goal.leaves()]
    domains = sorted(
        name for name, words in _WORDS["domains"].items() if any(_mentions(words, each) for each in titles)
    )
    if len(domains) >= MANY_DOMAINS and todos > 2 * MANY_DOMAINS:
        reasons.append(f"it spans several domains: {', '.join(domains)}")
    return reasons


def _mentions(words: str, text: str) -> bool:
    return re.search(rf"\b(?:{words})\b", text, re.IGNORECASE) is not None
