"""From one worker's record to the verdict of its criterion. Pure.

The parent never believes an exit status alone, nor a report alone: a criterion passes when its tests were
collected, each has a result, one at least truly passed, none failed, the session came to its own end with
the status that follows, and the limit was kept.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from typing import TYPE_CHECKING, Any

from planner.catalog.pytest_arguments import known_options, split_options
from planner.model.evidence import Evidence, HygieneSignal, ProcessEnd, Selector
from planner.model.outcome import TestResult
from planner.model.verdicts import EvidenceKind, Hardness, Phase, TestOutcome, Verdict
from planner.text.display import counted
from pytest_planverify.checks.processes import signal_name
from pytest_planverify.checks.result import JudgedCommand, Judgement
from pytest_planverify.session.records import GREEN, PROVING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.catalog import PytestInvocation
    from pytest_planverify.session.records import Death, TestRecord, WorkerRecord

_TESTS_FAILED = 1


def expression_of(invocation: PytestInvocation) -> str:
    """Return ``-k``, ``-m`` and ``--deselect`` as a command gives them."""
    given = (("-k", invocation.keyword), ("-m", invocation.markexpr))
    texts = [f"{option} {text!r}" for option, text in given if text and text.strip()]
    return " ".join([*texts, *(f"--deselect {prefix}" for prefix in invocation.deselect)])


def file_of(selection: str) -> str:
    """Return the file or folder that an argument of pytest names, without detours."""
    return posixpath.normpath(selection.partition("[")[0].split("::")[0].replace("\\", "/"))


def judge(command: JudgedCommand, record: WorkerRecord) -> Judgement:
    """Judge a criterion by the record of its worker."""
    judgement = _without_records(command, record, _judge_session(command, record))
    if not record.audit:
        return judgement
    from pytest_planverify.guards.sandbox import hold

    nodeids = frozenset(test.nodeid for test in judgement.tests)
    return hold(judgement, record.audit.values(), check_id=command.check_id, nodeids=nodeids)


def judge_missing_files(command: JudgedCommand, missing: Sequence[tuple[str, list[str]]]) -> Judgement:
    """Judge a command that names files which do not exist: pytest would refuse it before it loads a test.

    ``missing`` are the selections, each with names that look like it.
    """
    problems = [{"text": text, "problem": "missing_file", "nearest": near} for text, near in missing]
    evidence = tuple(selection_evidence(command, problems))
    return Judgement(verdict=Verdict.FAILED, evidence=evidence, exit_code=4)


def _without_records(command: JudgedCommand, record: WorkerRecord, judgement: Judgement) -> Judgement:
    """Blame the tests for a journal that was cut while they ran: nobody else was there.

    What they said besides is kept, and excuses nothing: how much of it was read before the cut is chance.
    """
    seen_red = any(test.outcome.is_red for test in judgement.tests)
    if record.journal_cut:
        evidence = records_evidence(command, tuple(test.nodeid for test in judgement.tests))
        judgement.verdict, judgement.reason = Verdict.FAILED, evidence.headline
        judgement.evidence = (evidence, *(judgement.evidence if seen_red else ()))
    elif record.journal_lost and judgement.is_red and not seen_red:
        # Where they could not be written, that is no answer of the test's.
        judgement.verdict, judgement.evidence = Verdict.INCONCLUSIVE, ()
        judgement.reason = "some records of the session are missing"
    return judgement


def _judge_session(command: JudgedCommand, record: WorkerRecord) -> Judgement:
    if not record.collected or (record.usage_errors and not record.results):
        if record.death is None:
            return _never_collected(command, record)
        evidence = (death_evidence(command, record.death, nodeid=None, tests=()),)
        return Judgement(verdict=Verdict.FAILED, evidence=evidence, exit_code=record.exit_status)
    results = [record.results.get(nodeid) for nodeid in record.nodeids]
    judgement = command.seen(_judge_tests(command, record, results, collection_evidence(command, record)))
    judgement.exit_code = record.exit_status
    if judgement.verdict is Verdict.PASSED:
        explained = (0, _TESTS_FAILED) if judgement.forgiven else (0,)
        if record.exit_status not in explained or record.lost_processes:
            return _unexplained(command, record, judgement)
        if record.narrowed:
            judgement.verdict = Verdict.NOT_RUN
            count = len(record.narrowed)
            judgement.reason = f"{count} of its tests {'was' if count == 1 else 'were'} left out"
    elif record.narrowed and not judgement.is_red:
        judgement.verdict = Verdict.NOT_RUN
        judgement.reason = "all of its tests were left out"
    return judgement


def _judge_tests(
    command: JudgedCommand,
    record: WorkerRecord,
    results: Sequence[TestRecord | None],
    evidence: list[Evidence],
) -> Judgement:
    found = [result for result in results if result is not None]
    # The metrics of tests that were not skipped, and with them those that were recorded for the suite.
    ran = [result for result in found if result.outcome in PROVING or result.outcome not in GREEN]
    values = [value for result in ran for value in result.properties]
    judgement = Judgement(
        verdict=Verdict.FAILED,
        tests=tuple(
            _test_result(nodeid, result) for nodeid, result in zip(record.nodeids, results, strict=True)
        ),
        duration_ms=round(sum(result.duration_ms for result in found)),
        properties=values + record.metrics if ran else values,
    )
    evidence += [
        piece for result in found if result.is_red for piece in test_evidence(command, record, result)
    ]
    slow = over_limit(command, found)
    missing = sum(result is None for result in results)
    if evidence:
        judgement.evidence = tuple(evidence)
        judgement.reason = None
    elif slow is not None:
        judgement.evidence = (slow,)
        judgement.reason = (
            f"took {judgement.duration_ms / 1000:.1f} s of the {command.limit_seconds:g} s allowed"
        )
    elif missing:
        judgement.verdict = Verdict.INCONCLUSIVE
        why = "the session ended before them"
        if record.death is not None:
            why = f"the session ended with {how_it_ended(record.death)}"
        judgement.reason = f"{counted(missing, 'test')} did not run: {record.stopped or why}"
    elif overturned := [result for result in found if record.is_overturned(result)]:
        judgement.evidence = tuple(overturned_evidence(command, record, result) for result in overturned)
        judgement.reason = judgement.evidence[0].headline
    elif reruns := [result for result in found if record.reruns_of(result)]:
        judgement.verdict = Verdict.FLAKY
        judgement.evidence = tuple(rerun_evidence(command, record, result) for result in reruns)
        judgement.reason = "passed only when it was run again"
    elif not any(result.outcome in PROVING for result in found):
        if record.narrowed:
            judgement.verdict = Verdict.NOT_RUN
        else:
            vacuous = vacuous_evidence(command, record, found)
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


_UNRECOGNIZED = re.compile(r"unrecognized arguments?: (?P<options>.+)")
_COMPLAINT = re.compile(r"(\S+: )?error: ")


def _unknown_options(command: JudgedCommand, record: WorkerRecord) -> list[Evidence]:
    """Blame the plan for options that neither pytest nor any plugin that is known anywhere has."""
    said = next((found for text in record.usage_errors if (found := _UNRECOGNIZED.search(text))), None)
    if said is None:
        return []
    own = {option.words[0] for option in split_options(command.args) if not option.known}
    unknown = [word for word in said["options"].split() if word in own]
    if not unknown:
        return []
    selectors = tuple(
        Selector(
            text=word,
            problem="unknown_option",
            nearest=tuple(difflib.get_close_matches(word.partition("=")[0], known_options(), n=2)),
        )
        for word in unknown
    )
    at = f"{command.place}: " if command.place else ""
    headline = f"{at}pytest does not know {', '.join(unknown)}"
    return [command.evidence(EvidenceKind.SELECTION, headline, phase=Phase.SESSION, selectors=selectors)]


def _never_collected(command: JudgedCommand, record: WorkerRecord) -> Judgement:
    """The session ended by itself before it had a list of tests."""
    if unknown := _unknown_options(command, record):
        return Judgement(verdict=Verdict.FAILED, evidence=tuple(unknown), exit_code=record.exit_status)
    evidence = [command.read_back(raw) for raw in record.startup_failures]
    evidence += collection_evidence(command, record)
    if not evidence and record.stopped_by is not None:
        evidence.append(command.read_back(record.stopped_by))
    problems = [
        {
            "text": text,
            "problem": "missing_id",
            "nearest": [f"{file_of(text)}::{name}" for name in record.not_found[argument]],
        }
        for text in command.selections
        for argument in _arguments_of(text, record)
    ]
    if not evidence:
        evidence += selection_evidence(command, problems)
    if not evidence:
        evidence.append(session_evidence(command, record))
    return Judgement(verdict=Verdict.FAILED, evidence=tuple(evidence), exit_code=record.exit_status)


def _arguments_of(selection: str, record: WorkerRecord) -> list[str]:
    """Return the argument that pytest did not find and that is this selection: one at most."""
    _, separator, names = selection.partition("[")[0].partition("::")
    end = file_of(selection) + separator + names
    return [argument for argument in record.not_found if argument.endswith(end)][:1]


def _unexplained(command: JudgedCommand, record: WorkerRecord, judgement: Judgement) -> Judgement:
    if record.exit_status is None:
        death = record.death
        how = f"ended with {how_it_ended(death) if death else 'no exit status'}"
        if death is not None and death.timed_out:
            how = f"did not end, and was ended after {command.limit_seconds:g} s"
        headline = f"the tests passed, and then the session {how}"
    elif record.lost_processes and record.exit_status == 0:
        headline = "the tests passed, and a process of pytest-xdist did not come to the end of its session"
    else:
        headline = f"the tests passed, and the session still returned {record.exit_status}"
    judgement.verdict = Verdict.FAILED
    judgement.reason = headline
    judgement.evidence = (session_evidence(command, record, headline=headline),)
    return judgement


# -- evidence ------------------------------------------------------------------------------------------


def test_evidence(command: JudgedCommand, record: WorkerRecord, result: TestRecord) -> list[Evidence]:
    """All that speaks against one test; never empty for a test that is not green."""
    timing = {"limit_seconds": command.limit_seconds, "duration_seconds": result.duration_ms / 1000}
    about = {"nodeid": result.nodeid, "tests": (result.nodeid,)}
    pieces = [command.read_back(raw, **about, **timing) for raw in result.evidence]
    death = record.death
    if death is not None and death.nodeid == result.nodeid:
        pieces.append(death_evidence(command, death, nodeid=result.nodeid, tests=(result.nodeid,)))
    elif not pieces:
        headline = result.reason or f"the test's outcome is {result.outcome}"
        pieces.append(command.evidence(EvidenceKind.TEST, headline, **about))
    return pieces


def death_evidence(
    command: JudgedCommand, death: Death, *, nodeid: str | None, tests: tuple[str, ...]
) -> Evidence:
    """A process that ended, or was ended, before its session did."""
    what = f"{nodeid}" if nodeid else (death.file or "the session")
    how = (
        f"was ended after {command.limit_seconds:g} s"
        if death.timed_out
        else f"ended the process with {how_it_ended(death)}"
    )
    kind = EvidenceKind.TEST if nodeid else EvidenceKind.COLLECTION if death.file else EvidenceKind.SESSION
    phase = death.phase if nodeid else Phase.COLLECT if death.file else Phase.SESSION
    return command.read_back(
        death.raised or {},
        kind=kind,
        phase=phase,
        nodeid=nodeid or death.file,
        headline=f"{what} {how}",
        longrepr=death.stack,
        stderr_tail=death.output[-4_000:],
        limit_seconds=command.limit_seconds,
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


def selection_evidence(command: JudgedCommand, problems: Sequence[dict[str, Any]]) -> list[Evidence]:
    """Make the evidence of what the command names and does not exist; empty where all exists."""
    if not problems:
        return []
    selectors = tuple(Selector.model_validate(problem) for problem in problems)
    headline = "; ".join(f"{each.text} {_PROBLEMS[each.problem]}" for each in selectors)
    return [command.evidence(EvidenceKind.SELECTION, headline, phase=Phase.COLLECT, selectors=selectors)]


_PROBLEMS = {
    "missing_file": "does not exist",
    "missing_id": "names no test of that file",
    "no_match": "selects no test",
    "bad_expression": "is no valid expression",
    "empty": "holds no test",
    "unknown_option": "is no option that pytest knows",
}


def collection_evidence(command: JudgedCommand, record: WorkerRecord) -> list[Evidence]:
    """Files that could not be imported."""
    return [command.read_back(raw, nodeid=nodeid) for nodeid, raw in record.collection_failures.items()]


def over_limit(command: JudgedCommand, results: Sequence[TestRecord]) -> Evidence | None:
    """The tests' time together, where it is more than the criterion allows."""
    seconds = sum(result.duration_ms for result in results) / 1000
    if seconds <= command.limit_seconds:
        return None
    slowest = max(results, key=lambda result: result.duration_ms)
    return command.evidence(
        EvidenceKind.TEST,
        f"{seconds:.1f} s for a limit of {command.limit_seconds:g} s; the slowest test is {slowest.nodeid}",
        phase=Phase.CALL,
        nodeid=slowest.nodeid,
        limit_seconds=command.limit_seconds,
        duration_seconds=seconds,
        timed_out=True,
        swallowed_timeout=slowest.duration_ms / 1000 > command.limit_seconds,
        tests=(slowest.nodeid,),
    )


