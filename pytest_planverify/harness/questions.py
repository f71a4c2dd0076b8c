"""Questions of a run at the terminal. Answers are stored as by ``planverify answer`` and ``approve``."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from planner.cli.answer import give_answer, give_decision, login_name
from planner.cli.exits import UsageMistake
from planner.errors import PlannerError
from planner.model.actions import QuestionKind
from planner.store.plan_run import PlanRun
from pytest_planverify.harness.progress import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from planner.model.actions import AskHuman

_POLL_SECONDS = 0.2
"""Interval, in seconds, at which the log is polled for an answer."""
DECISIONS = ("approve", "reject")
"""``planverify modify`` approves with changes; it needs more than one line."""


def ask_at_terminal(plan: Path, log: Path, questions: Mapping[str, AskHuman], left: set[str]) -> bool:
    """Ask the open questions and write the answers into the run's log; return whether there was an answer.

    Without a terminal nothing is asked. ``left`` are the ids of questions that the person has skipped by an
    empty line: they are not asked again. Newly skipped ones are added.
    """
    if not sys.stdin.isatty():
        return False
    open_questions = [question for name, question in questions.items() if name not in left]
    waiting = {question.question_id for question in open_questions if not _ask(plan, log, question)}
    left |= waiting
    return len(waiting) < len(open_questions)


def wait_for_answer(log: Path, seconds: float) -> bool:
    """Wait until another process has written an answer; return whether that was within ``seconds``."""
    # While the run waits, only answers make the log grow.
    deadline, before = time.monotonic() + seconds, log.stat().st_size
    while time.monotonic() < deadline:
        if log.stat().st_size != before:
            return True
        time.sleep(_POLL_SECONDS)
    return False


def _ask(plan: Path, log: Path, question: AskHuman) -> bool:
    """Ask one question until there is a valid answer or an empty line; return whether it was answered.

    Several questions of the plan about one todo are asked one after the other.
    """
    print(f"\n{one_line(f'{question.todo_id}: {question.question}', 1_000)}")
    if question.because:
        print(f"  why: {one_line(question.because, 1_000)}")
    if question.failure is not None and question.failure.stack_trace_head:
        print(f"  failure: {one_line(question.failure.stack_trace_head, 1_000)}")
    options = "yes, no, or a text: no, with that reason"
    if question.kind is not QuestionKind.ANSWER:
        options = ", ".join(DECISIONS if question.kind.is_approval else question.options)
    # A todo may have several questions, and an answer must name the one that it belongs to.
    checks: dict[str | None, str] = {}
    if question.kind is QuestionKind.ANSWER and question.todo_id:
        with suppress(PlannerError):
            checks |= PlanRun.open(plan, None, log).open_questions(question.todo_id)
    if len(checks) < 2:
        return _prompt(plan, log, question, options)
    for check, text in checks.items():
        print(f"  {one_line(text, 1_000)}")
        if not _prompt(plan, log, question, options, check):
            return False
    return True


def _prompt(plan: Path, log: Path, question: AskHuman, options: str, check: str | None = None) -> bool:
    """Read answers until one is valid or the line is empty; return whether there was an answer."""
    while answer := _line(f"{options} (Enter: answer later): "):
        try:
            run = PlanRun.open(plan, None, log)
            messages = _give(run, question, answer, check)
            run.save()
        except (PlannerError, UsageMistake) as error:
            print(f"  {one_line(str(error), 1_000)}")
            continue
        print("\n".join(f"  {one_line(each, 1_000)}" for each in messages))
        return True
    return False


def _give(run: PlanRun, question: AskHuman, answer: str, check: str | None) -> list[str]:
    """Give the answer to the run; return the messages to show.

    A decision may be abbreviated, and be followed by its reason. Raises :class:`UsageMistake` for an
    unknown word.
    """
    if not question.kind.is_approval:
        return give_answer(run, question.todo_id or question.question_id, answer, login_name(), check)
    word, _, because = answer.partition(" ")
    decision = next((each for each in DECISIONS if each.startswith(word.lower())), None)
    decision = {"yes": "approve", "no": "reject"}.get(word.lower(), decision)
    if decision is None:
        raise UsageMistake(f"{word}: write {' or '.join(DECISIONS)}, and the reason behind it")
    why, digest = because.strip() or None, question.digest
    return [give_decision(run, question.question_id, decision, login_name(), why, digest, {})]


def _line(prompt: str) -> str:
    """Read one line; empty at the end of input."""
    try:
        return input(prompt).strip()
    except EOFError:
        print()
        return ""
