"""From what was seen of a session to what each of its criteria says. Pure.

The parent never believes an exit status alone, nor a report alone: a criterion passes when its tests
were collected, each has a result, one at least truly passed, none failed, the session came to its own
end, and the limit was kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planner.model.evidence import Evidence, EvidenceKind, Phase, ProcessEnd, Selector
from planner.model.outcome import TestOutcome, TestResult, Verdict
from pytest_planverify.judgement import Judgement
from pytest_planverify.processes import signal_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_planverify.supervision.records import Death, RawEvidence, SessionRecord, TestRecord

_PROVING = ("passed", "xpassed")
_GREEN = (*_PROVING, "skipped", "xfailed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What of a criterion matters for its verdict."""

    key: str
    check_id: str
    limit_seconds: float
    selections: tuple[str, ...]
    contract_path: str | None = None


def judge_shared(asked: Asked, record: SessionRecord, *, narrowed_run: bool = False) -> Judgement:
    """What a criterion says of a session that it shared with others."""
    selection = record.selections.get(asked.key)
    if selection is None:
        return _not_selected(asked, record)
    results = [record.results.get(nodeid) for nodeid in selection["nodeids"]]
    evidence = _selection_evidence(asked, selection["problems"])
    evidence += _collection_evidence(asked, record)
    judgement = _judge_tests(asked, record, selection, results, evidence)
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


def judge_alone(asked: Asked, record: SessionRecord) -> Judgement:
    """What a criterion says of a session of its own, where the exit status must agree as well."""
    if not record.collected and not record.deaths:
        return _never_collected(asked, record)
    if not record.collected:
        return _dead_session(asked, record)
    judgement = judge_shared(asked, record)
    judgement.doubt = None
    judgement.exit_code = record.exit_status
    if judgement.verdict is Verdict.PASSED and record.exit_status != 0:
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
        piece
        for result in found
        if result.outcome not in _GREEN
        for piece in _test_evidence(asked, record, result)
    ]
    slow = _over_limit(asked, found)
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
    elif reruns := [result for result in found if result.reruns]:
        judgement.verdict = Verdict.FLAKY
        judgement.evidence = tuple(_rerun_evidence(asked, record, result) for result in reruns)
        judgement.reason = "passed only when it was run again"
    elif not any(result.outcome in _PROVING for result in found):
        if selection["narrowed"]:
            judgement.verdict = Verdict.NOT_RUN
        else:
            vacuous = _vacuous(asked, record, found)
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
    """Metrics of these tests, those of the wider fixtures that they use included."""
    values: list[tuple[str, Any]] = []
    nodeids: set[str] = set()
    used: set[str] = set()
    for result in results:
        values += result.properties
        nodeids.add(result.nodeid)
        used |= record.fixtures_used.get(result.nodeid, set())
    for metric in record.metrics:
        if metric.get("nodeid") in nodeids or metric.get("via") in used:
            values.append((metric["name"], metric["value"]))
    return values


def _doubt(asked: Asked, record: SessionRecord, nodeids: Sequence[str]) -> str | None:
    if asked.key in record.conflicts:
        return "another criterion gives the same tests another fixture file"
    positions = [record.results[nodeid].position for nodeid in nodeids if nodeid in record.results]
    first, last = min(positions, default=0), max(positions, default=0)
    several = len(asked.selections) > 1  # which the command alone might run in another order
    for leak in record.leaks:
        if leak.position < last and (several or asked.key not in leak.keys):
            return f"other tests changed {', '.join(leak.changed[:3])} before it"
    for late in record.late_failures:
        if late.position > first:
            return f"{late.nodeid} failed when it was torn down, and with it perhaps what both share"
    if record.deaths and any(death.nodeid is None and death.file is None for death in record.deaths):
        return "the shared session ended unexpectedly"
    return None


# -- evidence --------------------------------------------------------------------------------------


def _evidence(asked: Asked, raw: RawEvidence, **more: Any) -> Evidence:
    return Evidence.model_validate(
        {**raw, "check_id": asked.check_id, "contract_path": asked.contract_path, **more}
    )


def _test_evidence(asked: Asked, record: SessionRecord, result: TestRecord) -> list[Evidence]:
    timing = {"limit_seconds": asked.limit_seconds, "duration_seconds": result.duration_ms / 1000}
    pieces = [
        _evidence(asked, raw, nodeid=result.nodeid, tests=[result.nodeid], **timing)
        for raw in result.evidence
    ]
    death = next((each for each in record.deaths if each.nodeid == result.nodeid), None)
    if death is not None:
        pieces.append(_death_evidence(asked, death, nodeid=result.nodeid, tests=(result.nodeid,)))
    elif not pieces:
        pieces.append(
            Evidence(
                kind=EvidenceKind.TEST,
                check_id=asked.check_id,
                nodeid=result.nodeid,
                tests=(result.nodeid,),
                headline=result.reason or f"the test's outcome is {result.outcome}",
            )
        )
    return pieces


