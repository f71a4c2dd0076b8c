"""``planner answer``, ``approve``, ``reject`` and ``modify``: a person answers a question of the plan."""

from __future__ import annotations

import getpass
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.app import command_app
from planner.cli.arguments import nearest, plan_or_usual
from planner.cli.ending import Status, UsageMistake, ends, program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.engine import Question
    from planner.model.events import BranchChanges, Decision
    from planner.store.plan_run import PlanRun

answer_app, approve_app, reject_app, modify_app = (command_app() for _ in range(4))

EPILOG = """\
\b
Exit status: 0 taken in, 2 wrong usage or nothing of that name is asked, 4 a file that cannot be used.
The plan is planverify.yaml, plan.yaml or todo.yaml where none is named. planner next shows what is asked.
"""

Words = Annotated[list[str], typer.Argument(metavar="[PLAN] ID")]
By = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Who says so. Default: the login name.")
]
Because = Annotated[str | None, typer.Option("--because", metavar="TEXT", help="Why, in a sentence.")]
Log = Annotated[
    Path | None,
    typer.Option("--log", metavar="FILE", help="The log of the run. Default: the newest of the plan."),
]
Digest = Annotated[
    str | None,
    typer.Option(
        "--digest", metavar="DIGEST", help="What was looked at; refused if something else is proposed now."
    ),
]


@answer_app.command(epilog=EPILOG)
@ends
def answer(
    words: Annotated[list[str], typer.Argument(metavar="[PLAN] TODO yes|no|TEXT")],
    by: By = None,
    check: Annotated[
        str | None,
        typer.Option("--check", metavar="ID", help="Which question: manual[0]. Default: all of them."),
    ] = None,
    log: Log = None,
) -> int:
    """Answer a question about a todo: one that the plan asks, or how it goes on.

    To a question of the plan, TEXT is a no with that reason. How it goes on is answered by one of the
    options shown, by yes for the first of them and no for give_up, or by TEXT: once more, with that advice.
    """
    plan, (name, said) = _split(words, 2, "TODO yes|no|TEXT")
    run = _open(plan, log)
    todo_id = _todo_id(run, name)
    record = run.state.records.get(todo_id)
    who = by or _login()
    told: list[str] = []
    if record is not None and record.todo.acceptance_criteria.manual:
        told += _answer_checks(run, todo_id, said, who, check)
    question = _question_about(run, todo_id)
    if question is not None and not question.kind.is_approval:
        told.append(_answer_question(run, question, said, who))
    if not told:
        open_ = sorted({each.todo_id or each.id for each in run.state.questions.values()})
        listing = nearest(name, open_, "asked is about") if open_ else "no question is open"
        raise UsageMistake(f"nothing is asked about {todo_id}; {listing}")
    return _close(run, plan, told)


@approve_app.command(epilog=EPILOG)
@ends
def approve(
    words: Words,
    similar: Annotated[
        bool, typer.Option("--similar", help="Also every later branch for a failure of the same class.")
    ] = False,
    by: By = None,
    because: Because = None,
    digest: Digest = None,
    log: Log = None,
) -> int:
    """Approve a branch, an edit of the plan, or the start of a todo. ID is a branch, or its todo."""
    from planner.model.events import Decision

    decision = Decision.APPROVE_SIMILAR if similar else Decision.APPROVE
    return _decide(words, decision, by, because, digest, log)


@reject_app.command(epilog=EPILOG)
@ends
def reject(
    words: Words, by: By = None, because: Because = None, digest: Digest = None, log: Log = None
) -> int:
    """Reject a branch, an edit of the plan, or the start of a todo. ID is a branch, or its todo."""
    from planner.model.events import Decision

    return _decide(words, Decision.REJECT, by, because, digest, log)


