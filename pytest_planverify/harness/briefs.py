"""The brief of one turn, as an agent reads it: Markdown, and the same as JSON."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any, cast

from planner.planfile.file_writer import write_file
from planner.text.redaction import redact
from planner.text.sanitizing import clean
from pytest_planverify.harness.progress import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from planner.model.actions import Implement
    from planner.model.outcome import Outcome
    from pytest_planverify.harness.agents import Turn, TurnReport
    from pytest_planverify.harness.snapshots import FileChanges

CHARACTERS_PER_TOKEN = 4
MOST_CRITERIA = 8
MOST_PATHS = 12
MOST_FAILURES = 4
_SUMMARY = "turn.json"
_MOST_EARLIER = 3


def write_briefs(
    action: Implement, turn: Turn, plan: Path, most_tokens: int, *, seen: Outcome | None = None
) -> str:
    """Write ``brief.md`` and ``brief.json`` of a turn; return the Markdown, of at most so many tokens.

    ``seen`` is what a verification found before anybody had worked on the todo. A token is taken to be four
    characters. What does not fit is left out, the least needed first.
    """
    text = _page(action, turn, plan, seen, most_tokens * CHARACTERS_PER_TOKEN)
    write_file(turn.brief, text)
    held = action.model_dump(mode="json", exclude_defaults=True)
    held["turn"] = {
        "id": turn.id,
        "run": turn.folder.parent.parent.name,
        "result": str(turn.result),
        "timeout_seconds": turn.timeout_seconds,
    }
    held["plan"] = _shown(plan, turn)
    held["check"] = _check_command(plan, turn)
    if seen is not None and seen.failure_evidence is not None:
        held["seen"] = seen.failure_evidence.model_dump(mode="json", exclude_defaults=True)
    write_file(turn.folder / "brief.json", json.dumps(held, indent=2) + "\n")
    return text


def write_turn_summary(turn: Turn, changes: FileChanges, report: TurnReport) -> None:
    """Keep what a turn has changed, to be told to whoever works on the same todo next."""
    summary = {
        "todo_id": turn.todo_id,
        "attempt": turn.attempt,
        "role": turn.role.value,
        "changed": list(changes.changed),
        "message": report.message,
    }
    write_file(turn.folder / _SUMMARY, json.dumps(summary) + "\n")


def _page(action: Implement, turn: Turn, plan: Path, seen: Outcome | None, limit: int) -> str:
    """Join the sections, in the order in which they are read; cut those that matter least first."""
    sections = [
        (0, list(_goal(action, turn))),
        (2, list(_criteria(action))),
        (1, list(_seen(action, seen))),
        (0, [action.brief.instructions] if action.brief.instructions else []),
        (1, list(_limits(action))),
        (3, list(_earlier(turn))),
        (0, list(_how_to_check(plan, turn))),
    ]
    for worst in (3, 2, 1, 0):
        text = "\n\n".join("\n".join(lines) for _, lines in sections if lines) + "\n"
        if len(text) <= limit or worst == 0:
            break
        sections = [(rank, lines if rank < worst else []) for rank, lines in sections]
    text = redact(clean(text))
    return text if len(text) <= limit else f"{text[: limit - 20].rstrip()}\n… (cut)\n"


def _goal(action: Implement, turn: Turn) -> Iterator[str]:
    brief = action.brief
    yield f"# {turn.todo_id}: {brief.title}"
    yield f"You act as {turn.role.value}. Attempt {turn.attempt}."
    if brief.intent and brief.intent != brief.title:
        yield brief.intent
    if brief.target_file:
        yield f"Start with `{brief.target_file}`{f': {brief.hint}' if brief.hint else '.'}"
    elif brief.hint:
        yield brief.hint
    if brief.contract_path:
        yield f"Keep to the contract `{brief.contract_path}`."


def _criteria(action: Implement) -> Iterator[str]:
    criteria = action.brief.criteria
    if action.brief.instructions or not criteria:  # the instructions say what failed
        return
    yield "It is done when all of this holds:"
    yield from (f"- `{each}`" for each in criteria[:MOST_CRITERIA])
    if len(criteria) > MOST_CRITERIA:
        yield f"- and {len(criteria) - MOST_CRITERIA} more, which the check below runs"


def _seen(action: Implement, seen: Outcome | None) -> Iterator[str]:
    """Yield what is red before the first turn, a line for each root cause."""
    if action.brief.instructions or seen is None or not seen.failures:
        return
    yield "What a verification sees now:"
    for failure in seen.failures[:MOST_FAILURES]:
        place = failure.location
        where = "" if place is None else f" at {place.path}{f':{place.line}' if place.line else ''}"
        head = one_line(failure.stack_trace_head or failure.because or "", 200)
        yield f"- {failure.category.value}{where}: `{head.replace('`', chr(39))}`"


def _limits(action: Implement) -> Iterator[str]:
    bounds = action.bounds
    if bounds.allowed_files is not None:
        yield f"Change only {_paths(bounds.allowed_files)}; any other change is undone and stops the run."
    if bounds.protected_files:
        yield f"Never change {_paths(bounds.protected_files)}."


def _earlier(turn: Turn) -> Iterator[str]:
    """Yield what earlier turns on the same todo have changed, the latest last."""
    summaries: list[dict[str, Any]] = []
    for path in sorted(turn.folder.parent.glob(f"*/{_SUMMARY}")):
        try:
            held: Any = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if path.parent != turn.folder and held.get("todo_id") == turn.todo_id:
            summaries.append(cast("dict[str, Any]", held))
    for each in summaries[-_MOST_EARLIER:]:
        changed = _paths(each["changed"]) if each["changed"] else "nothing"
        said = f"; {each['message']}" if each.get("message") else ""
        yield f"Tried before: attempt {each['attempt']} as {each['role']} changed {changed}{said}."


def _how_to_check(plan: Path, turn: Turn) -> Iterator[str]:
    yield f"Check yourself with `{_check_command(plan, turn)}`. What you say is not believed; this is."


def _check_command(plan: Path, turn: Turn) -> str:
    return f"pytest --planverify {shlex.quote(f'{_shown(plan, turn)}::{turn.todo_id}')} -q"


def _shown(plan: Path, turn: Turn) -> str:
    return str(plan.relative_to(turn.root) if plan.is_relative_to(turn.root) else plan)


def _paths(paths: Sequence[str]) -> str:
    shown = ", ".join(f"`{each}`" for each in paths[:MOST_PATHS])
    return f"{shown} and {len(paths) - MOST_PATHS} more" if len(paths) > MOST_PATHS else shown
