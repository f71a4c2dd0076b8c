"""From what was seen of a session to what each of its criteria says. Pure.

The parent never believes an exit status alone, nor a report alone: a criterion passes when its tests
were collected, each has a result, one at least truly passed, none failed, the session came to its own
end, and the limit was kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.model.outcome import TestResult
from planner.model.verdicts import TestOutcome, Verdict
from pytest_planverify.judgement import Judgement
from pytest_planverify.observing.spec import COVERAGE_DEMAND
from pytest_planverify.supervision.asked import file_of
from pytest_planverify.supervision.judging_evidence import (
    collection_evidence,
    death_evidence,
    how_it_ended,
    over_limit,
    overturned_evidence,
    raw_evidence,
    records_evidence,
    rerun_evidence,
    selection_evidence,
    session_evidence,
    test_evidence,
    vacuous_evidence,
)
from pytest_planverify.supervision.record_values import GREEN, PROVING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planner.model.evidence import Evidence
    from pytest_planverify.supervision.asked import Asked
    from pytest_planverify.supervision.record_values import TestRecord
    from pytest_planverify.supervision.records import SessionRecord


_TESTS_FAILED = 1


NO_TESTS = 5
"""pytest's exit status where no test was collected."""


def judge_shared(asked: Asked, record: SessionRecord, *, narrowed_run: bool = False) -> Judgement:
    """What a criterion says of a session that it shared with others."""
    return _with_events(asked, record, _judge_shared(asked, record, narrowed_run=narrowed_run))


def judge_alone(asked: Asked, record: SessionRecord) -> Judgement:
    """What a criterion says of a session of its own, where the exit status must agree as well."""
    judgement = _without_records(asked, record, _judge_alone(asked, record))
    return _with_events(asked, record, judgement)


def _without_records(asked: Asked, record: SessionRecord, judgement: Judgement) -> Judgement:
    """Where what its session said is not all there, nobody but its own tests can have cut the journal.

    What they said besides is kept, and excuses nothing: how much of it was read before the cut is chance.
    """
    seen_red = any(test.outcome.is_red for test in judgement.tests)
    if record.journal_cut:
        evidence = records_evidence(asked, tuple(test.nodeid for test in judgement.tests))
        judgement.verdict, judgement.reason = Verdict.FAILED, evidence.headline
        judgement.evidence = (evidence, *(judgement.evidence if seen_red else ()))
    elif record.journal_lost and judgement.is_red and not seen_red:
        # Where they could not be written, that is no answer of the test's.
        judgement.verdict, judgement.evidence = Verdict.INCONCLUSIVE, ()
        judgement.reason = "some records of the session are missing"
    return judgement


def _with_events(asked: Asked, record: SessionRecord, judgement: Judgement) -> Judgement:
    """What was reached for on its behalf: what the plan denies fails it, whatever the tests said."""
    if not record.audit:
        return judgement
    from pytest_planverify.guards.sandbox import hold

    return hold(
        judgement,
        record.audit.values(),
        key=asked.key,
        check_id=asked.check_id,
        nodeids=frozenset(test.nodeid for test in judgement.tests),
        names=asked.concerns,
        test_files=record.test_files,
    )


def _judge_shared(asked: Asked, record: SessionRecord, *, narrowed_run: bool = False) -> Judgement:
    selection = record.selections.get(asked.key)
    if selection is None:
        return _not_selected(asked, record)
    results = [record.results.get(nodeid) for nodeid in selection["nodeids"]]
    evidence = selection_evidence(asked, selection["problems"])
    evidence += collection_evidence(asked, record)
    judgement = asked.seen(_judge_tests(asked, record, selection, results, evidence))
    if asked.key in record.conflicts and (judgement.is_red or judgement.verdict is Verdict.PASSED):
        _disown(judgement)
    if judgement.verdict is Verdict.PASSED:
        judgement.doubt = _doubt(asked, record, selection["nodeids"])
        if selection["narrowed"]:
            judgement.verdict = Verdict.NOT_RUN
            judgement.reason = (
                f"{_count(len(selection['narrowed']), 'of its tests was', 'of its tests were')} left out"
            )
    elif selection["narrowed"] and not judgement.is_red:
        judgement.verdict = Verdict.NOT_RUN
        judgement.reason = "all of its tests were left out"
    elif narrowed_run and not selection["narrowed"] and not selection["nodeids"] and not judgement.is_red:
        judgement.verdict = Verdict.NOT_RUN
    return judgement