def _death_evidence(asked: Asked, death: Death, *, nodeid: str | None, tests: tuple[str, ...]) -> Evidence:
    what = f"{nodeid}" if nodeid else (death.file or "the session")
    how = (
        f"was ended after {asked.limit_seconds:g} s"
        if death.timed_out
        else f"ended the process with {_how(death)}"
    )
    kind = EvidenceKind.TEST if nodeid else EvidenceKind.COLLECTION if death.file else EvidenceKind.SESSION
    phase = None if nodeid else Phase.COLLECT if death.file else Phase.SESSION
    return Evidence(
        kind=kind,
        check_id=asked.check_id,
        phase=phase,
        nodeid=nodeid or death.file,
        headline=f"{what} {how}",
        longrepr=death.stack,
        stderr_tail=death.output[-4_000:],
        limit_seconds=asked.limit_seconds,
        timed_out=death.timed_out,
        process=ProcessEnd(
            exit_code=death.exited.code,
            signal=None if death.exited.signal is None else signal_name(death.exited.signal),
            stack=death.stack or None,
            complete=False,
            timed_out=death.timed_out,
        ),
        tests=tests,
        contract_path=asked.contract_path,
    )


def _how(death: Death) -> str:
    if death.exited.signal is not None:
        return signal_name(death.exited.signal)
    return f"exit status {death.exited.code}"


def _selection_evidence(asked: Asked, problems: Sequence[dict[str, Any]]) -> list[Evidence]:
    if not problems:
        return []
    selectors = tuple(Selector.model_validate(problem) for problem in problems)
    return [
        Evidence(
            kind=EvidenceKind.SELECTION,
            check_id=asked.check_id,
            phase=Phase.COLLECT,
            selectors=selectors,
            headline="; ".join(f"{each.text} {_PROBLEMS[each.problem]}" for each in selectors),
        )
    ]


_PROBLEMS = {
    "missing_file": "does not exist",
    "missing_id": "names no test of that file",
    "no_match": "selects no test",
    "bad_expression": "is no valid expression",
    "empty": "holds no test",
}


def _collection_evidence(asked: Asked, record: SessionRecord) -> list[Evidence]:
    pieces = [
        _evidence(asked, failure.evidence, nodeid=failure.nodeid)
        for failure in record.collection_failures.values()
        if _concerns(asked, failure.nodeid)
    ]
    pieces += [
        _death_evidence(asked, death, nodeid=None, tests=())
        for death in record.deaths
        if death.file is not None and _concerns(asked, death.file)
    ]
    return pieces


def _concerns(asked: Asked, nodeid: str) -> bool:
    """Whether what failed to be collected lies in what the criterion names, or around it."""
    if not asked.selections:
        return True
    failed = nodeid.partition("[")[0].split("::")[0].strip("/")
    for selection in asked.selections:
        named = _normal(selection.partition("[")[0].split("::")[0])
        if named in ("", ".") or failed == named or failed.startswith(named + "/"):
            return True
        if failed in ("", ".") or named.startswith(failed + "/"):
            return True
    return False


def _normal(path: str) -> str:
    import posixpath

    return posixpath.normpath(path.replace("\\", "/"))


def _over_limit(asked: Asked, results: Sequence[TestRecord]) -> Evidence | None:
    seconds = sum(result.duration_ms for result in results) / 1000
    if seconds <= asked.limit_seconds:
        return None
    slowest = max(results, key=lambda result: result.duration_ms)
    return Evidence(
        kind=EvidenceKind.TEST,
        check_id=asked.check_id,
        phase=Phase.CALL,
        nodeid=slowest.nodeid,
        headline=f"{seconds:.1f} s for a limit of {asked.limit_seconds:g} s; the slowest test is {slowest.nodeid}",
        limit_seconds=asked.limit_seconds,
        duration_seconds=seconds,
        timed_out=True,
        swallowed_timeout=slowest.duration_ms / 1000 > asked.limit_seconds,
        tests=(slowest.nodeid,),
    )


def _rerun_evidence(asked: Asked, record: SessionRecord, result: TestRecord) -> Evidence:
    raw = (record.attempts.get(result.nodeid) or [{"kind": "test"}])[0]
    confirmations = [{"where": "company", "passed": False}] * result.reruns
    confirmations.append({"where": "company", "passed": True})
    return _evidence(asked, raw, nodeid=result.nodeid, tests=[result.nodeid], confirmations=confirmations)