def rerun_evidence(command: JudgedCommand, record: WorkerRecord, result: TestRecord) -> Evidence:
    """A test that another plugin ran again until it passed: it gave both answers."""
    raw = (record.attempts.get(result.nodeid) or [{"kind": "test"}])[0]
    confirmations = [{"where": "alone", "passed": False}] * record.reruns_of(result)
    confirmations.append({"where": "alone", "passed": True})
    return command.read_back(raw, nodeid=result.nodeid, tests=[result.nodeid], confirmations=confirmations)


def overturned_evidence(command: JudgedCommand, record: WorkerRecord, result: TestRecord) -> Evidence:
    """A test whose body failed, and whose report says that it did not."""
    nodeid = result.nodeid
    raw = (record.attempts.get(nodeid) or [{}])[-1]
    said = f": {raw['headline']}" if raw.get("headline") else ""
    message = f"{nodeid} failed and was reported as {result.outcome}{said}"
    return _tampering(command, message, (nodeid,), sign="report-overturned", nodeid=nodeid)


def records_evidence(command: JudgedCommand, tests: tuple[str, ...]) -> Evidence:
    """Tests that ran alone, and whose session's journal was cut meanwhile."""
    what = ", ".join(command.selections) or "the command"
    message = f"the records of the run were cut or written over while {what} ran alone"
    return _tampering(command, message, tests, sign="records-touched")