@modify_app.command(epilog=EPILOG)
@ends
def modify(
    words: Words,
    role: Annotated[str | None, typer.Option("--role", help="Who works on it.")] = None,
    instructions: Annotated[
        str | None,
        typer.Option("--instructions", metavar="TEXT", help="Put before the instructions."),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", metavar="GLOB", help="It may write only these files. Several times."),
    ] = None,
    after: Annotated[
        list[str] | None,
        typer.Option("--after", metavar="TODO", help="It waits for this. Several times."),
    ] = None,
    attempts: Annotated[int | None, typer.Option("--attempts", min=1, help="So many attempts.")] = None,
    lifetime: Annotated[
        float | None, typer.Option("--lifetime", min=1, metavar="SECONDS", help="It has so long.")
    ] = None,
    by: By = None,
    because: Because = None,
    digest: Digest = None,
    log: Log = None,
) -> int:
    """Approve a branch with changes."""
    from pydantic import ValidationError

    from planner.model.events import BranchChanges, Decision

    held = {
        "role": role,
        "instructions": instructions,
        "allowed_files": tuple(allow) if allow else None,
        "dependencies": tuple(after) if after else None,
        "max_debug_attempts": attempts,
        "max_lifetime_seconds": lifetime,
    }
    given = {name: value for name, value in held.items() if value is not None}
    if not given:
        raise UsageMistake("nothing is to be changed; name --role, --instructions, --allow, --after, …")
    try:
        changes = BranchChanges.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageMistake(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    return _decide(words, Decision.MODIFY, by, because, digest, log, changes)


def _decide(
    words: Sequence[str],
    decision: Decision,
    by: str | None,
    because: str | None,
    digest: str | None,
    log: Path | None,
    changes: BranchChanges | None = None,
) -> int:
    from planner.model.events import ApprovalGiven, BranchChanges

    plan, (name,) = _split(words, 1, "ID")
    run = _open(plan, log)
    questions = [each for each in run.state.questions.values() if each.kind.is_approval]
    asked = next((each for each in questions if name in (each.id, each.todo_id)), None)
    if asked is None:
        known = [each.id for each in questions]
        listing = nearest(name, known, "asked is") if known else "nothing waits for approval"
        raise UsageMistake(f"{name}: nothing of that name is to be approved; {listing}")
    who = by or _login()
    run.tell(
        ApprovalGiven(
            at=datetime.now(UTC),
            approval_id=asked.id,
            decision=decision,
            digest=asked.digest if digest is None else digest,
            changes=changes or BranchChanges(),
            by=who,
            because=because,
        )
    )
    verb = {"approve": "approved", "reject": "rejected", "modify": "approved with changes"}
    return _close(
        run, plan, [f"{verb.get(decision.value, 'approved, and all of its class')}: {asked.id} ({who})"]
    )


def _answer_checks(run: PlanRun, todo_id: str, said: str, who: str, check: str | None) -> list[str]:
    """Keep answers to the manual criteria of a todo where the verification reads them."""
    from planner.model.answers import Answer
    from planner.planfile.answers_file import add_answers

    specs = run.state.records[todo_id].todo.acceptance_criteria.manual
    wanted = {f"manual[{at}]": spec for at, spec in enumerate(specs)}
    if check is not None and check not in wanted:
        raise UsageMistake(f"--check {check}: {nearest(check, wanted, 'the questions are')}")
    plain = said.lower() if said.lower() in ("yes", "no") else None
    added = [
        Answer(
            plan=run.state.plan_id,
            todo_id=todo_id,
            check_id=check_id,
            question=spec.question,
            answer="yes" if plain == "yes" else "no",
            by=who,
            at=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            note=None if plain else said,
        )
        for check_id, spec in wanted.items()
        if check in (None, check_id)
    ]
    add_answers(run.tree.loaded.root, added)
    return [f"{each.todo_id}: {each.question} {each.answer} ({who})" for each in added]


def _answer_question(run: PlanRun, question: Question, said: str, who: str) -> str:
    from planner.model.events import QuestionAnswered

    option, because = said, None
    if said not in question.options:
        short = {"yes": question.options[0], "no": "give_up" if "give_up" in question.options else "stop"}
        option = short.get(said.lower(), question.options[0])
        because = None if said.lower() in short else said
    if question.kind.value == "answer":  # what was answered stands with the checks
        option, because = "answered", None
    run.tell(
        QuestionAnswered(
            at=datetime.now(UTC), question_id=question.id, answer=option, by=who, because=because
        )
    )
    return f"{question.todo_id or question.id}: {option} ({who})"


def _split(words: Sequence[str], count: int, usage: str) -> tuple[Path, list[str]]:
    """Return the plan and the words behind it; one word less means the usual plan."""
    if len(words) == count + 1:
        return Path(words[0]), list(words[1:])
    if len(words) == count:
        return plan_or_usual(None), list(words)
    raise UsageMistake(f"{shlex.join(words)} is not enough, or too much; write [PLAN] {usage}")


def _open(plan: Path, log: Path | None) -> PlanRun:
    from planner.store.plan_run import PlanRun

    return PlanRun.open(plan, None, log)


def _todo_id(run: PlanRun, name: str) -> str:
    if name in run.state.questions:
        return run.state.questions[name].todo_id or name
    from planner.cli.next import known_todo

    return known_todo(run.state, name, "TODO")


def _question_about(run: PlanRun, todo_id: str) -> Question | None:
    return next((each for each in run.state.questions.values() if todo_id in (each.todo_id, each.id)), None)


def _close(run: PlanRun, plan: Path, told: Sequence[str]) -> int:
    """Write the log, and say what was taken in and how it goes on."""
    from planner.cli.next_screen import words_of
    from planner.cli.screen import Screen

    run.save()
    screen = Screen()
    for line in told:
        screen.line(screen.one_line(line))
    screen.line(f"next: {program()} next {words_of(run, plan)}")
    screen.show()
    return Status.OK


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "somebody"
