"""Progress of a run: one line per event, or one JSON object per event for programs."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, TextIO

from _pytest._io import TerminalWriter

from planner.engine.progress import status_tree
from planner.model.actions import QuestionKind
from planner.text.display import counted
from planner.text.redaction import redact
from planner.text.sanitizing import clean, one_line
from pytest_planverify.reports.screen import ReportScreen, StyledText

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.engine import State
    from planner.engine.progress import StatusNode
    from planner.model.actions import Action, AskHuman
    from planner.model.outcome import Outcome
    from planner.model.plan import Plan
    from pytest_planverify.harness.agents import Turn, TurnReport
    from pytest_planverify.harness.snapshots import FileChanges


class RunProgress:
    """Writer of the progress; called by the loop's thread only.

    ``plans`` are the sub-plans by id of their parent, whose todos count before they begin.
    """

    def __init__(self, stream: TextIO, plans: Mapping[str, Plan], *, as_json: bool = False) -> None:
        self._screen = ReportScreen(TerminalWriter(stream))
        self._as_json = as_json
        self._started = time.monotonic()
        self._shown: tuple[int, int] = (-1, -1)
        """Numbers of finished and of all todos, as last shown."""
        self._waits_for = -1
        """The number of the action whose waiting was shown last."""
        self._plans = plans
        self.turns = 0
        """Number of turns started so far."""
        self._tokens = 0

    def phase(self, text: str) -> None:
        """Show what the run is doing while no agent works."""
        self._write("phase", f"  {text}", text=text)

    def line(self, text: str) -> None:
        """Show a message."""
        self._write("note", f"  {one_line(text, limit=500)}", text=text)

    def turn_started(self, turn: Turn) -> None:
        """Show the start of a turn with its reason."""
        self.turns += 1
        action = turn.action
        about = f"{turn.role.value} {'repairs' if action.parent_id else 'works on'} {action.todo_id}"
        attempt = f", attempt {action.attempt}" if action.attempt > 1 else ""
        self._write(
            "turn_started",
            f"{self._screen.glyphs.active} {about}{attempt}: {one_line(action.because, limit=160)}",
            turn=turn.id,
            todo_id=action.todo_id,
            role=turn.role.value,
            attempt=action.attempt,
            rule=action.rule,
            brief=str(turn.brief),
        )

    def turn_finished(
        self, turn: Turn, report: TurnReport, changes: FileChanges, violation: str | None
    ) -> None:
        """Show a turn's changes, time and tokens, or its violation of limits."""
        self._tokens += report.tokens or 0
        changed = counted(len(changes.changed), "file") if changes.changed else "nothing"
        parts = [f"changed {changed}", f"{report.duration_ms / 1000:.1f} s"]
        if report.tokens:
            parts.append(counted(report.tokens, "token"))
        if report.message and not (report.ended_well and changes.changed):
            parts.append(one_line(report.message, limit=300))
        glyph = " " if violation is None else self._screen.glyphs.failed
        self._write(
            "turn_finished",
            f"{glyph} {turn.action.todo_id}: {violation or ', '.join(parts)}",
            turn=turn.id,
            todo_id=turn.action.todo_id,
            changed=list(changes.changed),
            tokens=report.tokens,
            duration_ms=report.duration_ms,
            message=report.message,
            violation=violation,
        )

    def verified(self, outcome: Outcome) -> None:
        """Show a verification's result."""
        failure, detail = outcome.failure_evidence, ""
        if failure is not None:
            head = one_line(redact(clean(failure.stack_trace_head or failure.because or "")), limit=120)
            detail = f": {failure.category.value} {head}".rstrip()
        state = "?" if outcome.state is None else outcome.state.value
        glyphs = self._screen.glyphs
        glyph = glyphs.done if outcome.success else glyphs.testing if state == "testing" else glyphs.failed
        self._write(
            "verified",
            f"{glyph} {outcome.todo_id} {state}{detail}",
            todo_id=outcome.todo_id,
            state=state,
            success=outcome.success,
            category=None if failure is None else failure.category.value,
            signature=None if failure is None else failure.signature,
        )

    def waiting(self, seconds: float, action: Action) -> None:
        """Show why nothing happens until an action is due; each action is shown once."""
        if seconds > 1 and action.seq != self._waits_for:
            self._waits_for = action.seq
            self.line(f"waiting {seconds:.0f} s: {action.because}")

    def question(self, action: AskHuman) -> None:
        """Show an open question. The repair does not wait for one about proposed edits, which is noted."""
        text = f"{action.todo_id}: {one_line(action.question, limit=400)} [{'/'.join(action.options)}]"
        is_optional = action.kind is QuestionKind.APPROVE_EDITS
        self._write(
            "question",
            f"  {text}, but the repair continues" if is_optional else f"? {text}",
            id=action.question_id,
            **action.model_dump(mode="json", include={"todo_id", "kind", "question", "options", "digest"}),
        )

    def state(self, state: State) -> None:
        """Show the number of finished todos if it has changed."""
        tree = self.tree(state)
        if (tree.done, tree.total) != self._shown:
            self._shown = (tree.done, tree.total)
            seconds = time.monotonic() - self._started
            self._write(
                "state",
                f"  {tree.done} of {tree.total} done, {counted(self.turns, 'turn')}, {seconds:.0f} s",
                plan=state.plan_state.value,
                todos=tree.counts(),
                turns=self.turns,
                tokens=self._tokens,
            )

    def tree(self, state: State) -> StatusNode:
        """Return the status tree, with the todos that the engine loads later."""
        return status_tree(state, self._plans)

    def _write(self, event: str, line: str, **facts: Any) -> None:
        """Write one event: ``line`` for people, or its ``facts`` as JSON."""
        seconds = round(time.monotonic() - self._started, 3)
        text = json.dumps({"event": event, "seconds": seconds, **facts}) if self._as_json else line
        for part in [text] if self._as_json else self._screen.texts(text):
            self._screen.line(StyledText(part))
        self._screen.tw.flush()
