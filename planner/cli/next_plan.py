"""Applies the edits that may be applied, writes the revised plan, and tells what was left out and why."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.cli import words
from planner.cli.ending import complain
from planner.edges.latest_outcomes import shown
from planner.errors import EditConflictError
from planner.planfile.versions import NewPlan, write_beside
from planner.revise.editing import apply_edits
from planner.rules.approving import edits_to_apply

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from planner.cli.question import Question
    from planner.cli.screen import Screen
    from planner.model.decision import Decisions


@dataclass(frozen=True, slots=True)
class Told:
    """One edit, and what became of it."""

    todo_id: str
    what: str
    why_not: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """What was written, applied and left out."""

    files: tuple[NewPlan, ...]
    applied: tuple[Told, ...]
    left_out: tuple[Told, ...]

    def show(self, screen: Screen) -> None:
        """Tell it to a person."""
        for position, line in enumerate(self._lines()):
            screen.paragraph(line, first="" if not position else "  ", indent=4 if position else 0)
        if self.files:
            top = self.files[0].path
            screen.line(f"  {screen.style(f'pytest --planverify {shlex.quote(shown(top))}', 'command')}")

    def tell_beside(self) -> None:
        """Tell it on standard error, where standard output is for programs."""
        for line in self._lines():
            complain(line)

    def _lines(self) -> list[str]:
        count = len(self.applied)
        edits = "1 edit applied" if count == 1 else f"{count} edits applied"
        lines = ["nothing written: no edit applies, the plan is unchanged"]
        if self.files:
            lines = [f"wrote {shown(self.files[0].path)}: {edits}"]
        lines += [f"wrote {shown(file.path)}, the sub-plan of {file.within}" for file in self.files[1:]]
        lines += [
            f"{shown(file.path)} was written anew, without the comments: its layout could not be kept"
            for file in self.files
            if not file.faithful
        ]
        lines += [f"applied: {each.todo_id}: {each.what}" for each in self.applied]
        lines += [f"left out: {each.todo_id}: {each.what}: {each.why_not}" for each in self.left_out]
        return lines


def write_revision(
    question: Question, decisions: Decisions, approved: Sequence[str], output: Path
) -> Revision:
    """Write the plan as the decisions revise it. The old files stay as they are."""
    subs = {name: sub.loaded.plan for name, sub in question.tree.sub_plans().items()}
    plans = {"": question.tree.loaded.plan, **subs}
    applied: list[Told] = []
    left_out: list[Told] = []
    for repair in decisions.repairs:
        edits, waiting = edits_to_apply(repair, approved)
        left_out += [
            Told(repair.todo_id, words.edit(edit), f"needs --approve {name}") for edit, name in waiting
        ]
        told = [Told(repair.todo_id, words.edit(edit)) for edit in edits]
        try:
            plans[repair.within] = apply_edits(plans[repair.within], edits).plan
        except EditConflictError as conflict:
            left_out += [Told(each.todo_id, each.what, str(conflict)) for each in told]
        else:
            applied += told
    files = write_beside(question.tree, plans, output)
    return Revision(files=files, applied=tuple(applied), left_out=tuple(left_out))