def _judge_alone(asked: Asked, record: SessionRecord) -> Judgement:
    if not record.collected and not record.deaths:
        return _never_collected(asked, record)
    if not record.collected:
        return _dead_session(asked, record)
    judgement = _judge_shared(asked, record)
    judgement.doubt = None
    judgement.exit_code = record.exit_status
    explained = (0, _TESTS_FAILED) if judgement.forgiven else (0,)
    if judgement.verdict is Verdict.PASSED and record.exit_status not in explained:
        return _unexplained(asked, record, judgement)
    return judgement


def _judge_tests(
    asked: Asked,
    record: SessionRecord,
    selection: dict[str, Any],
    results: Sequence[TestRecord | None],
    evidence: list[Evidence],
) -> Judgement:
    found = [result for result in results if result is not None]
    judgement = Judgement(
        verdict=Verdict.FAILED,
        tests=tuple(
            _test_result(nodeid, result)
            for nodeid, result in zip(selection["nodeids"], results, strict=True)
        ),
        duration_ms=round(sum(result.duration_ms for result in found)),
        properties=_properties(record, found),
    )
    evidence += [
        piece for result in found if result.is_red for piece in test_evidence(asked, record, result)
    ]
    slow = over_limit(asked, found)
    missing = sum(result is None for result in results)
    if evidence:
        judgement.evidence = tuple(evidence)
        judgement.reason = None
    elif slow is not None:
        judgement.evidence = (slow,)
        judgement.reason = (
            f"took {judgement.duration_ms / 1000:.1f} s of the {asked.limit_seconds:g} s allowed"
        )
    elif missing:
        judgement.verdict = Verdict.INCONCLUSIVE
        judgement.reason = f"{_count(missing, 'test', 'tests')} did not run: {_why_unfinished(record)}"
    elif overturned := [result for result in found if record.is_overturned(result)]:
        judgement.evidence = tuple(overturned_evidence(asked, record, result) for result in overturned)
        judgement.reason = judgement.evidence[0].headline
    elif reruns := [result for result in found if record.reruns_of(result)]:
        judgement.verdict = Verdict.FLAKY
        judgement.evidence = tuple(rerun_evidence(asked, record, result) for result in reruns)
        judgement.reason = "passed only when it was run again"
    elif not any(result.outcome in PROVING for result in found):
        if selection["narrowed"]:
            judgement.verdict = Verdict.NOT_RUN
        else:
            vacuous = vacuous_evidence(asked, record, found)
            judgement.evidence = (vacuous,)
            judgement.reason = vacuous.headline
    else:
        judgement.verdict = Verdict.PASSED
    return judgement


def _test_result(nodeid: str, result: TestRecord | None) -> TestResult:
    if result is None:
        return TestResult(nodeid=nodeid, outcome=TestOutcome.NOT_RUN)
    timed_out = result.outcome in ("failed", "error") and any(
        each.get("timed_out") for each in result.evidence
    )
    return TestResult(
        nodeid=nodeid,
        outcome=TestOutcome.TIMEOUT if timed_out else TestOutcome(result.outcome),
        duration_ms=round(result.duration_ms),
        reason=result.reason,
    )


def _properties(record: SessionRecord, results: Iterable[TestRecord]) -> list[tuple[str, Any]]:
    """Metrics of these tests, none of them skipped, those of the wider fixtures that they use included."""
    ran = [result for result in results if result.outcome in PROVING or result.outcome not in GREEN]
    values = [value for result in ran for value in result.properties]
    if not record.metrics:
        return values
    nodeids = {result.nodeid for result in ran}
    used = {name for nodeid in nodeids for name in record.fixtures_used.get(nodeid, ())}
    return values + [
        (metric["name"], metric["value"])
        for metric in record.metrics
        if metric.get("nodeid") in nodeids or metric.get("via") in used
    ]


def _disown(judgement: Judgement) -> None:
    """The tests may have read another criterion's file: neither their green nor their red says anything."""
    judgement.verdict = Verdict.INCONCLUSIVE
    judgement.evidence = ()
    judgement.doubt = judgement.reason = "another criterion gives the same tests another fixture file"


