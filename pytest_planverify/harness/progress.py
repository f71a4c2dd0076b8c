"""Progress of a run that one can watch: a line for each thing that happens, or JSON for programs.

On a terminal the current turn, with its time and the last line of the agent's output, is drawn below.
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, TextIO

from planner.model.actions import QuestionKind
from planner.model.verdicts import TodoLife
from planner.text.display import counted, glyphs_for
from planner.text.redaction import redact
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Collection

    from planner.engine import State
    from planner.engine.state import TodoRecord
    from planner.model.actions import AskHuman, Implement
    from planner.model.outcome import Outcome
    from pytest_planverify.harness.agents import Turn, TurnReport
    from pytest_planverify.harness.snapshots import Changes

REDRAW_SECONDS = 0.2
_CLEAR = "\r\x1b[2K"


class Progress:
    """What happens, on a stream: as lines, or as JSON objects, one a line."""

    def __init__(self, stream: TextIO, *, as_json: bool = False) -> None:
        self._stream = stream
        self._as_json = as_json
        self.is_live = stream.isatty() and not as_json
        self._glyphs = glyphs_for(getattr(stream, "encoding", None) or "utf-8")
        self._lock = threading.Lock()
        self._begun = time.monotonic()
        self._turn: tuple[str, float] | None = None
        self._tail = ""
        self._drawn = 0.0
        self._shown: tuple[int, int] = (-1, -1)
        self.turns = 0
        """So many turns of work were taken."""
        self.agent_seconds = 0.0
        self.tokens = 0

    def phase(self, text: str) -> None:
        """Say what the loop itself does now."""
        self._tell("phase", f"  {text}", text=text)

    def line(self, text: str) -> None:
        """Say something that a person should know."""
        self._tell("note", f"  {one_line(text, 500)}", text=text)

    def turn_started(self, turn: Turn, action: Implement) -> None:
        """Say who begins with what, and why."""
        self.turns += 1
        about = f"{turn.role.value} {'repairs' if action.parent_id else 'works on'} {turn.todo_id}"
        attempt = f", attempt {turn.attempt}" if turn.attempt > 1 else ""
        why = one_line(action.because, 160)
        self._tell(
            "turn_started",
            f"{self._glyphs.active} {about}{attempt}: {why}",
            turn=turn.id,
            todo_id=turn.todo_id,
            role=turn.role.value,
            attempt=turn.attempt,
            rule=action.rule,
            brief=str(turn.brief),
        )
        self._turn = (about, time.monotonic())
        self._draw(force=True)

    def output(self, text: str) -> None:
        """Take up what the agent writes: its last line is shown."""
        lines = [line for line in text.splitlines() if line.strip()]
        if lines:
            self._tail = one_line(redact(clean(lines[-1])), 300)
            self._draw()

    def turn_finished(
        self, turn: Turn, report: TurnReport, changes: Changes, violation: str | None
    ) -> None:
        """Say what a turn has changed and cost."""
        self._turn, self._tail = None, ""
        self.agent_seconds += report.duration_ms / 1000
        self.tokens += report.tokens or 0
        changed = counted(len(changes.changed), "file") if changes.changed else "nothing"
        parts = [f"changed {changed}", f"{report.duration_ms / 1000:.1f} s"]
        if report.tokens:
            parts.append(counted(report.tokens, "token"))
        if report.message and not report.ended_well:
            parts.append(report.message)
        self._tell(
            "turn_finished",
            f"  {', '.join(parts)}" if violation is None else f"{self._glyphs.failed} {violation}",
            turn=turn.id,
            todo_id=turn.todo_id,
            changed=list(changes.changed),
            tokens=report.tokens,
            duration_ms=report.duration_ms,
            message=report.message,
            violation=violation,
        )

    def verifying(self, todo_ids: Collection[str]) -> None:
        """Say what is being verified."""
        if self.is_live:
            self._turn = (f"verifying {', '.join(todo_ids)}", time.monotonic())
            self._draw(force=True)

    def verified(self, outcome: Outcome) -> None:
        """Say what a verification has found."""
        self._turn = None
        failure = outcome.failure_evidence
        said = ""
        if failure is not None:
            head = failure.stack_trace_head or failure.because or ""
            said = f": {failure.category.value} {one_line(redact(clean(head)), 120)}".rstrip()
        state = "?" if outcome.state is None else outcome.state.value
        glyph = self._glyphs.done if outcome.success else self._glyphs.failed
        self._tell(
            "verified",
            f"{glyph} {outcome.todo_id} {state}{said}",
            todo_id=outcome.todo_id,
            state=state,
            success=outcome.success,
            category=None if failure is None else failure.category.value,
            signature=None if failure is None else failure.signature,
        )

    def question(self, action: AskHuman) -> None:
        """Say what a person is asked; a repair does not wait for edits that are proposed beside it."""
        said = f"{action.todo_id}: {one_line(action.question, 400)} [{'/'.join(action.options)}]"
        is_optional = action.kind is QuestionKind.APPROVE_EDITS
        self._tell(
            "question",
            f"  {said}, but the repair goes on meanwhile" if is_optional else f"? {said}",
            id=action.question_id,
            todo_id=action.todo_id,
            question=action.question,
            options=list(action.options),
            kind=action.kind.value,
        )

    def state(self, state: State) -> None:
        """Say how many todos are done, whenever that number has changed."""
        lives = Counter(record.life for record in leaf_todos(state))
        done, total = lives[TodoLife.DONE], sum(lives.values())
        if (done, total) != self._shown:
            self._shown = (done, total)
            seconds = time.monotonic() - self._begun
            told = {life.value: count for life, count in lives.items()}
            self._tell(
                "state",
                f"  {done} of {total} done, {counted(self.turns, 'turn')}, {seconds:.0f} s",
                plan=state.plan_state.value,
                todos=told,
                turns=self.turns,
                tokens=self.tokens,
            )

    def close(self) -> None:
        """Remove what is drawn."""
        self._turn = None
        self._draw(force=True)

    def _tell(self, event: str, line: str, **facts: Any) -> None:
        with self._lock:
            if self._as_json:
                text = json.dumps(
                    {"event": event, "seconds": round(time.monotonic() - self._begun, 3), **facts}
                )
            else:
                encoding = getattr(self._stream, "encoding", None) or "utf-8"
                text = clean(line).encode(encoding, "backslashreplace").decode(encoding)
            self._stream.write(f"{_CLEAR if self.is_live else ''}{text}\n")
            self._stream.flush()

    def _draw(self, *, force: bool = False) -> None:
        """Draw the current turn in the last line of a terminal."""
        if not self.is_live:
            return
        now = time.monotonic()
        if not force and now - self._drawn < REDRAW_SECONDS:
            return
        with self._lock:
            self._drawn = now
            text = ""
            if self._turn is not None:
                about, begun = self._turn
                text = f"  {about} ({now - begun:.0f} s) {self._tail}"
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(_CLEAR + text[:width])
            self._stream.flush()


def one_line(text: str, most: int) -> str:
    """Return a text without control characters and line breaks, of at most so many characters."""
    line = " ".join(clean(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def leaf_todos(state: State) -> list[TodoRecord]:
    """Return the todos that are worked on; a parent counts as one until its sub-plan is loaded."""
    loaded = {record.within for record in state.todos.values()}
    return [each for each in state.todos.values() if not each.is_branch and each.id not in loaded]


def describe_recovery(state: State) -> str | None:
    """Return how many of the todos that were red at first are done now; ``None`` where none was."""
    red = [record for record in leaf_todos(state) if record.branches or record.retries or record.outcome]
    done = sum(record.life is TodoLife.DONE for record in red)
    return f"recovered {done} of {counted(len(red), 'red todo')}" if red else None


def standard_progress(*, as_json: bool) -> Progress:
    """Return the progress on standard output."""
    return Progress(sys.stdout, as_json=as_json)
