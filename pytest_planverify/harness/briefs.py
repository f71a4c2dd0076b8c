"""Brief of one turn for an agent, as Markdown for its prompt and as JSON for programs."""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.planfile.file_writer import write_file
from planner.text.redaction import redact
from planner.text.sanitizing import clean
from pytest_planverify.harness.progress import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.outcome import Outcome
    from pytest_planverify.harness.agents import Turn, TurnReport
    from pytest_planverify.harness.snapshots import FileChanges

TEMPLATES = Path(__file__).with_name("templates")
CHARACTERS_PER_TOKEN = 4
"""Average used to estimate the length of a brief."""
MOST_CRITERIA = 8
MOST_PATHS = 12
MOST_FAILURES = 4
_SUMMARY = "turn.json"
_MOST_EARLIER = 3


def write_briefs(turn: Turn, plan: Path, most_tokens: int, *, seen: Outcome | None = None) -> str:
    """Write ``brief.md`` and ``brief.json`` of a turn; return the Markdown.

    ``plan`` is the plan file that the agent verifies with. ``seen`` is the outcome of a verification before
    any work on the todo. The Markdown is limited to ``most_tokens``, where a token counts as four
    characters; the least important sections are dropped first.
    """
    shown = str(plan.relative_to(turn.root) if plan.is_relative_to(turn.root) else plan)
    check = f"pytest --planverify {shlex.quote(f'{shown}::{turn.action.todo_id}')} -q"
    text = _page(turn, check, seen, most_tokens * CHARACTERS_PER_TOKEN)
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


def _page(turn: Turn, check: str, seen: Outcome | None, limit: int) -> str:
    """Render the template without sections of high rank, until the text is within ``limit`` characters.

    If even the essential sections exceed the limit, the text is cut.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(  # Markdown for an agent, not HTML
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    filters: dict[str, Any] = {"one_line": one_line, "paths": _paths}
    environment.filters.update(filters)
    template = environment.get_template("brief.md")
    text = ""
    for rank in (3, 2, 1, 0):
        text = template.render(
            turn=turn,
            brief=turn.action.brief,
            bounds=turn.action.bounds,
            failures=() if seen is None else seen.failures,
            earlier=_earlier(turn),
            check=check,
            rank=rank,
            most_criteria=MOST_CRITERIA,
            most_failures=MOST_FAILURES,
        )
        if len(text) < limit:
            break
    text = redact(clean(f"{text}\n"))
    return text if len(text) <= limit else f"{text[: limit - 20].rstrip()}\n… (cut)\n"


def _earlier(turn: Turn) -> list[dict[str, Any]]:
    """Return the summaries of the latest earlier turns on the same todo, latest last."""
    summaries: list[dict[str, Any]] = []
    for path in sorted(turn.folder.parent.glob(f"*/{_SUMMARY}")):
        with suppress(OSError, ValueError):
            summary: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if path.parent != turn.folder and summary.get("todo_id") == turn.action.todo_id:
                summaries.append(summary)
    return summaries[-_MOST_EARLIER:]


def _paths(paths: Sequence[str]) -> str:
    """Return paths as Markdown; the template filter ``paths``."""
    shown = ", ".join(f"`{each}`" for each in paths[:MOST_PATHS])
    return f"{shown} and {len(paths) - MOST_PATHS} more" if len(paths) > MOST_PATHS else shown