def _tampering(
    command: JudgedCommand, message: str, tests: tuple[str, ...], *, sign: str, nodeid: str | None = None
) -> Evidence:
    signal = HygieneSignal(sign=sign, hardness=Hardness.HARD, message=message, nodeid=nodeid)
    return command.evidence(EvidenceKind.HYGIENE, message, nodeid=nodeid, signals=(signal,), tests=tests)


def vacuous_evidence(
    command: JudgedCommand, record: WorkerRecord, results: Sequence[TestRecord]
) -> Evidence:
    """Make the evidence that no test proves anything: none was collected, or none passed."""
    reasons = [result.reason for result in results if result.reason]
    reasons += [reason for reason in record.skipped_files.values() if reason]
    selectors = tuple(Selector(text=text, problem="empty") for text in command.selections)
    if not results and not record.skipped_files:
        kind, headline = "nothing_collected", "no test was collected"
        if command.expression:
            selectors = (Selector(text=command.expression, problem="no_match"),)
            headline = f"{command.expression} {_PROBLEMS['no_match']}"
    elif any(result.outcome == "xfailed" for result in results):
        kind, headline = "only_xfailed", "no test passed: all are expected to fail, or skipped"
    else:
        kind, headline = "all_skipped", "no test ran: all were skipped"
    if reasons:
        headline += f" ({reasons[0]})"
    return command.evidence(
        EvidenceKind.SELECTION,
        headline,
        phase=Phase.COLLECT,
        vacuous=kind,
        skip_reasons=tuple(dict.fromkeys(reasons)),
        selectors=selectors,
        tests=tuple(result.nodeid for result in results),
    )


def session_evidence(
    command: JudgedCommand, record: WorkerRecord, *, headline: str | None = None
) -> Evidence:
    """Make the evidence of a session whose end no test explains."""
    said = [*record.usage_errors, *record.internal_errors, *([record.stopped] if record.stopped else [])]
    last = said[-1].strip() if said else ""
    death = record.death
    lines = [line.strip() for line in last.splitlines()]
    # pytest's parser says below its complaint which ini file and root it used.
    complaint = next((line for line in lines if _COMPLAINT.match(line)), lines[-1] if lines else "")
    default = complaint or f"the session returned {record.exit_status} and ran no test"
    return command.evidence(
        EvidenceKind.SESSION,
        headline or default,
        phase=Phase.SESSION,
        longrepr=last,
        stderr_tail=death.output[-4_000:] if death else "",
        limit_seconds=command.limit_seconds,
        timed_out=death is not None and death.timed_out,
        process=_process_end(death)
        if death is not None and record.exit_status is None
        else ProcessEnd(exit_code=record.exit_status, complete=record.exit_status is not None),
        contract_path=command.contract_path,
    )
