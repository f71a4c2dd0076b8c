"""Questions of a run, asked at the terminal; answered as by ``planverify answer`` and ``approve``."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from planner.cli.answer import give_answer, give_decision, login_name
from planner.cli.exits import UsageMistake
from planner.errors import PlannerError
from planner.store.plan_run import PlanRun
from pytest_planverify.harness.progress import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from planner.model.actions import AskHuman

_LOOKS = 0.2
"""Seconds between two looks at the log."""
DECISIONS = ("approve", "reject", "modify")
_CHANGES = {
    "role": "role",
    "instructions": "instructions",
    "allowed_files": "files, with blanks between",
    "max_debug_attempts": "attempts",
}
"""What a person may change in a branch, and what they are asked for."""


def ask_at_terminal(plan: Path, log: Path, questions: Mapping[str, AskHuman], left: set[str]) -> bool:
    """Ask what is open, and tell the run's log the answers; return whether there was one.

    Nothing is asked where nobody types. What is ``left`` waiting, by an empty line, is not asked again.
    """
    if not sys.stdin.isatty():
        return False
    asked = [question for name, question in questions.items() if name not in left]
    waiting = {question.question_id for question in asked if not _ask(plan, log, question)}
    left |= waiting
    return len(waiting) < len(asked)


def wait_for_answer(log: Path, seconds: float) -> bool:
    """Wait until somebody has answered from elsewhere; return whether that was within so many seconds."""
    deadline, before = time.monotonic() + seconds, log.stat().st_size
    while time.monotonic() < deadline:
        if log.stat().st_size != before:
            return True
        time.sleep(_LOOKS)
    return False


def _ask(plan: Path, log: Path, question: AskHuman) -> bool:
    print(f"\n{one_line(f'{question.todo_id}: {question.question}', 1_000)}")
    if question.because:
        print(f"  why: {one_line(question.because, 1_000)}")
    if question.failure is not None and question.failure.stack_trace_head:
        print(f"  seen: {one_line(question.failure.stack_trace_head, 1_000)}")
    known = DECISIONS if question.kind.is_approval else question.options
    options = ", ".join(known if question.kind.value != "answer" else ("yes", "no, or the reason for a no"))
    while said := _line(f"{options} (Enter leaves it waiting): "):
        try:
            run = PlanRun.open(plan, None, log)
            told = _tell(run, question, said)
            run.save()
        except (PlannerError, UsageMistake) as error:
            print(f"  {one_line(str(error), 1_000)}")
            continue
        print("\n".join(f"  {one_line(each, 1_000)}" for each in told))
        return True
    return False


def _tell(run: PlanRun, question: AskHuman, said: str) -> list[str]:
    if not question.kind.is_approval:
        return give_answer(run, question.todo_id or question.question_id, said, login_name())
    word, _, because = said.partition(" ")
    decision = next((each for each in DECISIONS if each.startswith(word.lower())), None)
    decision = {"yes": "approve", "no": "reject"}.get(word.lower(), decision)
    if decision is None:
        raise UsageMistake(f"{word}: write {', '.join(DECISIONS)}, and the reason behind it")
    changes = _changes() if decision == "modify" else {}
    why, digest = because.strip() or None, question.digest
    return [give_decision(run, question.question_id, decision, login_name(), why, digest, changes)]


def _changes() -> dict[str, Any]:
    """Ask what is to be other than proposed; nothing is as proposed."""
    said = {name: _line(f"  {label} (Enter: as proposed): ") for name, label in _CHANGES.items()}
    found: dict[str, Any] = {name: text for name, text in said.items() if text}
    if "allowed_files" in found:
        found["allowed_files"] = tuple(found["allowed_files"].split())
    if not found:
        raise UsageMistake("nothing is changed; write approve for it as it is")
    return found


def _line(prompt: str) -> str:
    try:
        return input(prompt).strip()
    except EOFError:
        print()
        return ""
