"""Brief of one turn for an agent, as Markdown for its prompt and as JSON for programs."""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from planner.brief import CHARACTERS_PER_TOKEN
from planner.engine.requests import brief_of
from planner.planfile.file_writer import write_file
from planner.text.display import listed
from planner.text.redaction import redact
from planner.text.sanitizing import clean
from pytest_planverify.harness.progress import one_line

if TYPE_CHECKING:
    from pathlib import Path

    from planner.engine import State
    from planner.model.outcome import Outcome
    from pytest_planverify.harness.agents import Turn, TurnReport
    from pytest_planverify.harness.snapshots import FileChanges

MOST_PATHS = 12
MOST_FAILURES = 4
_SUMMARY = "turn.json"
_MOST_EARLIER = 3


def write_briefs(
    turn: Turn, state: State, plan: Path, most_tokens: int, *, seen: Outcome | None = None
) -> str:
    """Write ``brief.md`` and ``brief.json`` of a turn; return the Markdown.

    ``plan`` is the plan file that the agent verifies with. ``seen`` is the outcome of a verification before
    any work on the todo. The Markdown is limited to ``most_tokens``, where a token counts as four
    characters; the least important paragraphs are dropped first.
    """
    shown = str(plan.relative_to(turn.root) if plan.is_relative_to(turn.root) else plan)
    check = f"pytest --planverify {shlex.quote(f'{shown}::{turn.action.todo_id}')} -q"
    text = _page(turn, state, shown, seen, most_tokens * CHARACTERS_PER_TOKEN)
    write_file(turn.brief, text)
    facts = turn.action.model_dump(mode="json", exclude_defaults=True)
    facts["turn"] = {
        "id": turn.id,
        "run": turn.folder.parent.parent.name,
        "result": str(turn.result),
        "timeout_seconds": turn.timeout_seconds,
    }
    facts |= {"plan": shown, "check": check}
    if seen is not None and seen.failure_evidence is not None:
        facts["seen"] = seen.failure_evidence.model_dump(mode="json", exclude_defaults=True)
    write_file(turn.folder / "brief.json", json.dumps(facts, indent=2) + "\n")
    return text


def write_turn_summary(turn: Turn, changes: FileChanges, report: TurnReport) -> None:
    """Store a summary of a turn, which is part of the briefs of later turns on the same todo."""
    summary = {
        "todo_id": turn.action.todo_id,
        "attempt": turn.action.attempt,
        "role": turn.role.value,
        "changed": list(changes.changed),
        "message": report.message,
    }
    write_file(turn.folder / _SUMMARY, json.dumps(summary) + "\n")


def _page(turn: Turn, state: State, shown: str, seen: Outcome | None, limit: int) -> str:
    """Return the engine's brief, within ``limit`` characters, with what only this run knows.

    That is the role, failures of todos that nobody has worked on, and earlier turns; the last are left out
    first. If even the essential paragraphs exceed the limit, the text is cut.
    """
    head = f"You act as {turn.role.value} on `{turn.action.todo_id}`, attempt {turn.action.attempt}.\n"
    more = [head, *_seen_failures(turn, seen), *_earlier_turns(turn)]
    while len("\n".join(more)) > limit // 2 and len(more) > 1:
        more.pop()
    left = (limit - len("\n".join(more))) // CHARACTERS_PER_TOKEN
    page = brief_of(state, turn.action.todo_id, max_tokens=left)
    # The agent has to check its work as the run does: by the plan with the run's edits.
    page = page.replace(f"{state.path}::", f"{shown}::")
    text = redact(clean("\n".join((head, page, "", *more[1:])).rstrip() + "\n"))
    return text if len(text) <= limit else f"{text[: limit - 20].rstrip()}\n… (cut)\n"


def _seen_failures(turn: Turn, seen: Outcome | None) -> list[str]:
    """Return a line for each failure of a verification before any work, unless the brief has a failure."""
    failures = () if seen is None or turn.action.brief.failure is not None else seen.failures
    lines = ["What a verification sees now:\n"] if failures else []
    for each in failures[:MOST_FAILURES]:
        at = each.location
        place = "" if at is None else f" at {at.path}:{at.line}" if at.line else f" at {at.path}"
        said = one_line(each.stack_trace_head or each.because or "", 200).replace("`", "'")
        lines.append(f"- {each.category.value}{place}: `{said}`")
    return lines


def _earlier_turns(turn: Turn) -> list[str]:
    """Return a line for each of the latest earlier turns on the same todo, latest last."""
    lines: list[str] = []
    for path in sorted(turn.folder.parent.glob(f"*/{_SUMMARY}")):
        with suppress(OSError, ValueError, KeyError):
            earlier: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if path.parent != turn.folder and earlier["todo_id"] == turn.action.todo_id:
                changed = listed((f"`{each}`" for each in earlier["changed"]), MOST_PATHS) or "nothing"
                said = f"; {earlier['message']}" if earlier["message"] else ""
                who = f"attempt {earlier['attempt']} as {earlier['role']}"
                lines.append(f"Tried before: {who} changed {changed}{said}.")
    return lines[-_MOST_EARLIER:]
