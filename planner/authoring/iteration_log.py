"""The plan file of an iteration, and the log of all iterations of a project.

The log, ``.planverify/iterations.jsonl``, has a line for each iteration that was planned and one for each
that ended. Whether an iteration succeeded is decided by the outcomes of its plan alone; only a rollback is
recorded on a person's word.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any, Literal

from pydantic import TypeAdapter, ValidationError

from planner.authoring.iterations import (
    PROTECTED_FILES,
    PROTECTED_FOLDERS,
    TOOL_CRITERIA,
    IterationOutcome,
    IterationPlan,
    IterationRecord,
)
from planner.authoring.repository import accepted
from planner.errors import PlannerError
from planner.model.base import Value
from planner.model.plan import Plan
from planner.planfile.file_writer import replace_file
from planner.planfile.latest_outcomes import find_outcomes
from planner.planfile.loader import load_plan
from planner.planfile.plan_folder import HOME, make_home

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_LOG = "iterations.jsonl"
_SLUG_WORDS = 5


class Planned(Value):
    """A line of the log: an iteration was planned; ``file`` is its plan file, relative to the root."""

    kind: Literal["planned"] = "planned"
    plan: IterationPlan
    file: str


class Ended(Value):
    """A line of the log: an iteration has ended."""

    kind: Literal["ended"] = "ended"
    record: IterationRecord


_LINE: TypeAdapter[Planned | Ended] = TypeAdapter(Planned | Ended)


class IterationLog:
    """The log of a project's iterations, read once and rewritten for each line that is added."""

    def __init__(self, root: Path) -> None:
        """Read the log. Raises :class:`planner.errors.PlannerError` if one of its lines is not valid."""
        self._root = root
        self._path = root / HOME / _LOG
        self._lines: list[Planned | Ended] = []
        text = self._path.read_text(encoding="utf-8") if self._path.exists() else ""
        for number, line in enumerate(text.splitlines(), 1):
            try:
                self._lines.append(_LINE.validate_json(line))
            except ValidationError:
                raise PlannerError(
                    f"{self._path}:{number}: this line is not an iteration; delete it, or move the file "
                    "away"
                ) from None

    @property
    def records(self) -> list[IterationRecord]:
        """The iterations that have ended, oldest first."""
        return [each.record for each in self._lines if isinstance(each, Ended)]

    @property
    def open(self) -> Planned | None:
        """The iteration that was planned last, if it has not ended."""
        last = self._lines[-1] if self._lines else None
        return last if isinstance(last, Planned) else None

    def begin(self, plan: IterationPlan, file: str) -> None:
        """Record that an iteration was planned in ``file``."""
        self._add(Planned(plan=plan, file=file))

    def end(self, outcome: IterationOutcome, note: str = "") -> IterationRecord:
        """Record how the open iteration ended; return the record. There must be an open one."""
        assert self.open is not None  # callers check ``open`` first
        plan = self.open.plan
        record = IterationRecord(
            iteration_id=plan.iteration_id,
            gap_category=plan.gap.category,
            gap_description=plan.gap.description,
            outcome=outcome,
            note=note,
        )
        self._add(Ended(record=record))
        return record

    def judged(self) -> tuple[IterationOutcome, str] | None:
        """Return the result of the open iteration by the outcomes of its plan, and a note.

        Return ``None`` if the plan was not verified, not completely, or has changed since. Raises
        :class:`planner.errors.PlannerError` if the plan or its outcomes cannot be read.
        """
        assert self.open is not None
        loaded = load_plan(self._root / self.open.file)
        found = find_outcomes(loaded)
        if found.document is None or found.plan_change is not None:
            return None
        red = [each.todo_id for each in found.document.outcomes if not each.success]
        if len(found.document.outcomes) < len(loaded.plan.items):
            return None
        if red:
            return IterationOutcome.FAILURE, f"red: {', '.join(red)}"
        return IterationOutcome.SUCCESS, ""

    def _add(self, line: Planned | Ended) -> None:
        """Add a line and write the whole log, so that an interrupted write cannot leave half a line."""
        make_home(self._root)
        self._lines.append(line)
        text = "".join(f"{each.model_dump_json()}\n" for each in self._lines)
        replace_file(self._path, text)


def plan_of_iteration(iteration: IterationPlan, *, tools: Sequence[str]) -> Plan:
    """Return the plan that ``pytest --planverify`` verifies for an iteration; it has one todo.

    Its criteria are the gap's own commands and those of ``tools``: ``ruff check`` and ``pyright``, if they
    are installed. Where the gap names no usable command, the tests of its target folders must pass, or else
    a new test file. The files that no iteration may change are protected.
    """
    actions = iteration.actions
    targets = list(dict.fromkeys(each for action in actions for each in action.target_files))
    created = {each for action in actions if action.action_type == "create" for each in action.target_files}
    allowed = [f"{each}**" if each.endswith("/") else each for each in targets]
    made = [each for each in targets if each in created and not each.endswith("/")]
    own = [each for each in iteration.gap.commands if accepted(each)]
    if not own:
        folders = [each for each in targets if each.endswith("tests/")]
        test = f"tests/test_{_slug(iteration.gap.description)}.py"
        own = [f"pytest {shlex.quote(each)}" for each in folders or [test]]
        if not folders:
            allowed.append(test)
            made.append(test)
    checked = [each for each in targets if each.endswith(("/", ".py"))]
    checks = [*own, *(f"{command} {shlex.join(checked or ['.'])}" for command in tools)]
    todo: dict[str, Any] = {
        "id": _slug(iteration.gap.description),
        "title": iteration.gap.description,
        "intent": _instructions(iteration, tools),
        "acceptance_criteria": {"tests": [{"cmd": each} for each in checks], "expected_artifacts": made},
        "risk_level": iteration.estimated_risk.upper(),
    }
    if targets:
        todo["allowed_files"] = allowed
    protected = [*PROTECTED_FILES, *(f"{each}**" for each in PROTECTED_FOLDERS)]
    return Plan.model_validate(
        {
            "todo_list_id": iteration.iteration_id,
            "workflow_name": iteration.gap.description,
            "metadata": {"protected_files": protected},
            "items": [todo],
        }
    )


def _instructions(iteration: IterationPlan, tools: Sequence[str]) -> str:
    """Return the todo's intent: the actions, the documents to read first, and what no command checks."""
    lines = [
        f"{each.action_type} {', '.join(each.target_files) or 'files to be determined'}: {each.description}"
        for each in iteration.actions
    ]
    documents = dict.fromkeys(each for action in iteration.actions for each in action.context)
    lines += [f"Read first: {', '.join(documents)}."] if documents else []
    unchecked = [each for each in iteration.acceptance_criteria if TOOL_CRITERIA.get(each) not in tools]
    return "\n".join(
        [*lines, "Required, but not checked by a command:", *(f"- {each}" for each in unchecked)]
    )


def _slug(text: str) -> str:
    """Return the first significant words of a text, joined by underscores."""
    words = re.findall(r"[a-z0-9]+", text.casefold())
    kept = [each for each in words if each not in ("a", "an", "the", "is", "of", "for", "to")]
    return "_".join((kept or words or ["iteration"])[:_SLUG_WORDS])
