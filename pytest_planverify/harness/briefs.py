"""Brief of one turn for an agent, as Markdown for its prompt and as JSON for programs."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

from planner.brief.page import CHARACTERS_PER_TOKEN
from planner.engine.requests import brief_of
from planner.model.events import WorkFinished
from planner.planfile.file_writer import write_file
from planner.store.run_log import RunLog
from planner.text.display import listed
from planner.text.redaction import redact
from planner.text.sanitizing import clean, one_line

if TYPE_CHECKING:
    from pathlib import Path

    from planner.model.outcome import Outcome
    from planner.store.session import RunSession
    from pytest_planverify.harness.agents import Turn

MOST_PATHS = 12
MOST_FAILURES = 4
_MOST_EARLIER = 3


def write_briefs(
    turn: Turn, session: RunSession, plan: Path, most_tokens: int, *, seen: Outcome | None = None
) -> str:
    """Write ``brief.md`` and ``brief.json`` of a turn; return the Markdown.

    ``plan`` is the plan file that the agent verifies with. ``seen`` is the outcome of a verification before
    any work on the todo. The Markdown is limited to ``most_tokens``, where a token counts as four
    characters; the least important paragraphs are dropped first.
    """
    shown = str(plan.relative_to(turn.root) if plan.is_relative_to(turn.root) else plan)
    check = f"pytest --planverify {shlex.quote(f'{shown}::{turn.action.todo_id}')} -q"
    text = _page(turn, session, shown, seen, most_tokens * CHARACTERS_PER_TOKEN)
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


def _page(turn: Turn, session: RunSession, shown: str, seen: Outcome | None, limit: int) -> str:
    """Return the engine's brief, within ``limit`` characters, with what only this run knows.

    That is the role, failures of todos that nobody has worked on, and earlier turns; the last are left out
    first. If even the essential paragraphs exceed the limit, the text is cut.
    """
    head = f"You act as {turn.role.value} on `{turn.action.todo_id}`, attempt {turn.action.attempt}.\n"
    state = session.state
    assert state is not None  # it has requested the turn
    is_first = state.records[turn.action.todo_id].turns < 2
    more = [head, *_seen_failures(turn, seen), *(() if is_first else _earlier_turns(turn, session.log))]
    # At most half: the engine's brief has the task itself, the criteria and the latest failure.
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
        said = one_line(each.stack_trace_head or each.because or "", limit=200).replace("`", "'")
        lines.append(f"- {each.category.value}{place}: `{said}`")
    return [*lines, ""] if lines else []


def _earlier_turns(turn: Turn, log: Path) -> list[str]:
    """Return a line for each of the latest earlier turns on the same todo, latest last."""
    with RunLog.read(log) as run:
        events = [each.event for each in run.entries() if isinstance(each.event, WorkFinished)]
    lines: list[str] = []
    for each in (event for event in events if event.todo_id == turn.action.todo_id):
        changed = listed((f"`{path}`" for path in each.touched_files or ()), MOST_PATHS) or "nothing"
        lines.append(f"Tried before: changed {changed}{f'; {each.message}' if each.message else ''}.\n")
    return lines[-_MOST_EARLIER:]
