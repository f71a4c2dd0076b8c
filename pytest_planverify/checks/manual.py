"""Manual criteria, answered by people in a file beside the outcomes.

An answer belongs to one wording of its question: after the question has changed, it has to be given again.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple

from planner.errors import FileWriteError
from planner.model.evidence import Evidence
from planner.model.verdicts import EvidenceKind, Verdict
from planner.planfile.loader import shown_path
from planner.planfile.plan_folder import HOME
from planner.planfile.project_files import Confinement
from planner.planfile.record_files import ANSWERS, load_answers
from planner.text.sanitizing import clean
from pytest_planverify.checks.result import Judgement

if TYPE_CHECKING:
    from pathlib import Path

    from planner.model.answers import Answer
    from planner.model.plan import ManualSpec
    from planner.planfile.loader import LoadedPlan


class AnswersOnFile(NamedTuple):
    """The recorded answers."""

    answers: tuple[Answer, ...] = ()
    problem: str | None = None
    """Why the file is unusable, which leaves all questions open."""


def read_answers(root: Path) -> AnswersOnFile:
    """Read the answers below the root; a missing file has none. Never raises."""
    place = f"{HOME}/{ANSWERS}"
    if Confinement(root).fault(place) is not None:
        return AnswersOnFile(problem=f"{place} is outside of the plan's root")
    try:
        return AnswersOnFile(load_answers(root))
    except (FileWriteError, OSError) as error:
        return AnswersOnFile(problem=str(error))


def check_manual(
    spec: ManualSpec,
    loaded: LoadedPlan,
    todo_id: str,
    check_id: str,
    answers: AnswersOnFile,
    *,
    alone: bool,
) -> Judgement:
    """Return the judgement of a question: ``yes`` passes, ``no`` fails, no answer is ``needs_human``.

    The last answer counts. If all answers are to an earlier wording of the question, it is ``stale``.
    ``loaded`` is the plan, ``alone`` says that the todo asks nothing else, so that an answer need not name
    the check.
    """
    question = clean(spec.question, limit=500)
    given = [
        answer
        for answer in answers.answers
        if (answer.plan, answer.todo_id, answer.check_id) == (loaded.plan.todo_list_id, todo_id, check_id)
    ]
    # Answers to an earlier wording do not count, but they are reported.
    current = [answer for answer in given if answer.question == spec.question]
    if current and current[-1].answer == "yes":
        return Judgement(verdict=Verdict.PASSED)
    if current:
        note = f": {current[-1].note}" if current[-1].note else ""
        reason = clean(f"{current[-1].by} answered no{note}", limit=500)
        evidence = Evidence(kind=EvidenceKind.MANUAL, check_id=check_id, headline=f"{question} {reason}")
        return Judgement(verdict=Verdict.FAILED, reason=reason, evidence=(evidence,))
    # The summary of a run finds the command behind "answer: ", see reports.terminal.
    words = ["planverify", "answer", shown_path(loaded.path), todo_id, "yes"]
    words += [] if alone else ["--check", check_id]  # without it, the answer is to the only question
    how = f"answer: {shlex.join(words)} # or no, or a reason"
    if given:
        reason = f"it was answered when the question was {clean(given[-1].question, limit=200)!r}; {how}"
        return Judgement(verdict=Verdict.STALE, reason=reason)
    trouble = f"{clean(answers.problem, limit=300)}; " if answers.problem else ""
    return Judgement(
        verdict=Verdict.NEEDS_HUMAN,
        reason=f"{trouble}question for {spec.role.value}: {question} {how}",
    )