def _vacuous(asked: Asked, record: SessionRecord, results: Sequence[TestRecord]) -> Evidence:
    reasons = [result.reason for result in results if result.reason]
    skipped = {
        nodeid: reason for nodeid, reason in record.skipped_files.items() if _concerns(asked, nodeid)
    }
    if not results and not skipped:
        kind, headline = "nothing_collected", "no test was collected"
    elif any(result.outcome == "xfailed" for result in results):
        kind, headline = "only_xfailed", "no test passed: all are expected to fail, or skipped"
    else:
        kind, headline = "all_skipped", "no test ran: all were skipped"
    reasons += [reason for reason in skipped.values() if reason]
    if reasons:
        headline += f" ({reasons[0]})"
    return Evidence(
        kind=EvidenceKind.SELECTION,
        check_id=asked.check_id,
        phase=Phase.COLLECT,
        vacuous=kind,
        headline=headline,
        skip_reasons=tuple(dict.fromkeys(reasons)),
        selectors=tuple(Selector(text=text, problem="empty") for text in asked.selections),
        tests=tuple(result.nodeid for result in results),
    )


# -- sessions that did not come to run tests -------------------------------------------------------


def _not_selected(asked: Asked, record: SessionRecord) -> Judgement:
    if record.deaths or record.exit_status is None:
        return _dead_session(asked, record)
    return _never_collected(asked, record)


def _never_collected(asked: Asked, record: SessionRecord) -> Judgement:
    """The session ended by itself before it had a list of tests."""
    evidence = [_evidence(asked, raw) for raw in record.startup_failures]
    evidence += _collection_evidence(asked, record)
    missing = [text for text in asked.selections if any(_same(text, arg) for arg in record.not_found)]
    problems = [{"text": text, "problem": "missing_id"} for text in missing]
    if not evidence:
        evidence += _selection_evidence(asked, problems)
    if not evidence:
        evidence.append(_session_evidence(asked, record))
    return Judgement(verdict=Verdict.FAILED, evidence=tuple(evidence), exit_code=record.exit_status)


def _same(selection: str, argument: str) -> bool:
    return argument.endswith(_normal(selection.partition("[")[0].split("::")[0]) + _names(selection))


def _names(selection: str) -> str:
    _, separator, names = selection.partition("[")[0].partition("::")
    return separator + names


def _dead_session(asked: Asked, record: SessionRecord) -> Judgement:
    death = record.deaths[-1] if record.deaths else None
    if death is None:
        evidence = _session_evidence(asked, record)
    else:
        evidence = _death_evidence(asked, death, nodeid=None, tests=())
    return Judgement(verdict=Verdict.FAILED, evidence=(evidence,), exit_code=record.exit_status)


def _unexplained(asked: Asked, record: SessionRecord, judgement: Judgement) -> Judgement:
    if record.exit_status is None:
        death = record.deaths[-1] if record.deaths else None
        how = _how(death) if death else "no exit status"
        headline = f"the tests passed, and then the session ended with {how}"
    else:
        headline = f"the tests passed, and the session still returned {record.exit_status}"
    judgement.verdict = Verdict.FAILED
    judgement.reason = headline
    judgement.evidence = (_session_evidence(asked, record, headline=headline),)
    return judgement


def _session_evidence(asked: Asked, record: SessionRecord, *, headline: str | None = None) -> Evidence:
    said = [*record.usage_errors, *record.internal_errors, *([record.stopped] if record.stopped else [])]
    last = said[-1].strip() if said else ""
    death = record.deaths[-1] if record.deaths else None
    default = (
        last.splitlines()[-1] if last else f"the session returned {record.exit_status} and ran no test"
    )
    return Evidence(
        kind=EvidenceKind.SESSION,
        check_id=asked.check_id,
        phase=Phase.SESSION,
        headline=headline or default,
        longrepr=last,
        stderr_tail=death.output[-4_000:] if death else "",
        process=ProcessEnd(
            exit_code=record.exit_status if death is None else death.exited.code,
            signal=None
            if death is None or death.exited.signal is None
            else signal_name(death.exited.signal),
            complete=record.exit_status is not None,
        ),
        contract_path=asked.contract_path,
    )


def _why_unfinished(record: SessionRecord) -> str:
    if record.stopped:
        return record.stopped
    if record.deaths:
        return f"the session ended with {_how(record.deaths[-1])}"
    return "the session ended before them"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
