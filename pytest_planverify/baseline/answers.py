"""What one or several runs of a plan said of each todo, each check and each test, for a baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from planner.model.baseline import BaselineCheck, BaselineTest, BaselineTodo
from planner.model.plan import TodoStatus
from planner.model.taxonomy import Category
from planner.model.verdicts import TestOutcome, TodoState, Verdict
from planner.policy.since import GREEN
from pytest_planverify.baseline.nodeids import below
from pytest_planverify.journal import read_journal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from planner.model.outcome import Outcome, OutcomeDocument
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.journal import Record


class Run(NamedTuple):
    """One run of the whole plan."""

    document: OutcomeDocument
    records: Sequence[Record]
    """Its journal, which knows of files that could not be imported, and of plugins."""


def run_of(document: OutcomeDocument, root: Path) -> Run:
    """The run that wrote a document, with its journal; read at once, for old journals are removed."""
    journal = root / ".planverify" / "runs" / document.run.run_id / "journal.jsonl"
    try:
        return Run(document, read_journal(journal))
    except OSError:
        return Run(document, ())


def all_records(runs: Sequence[Run]) -> list[Record]:
    """The records of all runs, those of the first last: it alone saw the tree as it was.

    Sessions and pens of several runs have the same names; here each has its own.
    """
    found: list[Record] = []
    for number, run in reversed(list(enumerate(runs))):
        for record in run.records:
            own = {name: f"{number}/{record[name]}" for name in ("session", "pen") if name in record}
            found.append({**record, **own} if number else record)
    return found


def broken_files(runs: Sequence[Run]) -> Iterator[str]:
    """Test files that could not be imported, by their paths below the root."""
    for run in runs:
        for record in run.records:
            if record.get("record") == "collection_failure" and isinstance(record.get("nodeid"), str):
                yield record["nodeid"].partition("::")[0]


def todos_of(flat: FlatPlan, runs: Sequence[Run]) -> Iterator[tuple[str, BaselineTodo]]:
    """Each todo of the plan with what it and its checks said."""
    told: dict[str, list[Outcome]] = {}
    for run in runs:
        for outcome in run.document.outcomes:
            told.setdefault(outcome.todo_id, []).append(outcome)
    for todo_id, outcomes in told.items():
        yield (
            todo_id,
            BaselineTodo(
                state=_state([outcome.state for outcome in outcomes]),
                claimed=flat.loaded.plan.todo(todo_id).status is TodoStatus.CLAIMED,
                checks=dict(_checks(outcomes)),
            ),
        )


def tests_of(flat: FlatPlan, runs: Sequence[Run]) -> Iterator[tuple[str, BaselineTest]]:
    """Each test once: what is red in one check or run and green in another has given both answers."""
    answers: dict[str, list[TestOutcome]] = {}
    signatures: dict[str, str] = {}
    flaky: set[str] = set()
    for outcome in (each for run in runs for each in run.document.outcomes):
        for check in outcome.checks:
            for test in check.tests:
                answers.setdefault(below(flat, outcome.todo_id, test.nodeid), []).append(test.outcome)
        _read_failures(flat, outcome, signatures, flaky)
    for nodeid, given in answers.items():
        ran = [answer for answer in given if answer is not TestOutcome.NOT_RUN]
        red = next((answer for answer in ran if answer.is_red), None)
        both = red is not None and any(answer in GREEN for answer in ran)
        if ran:
            yield (
                nodeid,
                BaselineTest(
                    outcome=red or ran[0],
                    flaky=both or nodeid in flaky,
                    signature=signatures.get(nodeid),
                ),
            )


def _checks(outcomes: Sequence[Outcome]) -> Iterator[tuple[str, BaselineCheck]]:
    signatures: dict[str, dict[str, None]] = {}
    for failure in (each for outcome in outcomes for each in outcome.failures):
        if failure.check_id is not None and failure.signature is not None:
            signatures.setdefault(failure.check_id, {})[failure.signature] = None
    for check_id in dict.fromkeys(check.id for outcome in outcomes for check in outcome.checks):
        told = [check for outcome in outcomes for check in outcome.checks if check.id == check_id]
        yield (
            check_id,
            BaselineCheck(
                verdict=_verdict([check.verdict for check in told]),
                signatures=tuple(signatures.get(check_id, ())),
                cmd=told[0].cmd,
                tests=tuple(dict.fromkeys(test.nodeid for check in told for test in check.tests)),
            ),
        )


def _state(states: Sequence[TodoState | None]) -> TodoState | None:
    """Done is what was done each time."""
    if TodoState.TEST_FAILED in states:
        return TodoState.TEST_FAILED
    return next((state for state in states if state is not TodoState.DONE), TodoState.DONE)


def _verdict(verdicts: Sequence[Verdict]) -> Verdict:
    """What gave both answers is flaky; else whatever was not a pass counts."""
    if Verdict.FLAKY in verdicts or {Verdict.PASSED, Verdict.FAILED} <= set(verdicts):
        return Verdict.FLAKY
    if Verdict.FAILED in verdicts:
        return Verdict.FAILED
    return next((verdict for verdict in verdicts if verdict is not Verdict.PASSED), Verdict.PASSED)


def _read_failures(flat: FlatPlan, outcome: Outcome, signatures: dict[str, str], flaky: set[str]) -> None:
    for failure in outcome.failures:
        names = [below(flat, outcome.todo_id, test) for test in failure.tests]
        if failure.category is Category.FLAKY_TEST:
            flaky.update(names)
        if failure.signature is not None:
            for name in names:
                signatures.setdefault(name, failure.signature)
