"""``planner answer``, ``approve``, ``reject`` and ``modify``: record a person's answer to an open question.

Each command opens the run of the plan, applies one answer or approval as an event, saves the log and
prints how to continue. :func:`give_answer` and :func:`give_decision` are shared with ``planner serve``.
"""

from __future__ import annotations

import getpass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError

from planner.cli.app import command
from planner.cli.arguments import LogOption, nearest, option
from planner.cli.exits import UsageMistake, program, say
from planner.cli.next import known_todo, words_of
from planner.errors import RefusedEvent
from planner.model.actions import QuestionKind
from planner.model.answers import Answer
from planner.model.events import ApprovalGiven, BranchChanges, Decision, QuestionAnswered
from planner.model.taxonomy import Role
from planner.planfile.record_files import add_answers
from planner.store.plan_run import PlanRun
from planner.text.display import listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planner.model.actions import AskHuman

EPILOG = """\
\b
Exit status: 0 recorded, 2 wrong usage or no such question, 4 a file cannot be used.
planner next shows the open questions.
"""

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="The plan file.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="The branch, edit or start; or its todo.")]
By = Annotated[str | None, option("--by NAME", "The name of the person. Default: the login name.")]
Because = Annotated[str | None, option("--because TEXT", "The reason, in a sentence.")]
Digest = Annotated[
    str | None,
    option("--digest DIGEST", "The digest of what was reviewed; refused if the proposal has changed."),
]


def login_name() -> str:
    """Return the login name of the current user, or ``somebody`` where the system does not know it."""
    try:
        return getpass.getuser()
    # Users of containers may have no entry in the password database. Before Python 3.13 that is a KeyError.
    except (OSError, KeyError):
        return "somebody"


@command(EPILOG)
def answer(
    plan: PlanFile,
    todo: Annotated[str, typer.Argument(metavar="TODO")],
    text: Annotated[str, typer.Argument(metavar="yes|no|TEXT")],
    by: By = None,
    check: Annotated[
        str | None, option("--check ID", "Which question, if several are open, such as manual[0].")
    ] = None,
    log: LogOption = None,
) -> None:
    """Answer a question about a todo: a question of the plan, or how the todo should continue.

    For a question of the plan, any TEXT but yes means no, with that reason. For how to continue, answer one
    of the options shown, yes for the first of them, no for give_up, or TEXT to retry with that advice.
    """
    run = PlanRun.open(plan, None, log)
    _close(run, plan, give_answer(run, todo, text, by or login_name(), check))


def give_answer(
    run: PlanRun, name: str, text: str, by: str, check: str | None = None, note: str | None = None
) -> list[str]:
    """Apply an answer to the open questions about a todo; return a line to print for each of them.

    ``name`` is a todo or the id of a question. ``check`` names the manual criterion, if several are open,
    or one that is answered anew. ``note`` is the reason of a yes or no.
    Answers to manual criteria are written to the answers file at once, the answer to a question of the
    engine is kept in the run, which the caller has to save. Raises ``UsageMistake`` if nothing is asked
    about the todo, if it is unclear which question is answered, or if ``text`` is blank.
    """
    text = text.strip()
    if not text:
        raise UsageMistake("the answer is empty; answer yes, no, or with a reason")
    state = run.state
    asked = state.questions.get(name)
    todo_id = asked.todo_id or name if asked else known_todo(run, name)
    about = (each for each in state.questions.values() if todo_id in (each.todo_id, each.question_id))
    # An approval is bound to what was proposed, so only ``approve`` and its like decide it.
    question = next((each for each in about if not each.kind.is_approval), None)
    is_of_plan = question is None or question.kind is QuestionKind.ANSWER
    lines = list[str]()
    if (is_of_plan or check is not None) and todo_id in state.records:
        lines += _answer_checks(run, todo_id, text, by, check, note)
        # The engine asks once for all questions of a todo, so it is answered with the last of them.
        if question is not None and (left := run.open_questions(todo_id)):
            return [*lines, *(f"still open: {each} {words}" for each, words in left.items())]
    if question is not None and (is_of_plan or check is None):
        option, because = _option(question, text, note)
        _tell(
            run,
            QuestionAnswered(
                at=datetime.now(UTC),
                question_id=question.question_id,
                answer=option,
                by=by,
                because=because,
            ),
        )
        # Advice is shown, as a misspelled option counts as advice, too.
        advice = f" with the advice '{because}'" if because else ""
        lines.append(f"{question.todo_id or question.question_id}: {option}{advice} ({by})")
    if not lines:
        open_ = sorted({each.todo_id or each.question_id for each in state.questions.values()})
        listing = nearest(name, open_, "asked is about") if open_ else "no question is open"
        raise UsageMistake(f"{todo_id} has no open question; {listing}")
    return lines


def _option(question: AskHuman, text: str, note: str | None) -> tuple[str, str | None]:
    """Return the option of a question that an answer means, and the reason or advice with it."""
    if question.kind is QuestionKind.ANSWER:
        return question.options[0], note
    if text in question.options:
        return text, note
    first, last = question.options[0], "give_up" if "give_up" in question.options else "stop"
    short = {"yes": first, "no": last}.get(text.lower())
    return (first, text) if short is None else (short, note)


