"""Progress of a run: one line per event, or one JSON object per event for programs.

On a terminal, a status area is drawn below these lines: a tree of todos, the current turns with their
times, and the latest line of output. It is removed before each line and redrawn after it.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, TextIO

from _pytest._io import TerminalWriter

from planner.cli.screen import TODO_STATES
from planner.model.actions import QuestionKind
from planner.model.verdicts import TodoLife
from planner.text.display import counted
from planner.text.redaction import redact
from planner.text.sanitizing import clean
from pytest_planverify.reports.screen import UNSIZED, ReportScreen, StyledText

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from planner.engine import State
    from planner.engine.state import TodoRecord
    from planner.model.actions import AskHuman
    from planner.model.outcome import Outcome
    from planner.text.display import Glyphs
    from pytest_planverify.harness.agents import Turn, TurnReport
    from pytest_planverify.harness.snapshots import FileChanges

REDRAW_SECONDS = 0.2
"""Shortest interval between two drawings for output of agents; events are drawn at once."""
MOST_LINES = 12
"""Limit of drawn lines of the tree; active todos take precedence."""


class RunProgress:
    """Writer of the progress. Lines may be written, and output received, from several threads."""

    def __init__(self, stream: TextIO, *, as_json: bool = False) -> None:
        self._screen = ReportScreen(TerminalWriter(stream))
        self._as_json = as_json
        self.is_live = stream.isatty() and not as_json
        self._glyphs = self._screen.glyphs
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._running: dict[str, tuple[str, float]] = {}
        """Description and start time of the running turns and the verification, by turn id."""
        self._newest = ""
        """Id of the latest turn, whose result is shown without the name of its todo."""
        self._todos: list[TodoRecord] = []
        self._tail = ""
        """Latest line of output of an agent."""
        self._drawn = 0.0
        self._shown: tuple[int, int] = (-1, -1)
        """Numbers of finished and of all todos, as last shown."""
        self._waits_for = ""
        self.turns = 0
        """Number of turns started so far."""
        self.tokens = 0

    def phase(self, text: str) -> None:
        """Show what the run is doing while no agent works."""
        self._write("phase", f"  {text}", text=text)

    def line(self, text: str) -> None:
        """Show a message."""
        self._write("note", f"  {one_line(text, 500)}", text=text)

    def turn_started(self, turn: Turn) -> None:
        """Show the start of a turn with its reason."""
        self.turns += 1
        action = turn.action
        about = f"{turn.role.value} {'repairs' if action.parent_id else 'works on'} {action.todo_id}"
        attempt = f", attempt {action.attempt}" if action.attempt > 1 else ""
        why = one_line(action.because, 160)
        self._write(
            "turn_started",
            f"{self._glyphs.active} {about}{attempt}: {why}",
            turn=turn.id,
            todo_id=action.todo_id,
            role=turn.role.value,
            attempt=action.attempt,
            rule=action.rule,
            brief=str(turn.brief),
        )
        self._running[turn.id] = (about, time.monotonic())
        self._newest = turn.id
        self._draw(force=True)

    def output(self, text: str) -> None:
        """Draw the last line of an agent's new output."""
        lines = [line for line in text.splitlines() if line.strip()]
        if lines:
            self._tail = one_line(redact(clean(lines[-1])), 300)
            self._draw()

    def turn_finished(
        self, turn: Turn, report: TurnReport, changes: FileChanges, violation: str | None
    ) -> None:
        """Show a turn's changes, time and tokens, or its violation of limits."""
        self._running.pop(turn.id, None)
        self._tail = ""
        self.tokens += report.tokens or 0
        changed = counted(len(changes.changed), "file") if changes.changed else "nothing"
        # If another turn has begun since, its line is the one above.
        name = "" if turn.id == self._newest else f"{turn.action.todo_id}: "
        parts = [f"{name}changed {changed}", f"{report.duration_ms / 1000:.1f} s"]
        if report.tokens:
            parts.append(counted(report.tokens, "token"))
        if report.message and not report.ended_well:
            parts.append(report.message)
        self._write(
            "turn_finished",
            f"  {', '.join(parts)}" if violation is None else f"{self._glyphs.failed} {name}{violation}",
            turn=turn.id,
            todo_id=turn.action.todo_id,
            changed=list(changes.changed),
            tokens=report.tokens,
            duration_ms=report.duration_ms,
            message=report.message,
            violation=violation,
        )

    def verifying(self, todo_ids: Collection[str]) -> None:
        """Show the start of a verification."""
        if self.is_live:
            self._running[_VERIFYING] = (f"verifying {', '.join(todo_ids)}", time.monotonic())
            self._draw(force=True)

    def verified(self, outcome: Outcome) -> None:
        """Show a verification's result."""
        self._running.pop(_VERIFYING, None)
        failure, detail = outcome.failure_evidence, ""
        if failure is not None:
            head = one_line(redact(clean(failure.stack_trace_head or failure.because or "")), 120)
            detail = f": {failure.category.value} {head}".rstrip()
        state = "?" if outcome.state is None else outcome.state.value
        glyph = self._glyphs.done if outcome.success else self._glyphs.failed
        self._write(
            "verified",
            f"{glyph} {outcome.todo_id} {state}{detail}",
            todo_id=outcome.todo_id,
            state=state,
            success=outcome.success,
            category=None if failure is None else failure.category.value,
            signature=None if failure is None else failure.signature,
        )

    def waiting(self, seconds: float, because: str) -> None:
        """Show why nothing happens for some seconds; the same reason is shown once."""
        if seconds > 1 and because != self._waits_for:
            self._waits_for = because
            self.line(f"waiting {seconds:.0f} s: {because}")

    def question(self, action: AskHuman) -> None:
        """Show an open question. The repair does not wait for one about proposed edits, which is noted."""
        text = f"{action.todo_id}: {one_line(action.question, 400)} [{'/'.join(action.options)}]"
        is_optional = action.kind is QuestionKind.APPROVE_EDITS
        self._write(
            "question",
            f"  {text}, but the repair continues" if is_optional else f"? {text}",
            **question_facts(action),
        )

    def state(self, state: State) -> None:
        """Update the tree, and show the number of finished todos if it has changed."""
        if self.is_live:
            self._todos = [each for each in state.todos.values() if not each.is_branch]
        lives = Counter(record.life for record in leaf_todos(state))
        done, total = lives[TodoLife.DONE], sum(lives.values())
        if (done, total) != self._shown:
            self._shown = (done, total)
            seconds = time.monotonic() - self._started
            counts = {life.value: count for life, count in lives.items()}
            self._write(
                "state",
                f"  {done} of {total} done, {counted(self.turns, 'turn')}, {seconds:.0f} s",
                plan=state.plan_state.value,
                todos=counts,
                turns=self.turns,
                tokens=self.tokens,
            )

    def close(self) -> None:
        """Remove the status area; later events draw it again."""
        self._running, self._todos, self._tail = {}, [], ""
        self._draw(force=True)

    def _write(self, event: str, line: str, **facts: Any) -> None:
        """Write one event: ``line`` for people, or its ``facts`` as JSON."""
        seconds = round(time.monotonic() - self._started, 3)
        text = json.dumps({"event": event, "seconds": seconds, **facts}) if self._as_json else line
        with self._lock:  # output of agents is drawn by the threads of their turns
            self._screen.wipe()
            for part in [text] if self._as_json else self._screen.texts(text):
                self._screen.line(StyledText(part))
            self._screen.tw.flush()
        self._draw(force=True)

    def _draw(self, *, force: bool = False) -> None:
        """Draw the status area: the tree, the current turns and the latest output."""
        now = time.monotonic()
        if not self.is_live or (not force and now - self._drawn < REDRAW_SECONDS):
            return
        with self._lock:
            self._drawn = now
            turns = [f"  {about} ({now - started:.0f} s)" for about, started in [*self._running.values()]]
            turns += [f"    {self._tail}"] if self._tail else []
            size = self._screen.terminal_size() or UNSIZED
            room = max(0, min(MOST_LINES, size.lines - 2 - len(turns)))
            lines = [*tree_lines(self._todos, self._glyphs, room), *turns]
            self._screen.draw([[StyledText(line)] for line in lines])


