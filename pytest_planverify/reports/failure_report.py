"""The failure report of one todo, ``diagnostics/{todo}_failure_report.json`` below the plan's root.

It is all that whoever repairs the todo may get to see, so it carries the code around the raising lines, the
captured output, and the places to look at. Text of the run is stripped of secrets, and of what could steer
a terminal or hide from a reader; it stays untrusted.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from planner.edges.rule_advice import advice_for, page_of
from planner.errors import PlannerError
from planner.model.failure_report import (
    FailureReport,
    LookAt,
    Observation,
    ReportedCriterion,
    ReportedException,
    ReportedFailure,
    ReportedPlan,
    ReportedTodo,
)
from planner.model.kinds import Side
from planner.model.plan import ID_PATTERN
from planner.planfile.file_writer import replace_file
from planner.text.redaction import redact
from planner.text.sanitizing import clean
from pytest_planverify.checks.rooted import is_regular_file
from pytest_planverify.reports.comparisons import comparison
from pytest_planverify.reports.reported_causes import KnownCauses
from pytest_planverify.reports.source_excerpts import SourceReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from planner.model.evidence import Evidence, ExceptionFact, Frame
    from planner.model.outcome import Check, Failure, Outcome
    from planner.model.plan import Todo
    from planner.planfile.loader import LoadedPlan

FOLDER = "diagnostics"
SUFFIX = "_failure_report.json"
IGNORED = f"""\
# Written by pytest-planverify, with the reports of failed todos; other files are not ignored.
/.gitignore
/*{SUFFIX}
"""
MOST_OBSERVATIONS = 20
"""Of one failure; the tests that fail in the same way are named by its diagnosis all the same."""

_OWN = (Side.PRODUCT, Side.TEST)

_IDS = frozenset(("id", "run_id", "digest", "sha256", "signature"))
"""What names something for programs, and is no text of the run: it stays as it is."""


def failure_report(
    outcome: Outcome,
    evidence: Sequence[Evidence],
    *,
    plan: LoadedPlan,
    run_id: str | None = None,
    causes: KnownCauses | None = None,
) -> dict[str, Any]:
    """The report as JSON data, in the shape of :class:`FailureReport`.

    ``evidence`` is all that was seen of the todo's failures, in any order; ``causes`` are those of the run.
    """
    reader = SourceReader(plan.root)
    causes = causes or KnownCauses()
    todo = next((item for item in plan.plan.items if item.id == outcome.todo_id), None)
    left = list(evidence)
    failures: list[ReportedFailure] = []
    for failure in _deciding_first(outcome):
        mine = [fact for fact in left if _belongs(fact, failure)]
        left = [fact for fact in left if fact not in mine]
        check = next((check for check in outcome.checks if check.id == failure.check_id), None)
        reported = _reported(failure, mine, check, todo, reader)
        told = {"cause": causes.of(failure), "fix_first": causes.before(outcome, failure)}
        failures.append(reported.model_copy(update=told))
    report = FailureReport(
        run_id=run_id,
        plan=ReportedPlan(
            id=plan.plan.todo_list_id,
            name=plan.plan.workflow_name,
            path=_below(plan.path, plan.root),
            digest=plan.digest,
        ),
        todo=_reported_todo(outcome, todo),
        state=outcome.state,
        categories=tuple(dict.fromkeys(failure.diagnosis.category for failure in failures)),
        rerun=next((failure.diagnosis.rerun for failure in failures if failure.diagnosis.rerun), None),
        criteria=tuple(_reported_criterion(check) for check in outcome.checks),
        failures=tuple(failures),
        further_observations=tuple(_observation(fact, reader) for fact in left[:MOST_OBSERVATIONS]),
    )
    data: dict[str, Any] = _cleaned(report.model_dump(mode="json"))
    return data


def write_failure_report(report: Mapping[str, Any], *, root: Path, name: str | None = None) -> Path:
    """Write the report, which only its owner may read; in a folder that is made for it, git ignores it.

    ``name`` stands for the todo's id in the name of the file, where that is not the id itself. Returns
    the path, below ``root``. Raises ``PlannerError`` where that would lead out of the root, or cannot be
    written.
    """
    todo_id = str(report["todo"]["id"]) if name is None else name
    if not re.fullmatch(ID_PATTERN, todo_id):
        raise PlannerError(
            f"failure report of {clean(todo_id, limit=80)!r}: a todo's id has only letters, digits, '_', "
            "'.' and '-'; the report is not written"
        )
    folder = root.resolve() / FOLDER
    if folder.resolve() != folder:
        raise PlannerError(
            f"{folder}: failure reports are not written through a symbolic link; make it a folder"
        )
    if not folder.exists():
        replace_file(folder / ".gitignore", IGNORED, mode=None)
    target = folder / f"{todo_id}{SUFFIX}"
    replace_file(target, json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    return target


def remove_failure_report(plan_id: str, outcome: Outcome, *, root: Path, name: str) -> None:
    """Remove the report of a todo that is green now, if it is one of this plugin's and of this plan."""
    path = root.resolve() / FOLDER / f"{name}{SUFFIX}"
    with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
        if not path.parent.is_symlink() and is_regular_file(path):
            report: Any = json.loads(path.read_bytes())
            if (report["plan"]["id"], report["todo"]["id"]) == (plan_id, outcome.todo_id):
                path.unlink()


def _deciding_first(outcome: Outcome) -> list[Failure]:
    deciding = outcome.failure_evidence
    rest = [
        failure
        for failure in outcome.failures
        if deciding is None
        or (failure.signature, failure.check_id) != (deciding.signature, deciding.check_id)
    ]
    return rest if deciding is None else [deciding, *rest]


def _belongs(fact: Evidence, failure: Failure) -> bool:
    """By test where the failure names tests and the fact is about one, else by criterion."""
    named = {*failure.tests, *failure.top_failing_tests}
    shown = {*fact.tests, *([fact.nodeid] if fact.nodeid else [])}
    if named and shown:
        return bool(named & shown)
    return fact.check_id == failure.check_id


def _reported(
    failure: Failure,
    evidence: Sequence[Evidence],
    check: Check | None,
    todo: Todo | None,
    reader: SourceReader,
) -> ReportedFailure:
    seen = {(fact.nodeid, fact.headline, fact.phase): fact for fact in reversed(evidence)}
    facts = list(reversed(seen.values()))
    return ReportedFailure(
        diagnosis=failure,
        fixture=check.fixture if check else None,
        observations=tuple(_observation(fact, reader) for fact in facts[:MOST_OBSERVATIONS]),
        look_at=tuple(_places(failure, facts, check, todo)),
        what_to_do=advice_for(failure.rule or ""),
        rule_page=page_of(failure.rule or ""),
    )


def _observation(fact: Evidence, reader: SourceReader) -> Observation:
    return Observation(
        kind=fact.kind,
        nodeid=fact.nodeid,
        phase=fact.phase,
        headline=fact.headline,
        comparison=comparison(fact),
        exceptions=tuple(
            _exception(found, reader) for found in (*fact.exceptions, *fact.exceptions_in_group)
        ),
        longrepr=fact.longrepr,
        stdout_tail=fact.stdout_tail,
        stderr_tail=fact.stderr_tail,
        uses_fixtures=fact.fixtures,
        timed_out=fact.timed_out,
        limit_seconds=fact.limit_seconds,
        duration_seconds=fact.duration_seconds,
        confirmations=fact.confirmations,
        selectors=fact.selectors,
        process=fact.process,
        command=fact.command,
        artifact=fact.artifact,
        metric=fact.metric,
        contract=fact.contract,
    )


def _exception(found: ExceptionFact, reader: SourceReader) -> ReportedException:
    raised = reader.excerpt(found.frames[-1].path, found.frames[-1].line) if found.frames else None
    own = _last_own_frame(found)
    reached = None if own is None or own == found.frames[-1] else reader.excerpt(own.path, own.line)
    if raised is None and found.path and found.line:
        raised = reader.excerpt(found.path, found.line)  # a SyntaxError has no frame where it is
    return ReportedException(
        type=found.qualified,
        message=found.message,
        frames=_from_the_test_on(found.frames),
        raised_at=raised,
        reached_from=reached,
    )


def _from_the_test_on(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """Without the frames in which pytest calls the test: they are the same for every failure."""
    first = next((index for index, frame in enumerate(frames) if frame.side is not Side.FRAMEWORK), 0)
    return frames[first:]


def _last_own_frame(found: ExceptionFact) -> Frame | None:
    return next((frame for frame in reversed(found.frames) if frame.side in _OWN), None)


def _reported_todo(outcome: Outcome, todo: Todo | None) -> ReportedTodo:
    if todo is None:
        return ReportedTodo(id=outcome.todo_id, title=outcome.title)
    spec = todo.controller_task_spec
    return ReportedTodo(
        id=todo.id,
        title=todo.title,
        intent=todo.intent,
        agent_role=todo.agent_role,
        target_file=spec.target_file if spec else None,
        hint=spec.hint if spec else None,
        allowed_files=todo.allowed_files,
        contract_path=todo.contract_path,
        dependencies=todo.dependencies,
    )


def _reported_criterion(check: Check) -> ReportedCriterion:
    return ReportedCriterion(
        id=check.id,
        kind=check.kind,
        text=check.cmd or check.title or check.id,
        verdict=check.verdict,
        reason=check.reason,
    )


def _places(
    failure: Failure, facts: Sequence[Evidence], check: Check | None, todo: Todo | None
) -> Iterator[LookAt]:
    """Where to look, the likeliest first, each place once."""
    seen: set[tuple[str, int | None]] = set()
    for place in _candidates(failure, facts, check, todo):
        if (place.path, place.line) not in seen:
            seen.add((place.path, place.line))
            yield place


def _candidates(
    failure: Failure, facts: Sequence[Evidence], check: Check | None, todo: Todo | None
) -> Iterator[LookAt]:
    if failure.location:
        at = failure.location
        yield LookAt(path=at.path, line=at.line, why="where the diagnosis places the failure")
    for fact in facts[:3]:
        for found in fact.exceptions:
            own = [frame for frame in reversed(found.frames) if frame.side in _OWN]
            for frame in own[:3]:
                side = "the project's code" if frame.side is Side.PRODUCT else "the test"
                yield LookAt(path=frame.path, line=frame.line, why=f"{side} on the way to {found.type}")
        for complaint in fact.command.findings[:5] if fact.command else ():
            if complaint.path:
                yield LookAt(path=complaint.path, line=complaint.line, why=complaint.message)
        if fact.artifact:
            yield LookAt(path=fact.artifact.path, why=f"the artifact: {fact.artifact.problem}")
        if fact.contract and fact.contract.module_path:
            yield LookAt(
                path=fact.contract.module_path,
                line=fact.contract.line,
                why="the code that the contract is about",
            )
    if check and check.fixture:
        yield LookAt(path=check.fixture.path, why="the data that the criterion is tested with")
    if todo and todo.contract_path:
        yield LookAt(path=todo.contract_path, why="the contract of the todo")
    if todo and todo.controller_task_spec and todo.controller_task_spec.target_file:
        yield LookAt(path=todo.controller_task_spec.target_file, why="the file that the todo is about")


def _below(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _cleaned(value: Any) -> Any:
    """The same data, every text in it without control sequences, invisible characters and secrets."""
    if isinstance(value, str):
        return redact(clean(value))
    if isinstance(value, list):
        return [_cleaned(entry) for entry in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {key: _cleaned_member(key, entry) for key, entry in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value


def _cleaned_member(key: str, value: Any) -> Any:
    if key in _IDS and isinstance(value, str):
        return clean(value)
    if key == "argv":
        return _cleaned_words(value)
    return _cleaned(value)


def _cleaned_words(words: Sequence[str]) -> list[str]:
    """The words of a command; the value of an option such as ``--token`` is a word of its own."""
    shown: list[str] = []
    before = ""
    for word in words:
        safe = redact(clean(word))
        option, given, value = redact(f"{before} {safe}").partition(f"{before} ")
        if before.startswith("-") and given and not option:
            safe = value
        shown.append(safe)
        before = word
    return shown