def _doubt(asked: Asked, record: SessionRecord, nodeids: Sequence[str]) -> str | None:
    if record.journal_cut:
        return "the records of the shared session were cut or written over"
    positions = [record.results[nodeid].position for nodeid in nodeids if nodeid in record.results]
    first, last = min(positions, default=0), max(positions, default=0)
    several = len(asked.selections) > 1  # which the command alone might run in another order
    for leak in record.leaks:
        if leak.position < last and (several or asked.key not in leak.keys):
            if COVERAGE_DEMAND in leak.changed:
                return f"{COVERAGE_DEMAND} depends on the other tests"
            return f"other tests changed {', '.join(leak.changed[:3])} before it"
    for late in record.late_failures:
        if late.position > first:
            return f"{late.nodeid} failed when it was torn down, and with it perhaps what both share"
    if any(not death.cost_something for death in record.deaths):
        return "the shared session ended unexpectedly"
    if record.exit_status is not None and _lost_worker(record):
        return "a worker of the shared session ended unexpectedly"
    own = [record.results[nodeid] for nodeid in nodeids if nodeid in record.results]
    if not record.cut_short and not record.came_to_its_end(own):
        return "the process died before it could be seen what its tests had left behind"
    return None


def _lost_worker(record: SessionRecord) -> bool:
    """Whether a worker died, and not with the test that it ran: anything may have been the cause."""
    if not record.dead_workers:
        return False
    last = [each for each in record.results.values() if each.process == record.process]
    known = {each.worker for each in last if each.outcome == "crashed"}
    return bool(record.dead_workers - known)


def _not_selected(asked: Asked, record: SessionRecord) -> Judgement:
    waited = record.looked_for_tests and any(not each.cost_something for each in record.deaths)
    if not record.collected and not record.usage_errors and (record.exit_status == NO_TESTS or waited):
        # Every worker died before it had a list of tests: alone there are none, and the command may hold.
        return Judgement(
            verdict=Verdict.INCONCLUSIVE, reason="nothing in the shared session collected tests"
        )
    if record.deaths or record.exit_status is None:
        return _dead_session(asked, record)
    return _never_collected(asked, record)


def _never_collected(asked: Asked, record: SessionRecord) -> Judgement:
    """The session ended by itself before it had a list of tests."""
    evidence = [raw_evidence(asked, raw) for raw in record.startup_failures]
    evidence += collection_evidence(asked, record)
    if not evidence and record.stopped_by is not None:
        evidence.append(raw_evidence(asked, record.stopped_by))
    problems = [
        {
            "text": text,
            "problem": "missing_id",
            "nearest": [f"{file_of(text)}::{name}" for name in record.not_found[argument]],
        }
        for text in asked.selections
        for argument in _arguments_of(text, record)
    ]
    if not evidence:
        evidence += selection_evidence(asked, problems)
    if not evidence:
        evidence.append(session_evidence(asked, record))
    return Judgement(verdict=Verdict.FAILED, evidence=tuple(evidence), exit_code=record.exit_status)


def _arguments_of(selection: str, record: SessionRecord) -> list[str]:
    """What pytest did not find and was given as this selection: one argument at most."""
    end = file_of(selection) + _names(selection)
    return [argument for argument in record.not_found if argument.endswith(end)][:1]


def _names(selection: str) -> str:
    _, separator, names = selection.partition("[")[0].partition("::")
    return separator + names


def _dead_session(asked: Asked, record: SessionRecord) -> Judgement:
    death = record.deaths[-1] if record.deaths else None
    if death is None:
        evidence = session_evidence(asked, record)
    else:
        evidence = death_evidence(asked, death, nodeid=None, tests=())
    return Judgement(verdict=Verdict.FAILED, evidence=(evidence,), exit_code=record.exit_status)


def _unexplained(asked: Asked, record: SessionRecord, judgement: Judgement) -> Judgement:
    if record.exit_status is None:
        death = record.deaths[-1] if record.deaths else None
        how = f"ended with {how_it_ended(death) if death else 'no exit status'}"
        if death is not None and death.timed_out:
            how = f"did not end, and was ended after {asked.limit_seconds:g} s"
        headline = f"the tests passed, and then the session {how}"
    else:
        headline = f"the tests passed, and the session still returned {record.exit_status}"
    judgement.verdict = Verdict.FAILED
    judgement.reason = headline
    judgement.evidence = (session_evidence(asked, record, headline=headline),)
    return judgement


def _why_unfinished(record: SessionRecord) -> str:
    if record.stopped:
        return record.stopped
    if record.deaths:
        return f"the session ended with {how_it_ended(record.deaths[-1])}"
    return "the session ended before them"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