_VERIFYING = ""
"""Key of the verification among the running turns; no turn has this id."""


def tree_lines(todos: Sequence[TodoRecord], glyphs: Glyphs, room: int) -> list[str]:
    """Return a tree of at most ``room`` lines.

    The todos of a sub-plan are shown while it is worked on; otherwise its parent shows their number.
    """

    def line(todo: TodoRecord, indent: str) -> str:
        turns = f", {counted(todo.turns, 'turn')}" if todo.turns else ""
        return f"{indent}{getattr(glyphs, TODO_STATES[todo.life][0])} {todo.id} {todo.life.value}{turns}"

    idle = {TodoLife.DONE, TodoLife.PENDING}
    lines: list[tuple[bool, str]] = []
    for top in (each for each in todos if not each.within):
        inner = [each for each in todos if each.within and each.id.startswith(f"{top.id}/")]
        done = sum(each.life is TodoLife.DONE for each in inner)
        is_idle = top.life in idle and all(each.life in idle for each in inner)
        lines.append((is_idle, line(top, "  ") + (f" {done}/{len(inner)}" if inner else "")))
        if inner and done < len(inner) and not (is_idle and not done):
            lines += [(each.life in idle, line(each, "    ")) for each in inner]
    if len(lines) <= room:
        return [text for _, text in lines]
    # Active todos take precedence over idle ones; the chosen lines keep their order.
    kept = sorted(sorted(range(len(lines)), key=lambda place: lines[place][0])[: max(0, room - 1)])
    more = f"  {glyphs.ellipsis} {len(lines) - len(kept)} more"
    return [*(lines[place][1] for place in kept), more][:room]


def one_line(text: str, most: int) -> str:
    """Return a text without control characters and line breaks, of at most ``most`` characters."""
    line = " ".join(clean(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def question_facts(question: AskHuman) -> dict[str, Any]:
    """Return the facts about a question that are written for programs."""
    facts = question.model_dump(mode="json", include={"todo_id", "kind", "question", "options", "digest"})
    return {"id": question.question_id, **facts}


def leaf_todos(state: State) -> list[TodoRecord]:
    """Return the todos that are worked on themselves: no branches, and no parents of a loaded sub-plan."""
    loaded = {record.within for record in state.todos.values()}
    return [each for each in state.todos.values() if not each.is_branch and each.id not in loaded]


def describe_recovery(state: State) -> str | None:
    """Return how many of the todos that failed at least once are done now; ``None`` if none failed.

    A todo counts as failed if it has branches, retries or an outcome.
    """
    failed = [record for record in leaf_todos(state) if record.branches or record.retries or record.outcome]
    done = sum(record.life is TodoLife.DONE for record in failed)
    return f"recovered {done} of {counted(len(failed), 'failed todo')}" if failed else None
