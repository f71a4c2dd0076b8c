"""What was seen of a session, as evidence of one criterion's failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.model.evidence import Evidence, HygieneSignal, ProcessEnd, Selector
from planner.model.kinds import EvidenceKind, Hardness, Phase
from pytest_planverify.processes import signal_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_planverify.supervision.asked import Asked
    from pytest_planverify.supervision.record_values import Death, RawEvidence, TestRecord
    from pytest_planverify.supervision.records import SessionRecord


def raw_evidence(asked: Asked, raw: RawEvidence, **more: Any) -> Evidence:
    """What a session wrote down, read back into the model; ``more`` is what the parent knows."""
    return Evidence.model_validate(
        {**raw, "check_id": asked.check_id, "contract_path": asked.contract_path, **more}
    )


def test_evidence(asked: Asked, record: SessionRecord, result: TestRecord) -> list[Evidence]:
    """All that speaks against one test; never empty for a test that is not green."""
    timing = {"limit_seconds": asked.limit_seconds, "duration_seconds": result.duration_ms / 1000}
    pieces = [
        raw_evidence(asked, raw, nodeid=result.nodeid, tests=[result.nodeid], **timing)
        for raw in result.evidence
    ]
    death = next((each for each in record.deaths if each.nodeid == result.nodeid), None)
    if death is not None:
        pieces.append(death_evidence(asked, death, nodeid=result.nodeid, tests=(result.nodeid,)))
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


def death_evidence(asked: Asked, death: Death, *, nodeid: str | None, tests: tuple[str, ...]) -> Evidence:
    """A process that ended, or was ended, before its session did."""
    what = f"{nodeid}" if nodeid else (death.file or "the session")
    how = (
        f"was ended after {asked.limit_seconds:g} s"
        if death.timed_out
        else f"ended the process with {how_it_ended(death)}"
    )
    kind = EvidenceKind.TEST if nodeid else EvidenceKind.COLLECTION if death.file else EvidenceKind.SESSION
    phase = death.phase if nodeid else Phase.COLLECT if death.file else Phase.SESSION
    return raw_evidence(
        asked,
        death.raised or {},
        kind=kind,
        phase=phase,
        nodeid=nodeid or death.file,
        headline=f"{what} {how}",
        longrepr=death.stack,
        stderr_tail=death.output[-4_000:],
        limit_seconds=asked.limit_seconds,
        timed_out=death.timed_out,
        process=_process_end(death),
        tests=tests,
    )


def _process_end(death: Death) -> ProcessEnd:
    return ProcessEnd(
        exit_code=death.exited.code,
        signal=None if death.exited.signal is None else signal_name(death.exited.signal),
        stack=death.stack or None,
        timed_out=death.timed_out,
    )


def how_it_ended(death: Death) -> str:
    """The signal or the exit status of a process, for a reader."""
    if death.exited.signal is not None:
        return signal_name(death.exited.signal)
    if death.exited.code is None:
        return "an end that nobody saw"
    return f"exit status {death.exited.code}"


def selection_evidence(asked: Asked, problems: Sequence[dict[str, Any]]) -> list[Evidence]:
    """What the command names and does not exist; empty where there is no such thing."""
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


def collection_evidence(asked: Asked, record: SessionRecord) -> list[Evidence]:
    """Files that could not be imported, or that ended the process, in what the criterion names."""
    pieces = [
        raw_evidence(asked, failure.evidence, nodeid=failure.nodeid)
        for failure in record.collection_failures.values()
        if asked.concerns(failure.nodeid)
    ]
    pieces += [
        death_evidence(asked, death, nodeid=None, tests=())
        for death in record.deaths
        if death.file is not None and asked.concerns(death.file)
    ]
    return pieces


def over_limit(asked: Asked, results: Sequence[TestRecord]) -> Evidence | None:
    """The tests' time together, where it is more than the criterion allows."""
    seconds = sum(result.duration_ms for result in results) / 1000
    if seconds <= asked.limit_seconds:
        return None
    slowest = max(results, key=lambda result: result.duration_ms)
    return Evidence(
        kind=EvidenceKind.TEST,
        check_id=asked.check_id,
        phase=Phase.CALL,
        nodeid=slowest.nodeid,
        headline=f"{seconds:.1f} s for a limit of {asked.limit_seconds:g} s; "
        f"the slowest test is {slowest.nodeid}",
        limit_seconds=asked.limit_seconds,
        duration_seconds=seconds,
        timed_out=True,
        swallowed_timeout=slowest.duration_ms / 1000 > asked.limit_seconds,
        tests=(slowest.nodeid,),
    )


def rerun_evidence(asked: Asked, record: SessionRecord, result: TestRecord) -> Evidence:
    """A test that another plugin ran again until it passed: it gave both answers."""
    raw = (record.attempts.get(result.nodeid) or [{"kind": "test"}])[0]
    confirmations = [{"where": "company", "passed": False}] * record.reruns_of(result)
    confirmations.append({"where": "company", "passed": True})
    return raw_evidence(
        asked, raw, nodeid=result.nodeid, tests=[result.nodeid], confirmations=confirmations
    )


def overturned_evidence(asked: Asked, record: SessionRecord, result: TestRecord) -> Evidence:
    """A test whose body failed, and whose report says that it did not."""
    raw = (record.attempts.get(result.nodeid) or [{}])[-1]
    said = f": {raw['headline']}" if raw.get("headline") else ""
    message = f"{result.nodeid} failed and was reported as {result.outcome}{said}"
    signal = HygieneSignal(
        sign="report-overturned", hardness=Hardness.HARD, message=message, nodeid=result.nodeid
    )
    return Evidence(
        kind=EvidenceKind.HYGIENE,
        check_id=asked.check_id,
        nodeid=result.nodeid,
        headline=message,
        signals=(signal,),
        tests=(result.nodeid,),
    )


def records_evidence(asked: Asked, tests: tuple[str, ...]) -> Evidence:
    """Tests that ran alone, and whose session's journal was cut meanwhile."""
    what = ", ".join(asked.selections) or "the command"
    message = f"the records of the run were cut or written over while {what} ran alone"
    signal = HygieneSignal(sign="records-touched", hardness=Hardness.HARD, message=message)
    return Evidence(
        kind=EvidenceKind.HYGIENE,
        check_id=asked.check_id,
        headline=message,
        signals=(signal,),
        tests=tests,
    )


def vacuous_evidence(asked: Asked, record: SessionRecord, results: Sequence[TestRecord]) -> Evidence:
    """Why no test proves anything: none was collected, or none did pass."""
    reasons = [result.reason for result in results if result.reason]
    skipped = {nodeid: reason for nodeid, reason in record.skipped_files.items() if asked.concerns(nodeid)}
    selectors = tuple(Selector(text=text, problem="empty") for text in asked.selections)
    if not results and not skipped:
        kind, headline = "nothing_collected", "no test was collected"
        if asked.expression:
            selectors = (Selector(text=asked.expression, problem="no_match"),)
            headline = f"{asked.expression} {_PROBLEMS['no_match']}"
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
        selectors=selectors,
        tests=tuple(result.nodeid for result in results),
    )


def session_evidence(asked: Asked, record: SessionRecord, *, headline: str | None = None) -> Evidence:
    """What the session itself said when no test explains how it ended."""
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
        limit_seconds=asked.limit_seconds,
        timed_out=death is not None and death.timed_out,
        process=_process_end(death)
        if death is not None and record.exit_status is None
        else ProcessEnd(exit_code=record.exit_status, complete=record.exit_status is not None),
        contract_path=asked.contract_path,
    )
