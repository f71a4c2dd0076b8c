"""What ``planner next`` is asked: a plan with its sub-plans, outcomes of it, and what they call for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from planner.cli.ending import UsageMistake
from planner.cli.narrowing import narrowed
from planner.edges.failure_contexts import gather
from planner.edges.latest_outcomes import find_outcomes
from planner.edges.project.tools import configured_tools
from planner.edges.run_history import blocked_since
from planner.planfile.tree import load_tree
from planner.rules.deciding import decide, todos_to_explain

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from planner.model.context import FailureContext
    from planner.model.decision import Decisions
    from planner.model.outcome import OutcomeDocument
    from planner.planfile.tree import PlanTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A plan with its sub-plans, and outcomes that are of it."""

    tree: PlanTree
    document: OutcomeDocument

    def decide(self, approved: Sequence[str], todo_ids: Sequence[str] = ()) -> Decisions:
        """Decide about the plan, or only about what concerns some todos."""
        loaded = self.tree.loaded
        subs = {name: sub.loaded.plan for name, sub in self.tree.sub_plans().items()}
        for todo_id in todo_ids:
            self._known(todo_id)
        explained = todos_to_explain(loaded.plan, self.document, subs)
        if todo_ids:
            explained = tuple(
                name
                for name in explained
                if any(todo_id == name or self._repairs(todo_id, name) for todo_id in todo_ids)
            )
        decisions = decide(
            loaded.plan,
            self.document,
            contexts=self._contexts(explained),
            subs=subs,
            approved=approved,
            tools=configured_tools(loaded.root),
            since=blocked_since(loaded.root, loaded.plan.todo_list_id),
        )
        return narrowed(decisions, todo_ids) if todo_ids else decisions

    def _contexts(self, todo_ids: Sequence[str]) -> dict[str, FailureContext]:
        """What could be read about the todos; the files of each lie below the root of its own plan."""
        if not todo_ids:
            return {}
        flat = self.tree.flat()
        by_root: dict[Path, list[str]] = {}
        for name in todo_ids:
            by_root.setdefault(flat.owner(name).root, []).append(name)
        found: dict[str, FailureContext] = {}
        for root, names in by_root.items():
            part = replace(flat.loaded, root=root)
            found |= gather(part, self.document, names, reports=flat.loaded.root)
        return found

    def _repairs(self, todo_id: str, parent: str) -> bool:
        """Whether the one todo is a branch of the other."""
        found = self.tree.find(todo_id)
        return found.todo.parent_id is not None and parent == found.tree.prefix + found.todo.parent_id

    def _known(self, todo_id: str) -> None:
        try:
            self.tree.find(todo_id)
        except KeyError:
            from planner.cli.arguments import nearest

            names = [each.id for each in self.tree.walk()]
            raise UsageMistake(
                f"there is no todo '{todo_id}' in the plan; {nearest(todo_id, names, 'the todos are')}"
            ) from None


def load_question(plan: Path, outcomes: Path | None) -> Question:
    """Load what decisions rest on. Outcomes must be there, and of this plan as it is now."""
    tree = load_tree(plan).load_all()
    subs = {name: sub.loaded for name, sub in tree.sub_plans().items()}
    return Question(tree=tree, document=find_outcomes(tree.loaded, outcomes, subs).current())