def _answer_checks(
    run: PlanRun, todo_id: str, text: str, by: str, check: str | None, note: str | None
) -> list[str]:
    """Write answers to the manual criteria of a todo into the file from which the verification reads them.

    Any reply but yes and no counts as a no with the reply as its reason. Return a line for each answer.
    Raises ``UsageMistake`` if ``check`` is no question of the todo, or is missing where several are open.
    """
    known = run.manual_questions(todo_id)
    if known and check is not None and check not in known:
        its = f"its questions are {listed(known)}"
        raise UsageMistake(f"--check {check}: {todo_id} has no such question; {its}")
    # With --check, an earlier answer may be replaced.
    wanted = known if check is not None else run.asked_questions(todo_id)
    if check is None and len(wanted) > 1:
        names = "; ".join(f"{name} {question}" for name, question in wanted.items())
        raise UsageMistake(f"{todo_id} has several questions; name one with --check: {names}")
    is_plain = text.lower() in ("yes", "no")
    added = [
        Answer(
            plan=run.state.plan_id,
            todo_id=todo_id,
            check_id=check_id,
            question=question,
            answer="yes" if text.lower() == "yes" else "no",
            by=by,
            at=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            note=note if is_plain else text,
        )
        for check_id, question in wanted.items()
        if check in (None, check_id)
    ]
    if added:
        add_answers(run.tree.loaded.root, added)
    return [f"{each.todo_id}: {each.question} {each.answer} ({each.by})" for each in added]


@command(EPILOG)
def approve(
    plan: PlanFile,
    name: Id,
    similar: Annotated[
        bool, option("--similar", "Approve later branches for the same class of failure, too.")
    ] = False,
    by: By = None,
    because: Because = None,
    digest: Digest = None,
    log: LogOption = None,
) -> None:
    """Approve a branch, an edit or the start of a todo."""
    _decide(plan, name, log, "approve_similar" if similar else "approve", by, because, digest)


@command(EPILOG)
def reject(
    plan: PlanFile,
    name: Id,
    by: By = None,
    because: Because = None,
    digest: Digest = None,
    log: LogOption = None,
) -> None:
    """Reject a branch, an edit or the start of a todo."""
    _decide(plan, name, log, "reject", by, because, digest)


@command(EPILOG)
def modify(
    plan: PlanFile,
    name: Id,
    role: Annotated[Role | None, option("--role", "The role that works on it.")] = None,
    instructions: Annotated[
        str | None, option("--instructions TEXT", "Text to put before the instructions.")
    ] = None,
    allow: Annotated[
        list[str] | None, option("--allow GLOB", "Restrict it to these files; may be repeated.")
    ] = None,
    attempts: Annotated[int | None, option("--attempts", "The number of attempts.", min=1)] = None,
    by: By = None,
    because: Because = None,
    digest: Digest = None,
    log: LogOption = None,
) -> None:
    """Approve a branch with changes."""
    names = ("role", "instructions", "allowed_files", "max_debug_attempts")
    given = zip(names, (role, instructions, allow, attempts), strict=True)
    changes = {name: value for name, value in given if value is not None}
    if not changes:
        raise UsageMistake(
            "no change is given; use --role, --instructions, --allow or --attempts, or use approve"
        )
    _decide(plan, name, log, "modify", by, because, digest, changes)


def _decide(plan: Path, name: str, log: Path | None, decision: str, by: str | None, *more: Any) -> None:
    run = PlanRun.open(plan, None, log)
    _close(run, plan, [give_decision(run, name, decision, by or login_name(), *more)])


_DONE = {
    "approve": "approved",
    "approve_similar": "approved, with all of its class",
    "reject": "rejected",
    "modify": "approved with changes",
}


def give_decision(
    run: PlanRun,
    name: str,
    decision: str,
    by: str,
    because: str | None = None,
    digest: str | None = None,
    changes: Mapping[str, Any] | None = None,
) -> str:
    """Apply a decision about a branch, an edit or a start to a run; return a line to print.

    ``digest`` identifies the proposal that the person saw; ``None`` means the one that is open now.
    ``changes`` are fields of :class:`planner.model.events.BranchChanges`. Raises ``UsageMistake`` if the
    changes are invalid, nothing of that name waits for approval, or the engine refuses the decision.
    """
    try:
        changed = BranchChanges.model_validate(changes or {})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field, problem = ".".join(map(str, first["loc"])), first["msg"].replace("Input should", "it must")
        raise UsageMistake(f"{field}: {problem}") from None
    questions = [each for each in run.state.questions.values() if each.kind.is_approval]
    asked = next((each for each in questions if name in (each.question_id, each.todo_id)), None)
    if asked is None:
        known = [each.question_id for each in questions]
        listing = nearest(name, known, "asked is") if known else "nothing waits for approval"
        raise UsageMistake(f"{name}: there is no such request for approval; {listing}")
    _tell(
        run,
        ApprovalGiven(
            at=datetime.now(UTC),
            approval_id=asked.question_id,
            decision=Decision(decision),
            digest=asked.digest if digest is None else digest,
            changes=changed,
            by=by,
            because=because,
        ),
    )
    return f"{_DONE[decision]}: {asked.question_id} ({by})"


def _tell(run: PlanRun, event: ApprovalGiven | QuestionAnswered) -> None:
    """Apply a person's words to a run. Raises ``UsageMistake`` if the engine refuses them."""
    try:
        run.tell(event)
    except RefusedEvent as error:
        raise UsageMistake(str(error)) from None


def _close(run: PlanRun, plan: Path, lines: Sequence[str]) -> None:
    """Save the log; print what was recorded, and the command that continues."""
    run.save()
    for line in lines:
        say(line)
    say(f"next: {program()} next {words_of(run, plan)}")
