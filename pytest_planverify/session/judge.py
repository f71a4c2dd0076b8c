"""Judgement of a criterion by the record of its worker. Pure functions, without input or output.

Neither an exit status nor a report is believed on its own. A criterion passes only if its tests were
collected, each of them has a result, at least one passed (or xpassed) and none failed, the session finished
by itself with the exit status that follows from these results, and the time limit was kept.

The second half builds the evidence for each way of failing.
"""

from __future__ import annotations

import difflib
import re
import shlex
from typing import TYPE_CHECKING

from planner.catalog.pytest_arguments import (
    RUNS_NO_TEST,
    known_options,
    parse_pytest_arguments,
    split_options,
)
from planner.errors import CommandSyntaxError
from planner.model.evidence import Evidence, HygieneSignal, MetricFact, ProcessEnd, Selector
from planner.model.outcome import TestResult
from planner.model.verdicts import EvidenceKind, Phase, TestOutcome, Verdict
from planner.text.display import counted
from pytest_planverify.checks.result import JudgedCommand, Judgement, file_of
from pytest_planverify.session.records import GREEN, PROVING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from planner.catalog import PytestInvocation
    from pytest_planverify.session.records import Death, TestRecord, WorkerRecord

LEFT_OUT = "not selected in this run"
DESELECTED = "deselected"
"""Words in the reasons of criteria that the user's selection left out, in whole or in part."""

_TESTS_FAILED = 1
"""pytest's exit status of a session with failed tests."""


def expression_of(invocation: PytestInvocation) -> str:
    """Return a command's ``-k``, ``-m`` and ``--deselect`` options as text; empty if it has none."""
    given = (("-k", invocation.keyword), ("-m", invocation.markexpr))
    texts = [f"{option} {text!r}" for option, text in given if text and text.strip()]
    return " ".join([*texts, *(f"--deselect {prefix}" for prefix in invocation.deselect)])


def options_of(invocation: PytestInvocation, env: Mapping[str, str]) -> PytestInvocation:
    """Return a command's invocation with the options that its own variables ``env`` stand for."""
    words = [word for name in env.get("PYTEST_PLUGINS", "").split(",") if name for word in ("-p", name)]
    if env.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        words.append("--disable-plugin-autoload")
    try:
        words += shlex.split(env.get("PYTEST_ADDOPTS", ""))
        return parse_pytest_arguments((), (*words, *invocation.args), foreign=False, as_module=False)
    except (ValueError, CommandSyntaxError):  # the worker's pytest reports it
        return invocation


def judge(command: JudgedCommand, record: WorkerRecord) -> Judgement:
    """Return the judgement of a criterion by the record of its worker, sandbox violations included."""
    judgement = _without_records(command, record, _judge_session(command, record))
    if not record.audit:
        return judgement
    from pytest_planverify.guards.sandbox import hold

    nodeids = frozenset(test.nodeid for test in judgement.tests)
    return hold(judgement, record.audit.values(), check_id=command.check_id, nodeids=nodeids)


def judge_missing_files(command: JudgedCommand, missing: Sequence[tuple[str, list[str]]]) -> Judgement:
    """Return the failed judgement of a command that names files which do not exist, without running it.

    pytest would reject such a command before it loads a test. ``missing`` holds these selections, each with
    similar paths that do exist.
    """
    selectors = (Selector(text=text, problem="missing_file", nearest=tuple(near)) for text, near in missing)
    return Judgement(
        verdict=Verdict.FAILED, evidence=(selection_evidence(command, selectors),), exit_code=4
    )


def _without_records(command: JudgedCommand, record: WorkerRecord, judgement: Judgement) -> Judgement:
    """Adjust a judgement if records of the session are missing from the journal.

    Failures that were read before stay as further evidence.
    """
    seen_red = any(test.outcome.is_red for test in judgement.tests)
    # Only this command ran, so its tests have tampered with the journal. A pass is no excuse: it is chance
    # how many records were read in time.
    if record.journal_cut:
        evidence = records_evidence(command, tuple(test.nodeid for test in judgement.tests))
        judgement.verdict, judgement.reason = Verdict.FAILED, evidence.headline
        judgement.evidence = (evidence, *(judgement.evidence if seen_red else ()))
    elif record.journal_lost and judgement.is_red and not seen_red:
        # It failed for missing records only; that they could not be written is no result of the tests.
        judgement.verdict, judgement.evidence = Verdict.INCONCLUSIVE, ()
        judgement.reason = "some records of the session are missing"
    return judgement


def _judge_session(command: JudgedCommand, record: WorkerRecord) -> Judgement:
    """Judge by collection, the tests' results, and then by how the session ended."""
    if not record.collected or (record.usage_errors and not record.results):
        if record.death is None:
            return _never_collected(command, record)
        evidence = (death_evidence(command, record.death, nodeid=None),)
        return Judgement(verdict=Verdict.FAILED, evidence=evidence, exit_code=record.exit_status)
    judgement = command.seen(_judge_tests(command, record))
    judgement.exit_code = record.exit_status
    if judgement.verdict is Verdict.PASSED:
        # For failures that the baseline forgives pytest still returns 1, as for too little coverage.
        explained = (0, _TESTS_FAILED) if judgement.forgiven and not record.coverage else (0,)
        if record.exit_status not in explained or record.lost_processes:
            return _unexplained(command, record, judgement)
        if record.narrowed:
            judgement.verdict = Verdict.NOT_RUN
            count = len(record.narrowed)
            judgement.reason = f"{count} of its tests {'was' if count == 1 else 'were'} {DESELECTED}"
    elif record.narrowed and not judgement.is_red:
        judgement.verdict = Verdict.NOT_RUN
        judgement.reason = f"all of its tests were {DESELECTED}"
    return judgement


def _judge_tests(command: JudgedCommand, record: WorkerRecord) -> Judgement:
    """Judge by the tests' results, and by failures of the collection.

    The order of the branches is one of precedence: failures, the total time, tests that did not run,
    overridden reports, reruns, and last tests that prove nothing.
    """
    results = [record.results.get(nodeid) for nodeid in record.nodeids]
    found = [result for result in results if result is not None]
    # Metrics count only from tests that were not skipped; those of the suite only if such a test exists.
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
    evidence = collection_evidence(command, record)
    evidence += [
        piece for result in found if result.is_red for piece in test_evidence(command, record, result)
    ]
    slow = over_limit(command, record, found)
    missing = sum(result is None for result in results)
    if evidence:
        judgement.evidence = tuple(evidence)
        judgement.reason = None
    elif slow is not None:
        judgement.evidence = (slow,)
        judgement.reason = (
            f"took {slow.duration_seconds or 0:.1f} s of the {command.limit_seconds:g} s allowed"
        )
    elif missing and record.internal_errors:
        # As for a session that failed before it had collected: alone, the command fails, too.
        judgement.evidence = (_refused_options(command, record) or session_evidence(command, record),)
        judgement.reason = judgement.evidence[0].headline
    elif missing and record.exit_status == 0 and (nothing := _nothing_ran(command)).selectors:
        judgement.evidence = (nothing,)
        judgement.reason = nothing.headline
    elif missing:
        judgement.verdict = Verdict.INCONCLUSIVE
        why = "the session ended before they ran"
        if record.death is not None:
            why = f"the session ended with {how_it_ended(record.death)}"
        judgement.reason = f"{counted(missing, 'test')} did not run: {record.stopped or why}"
        is_interrupted = (record.stopped or "").startswith("KeyboardInterrupt")
        if record.stopped and record.exit_status and not is_interrupted:
            # Code of the project or of a plugin stopped the session. Alone, the command fails, too.
            judgement.verdict = Verdict.FAILED
            judgement.evidence = (session_evidence(command, record, headline=judgement.reason),)
    elif overturned := [result for result in found if record.is_overturned(result)]:
        judgement.evidence = tuple(overturned_evidence(command, record, result) for result in overturned)
        judgement.reason = judgement.evidence[0].headline
    elif reruns := [result for result in found if record.reruns_of(result)]:
        judgement.verdict = Verdict.FLAKY
        judgement.evidence = tuple(rerun_evidence(command, record, result) for result in reruns)
        judgement.reason = "passed only when it ran again"
    elif not any(result.outcome in PROVING for result in found):
        # The tests that would have proved something may be among those that the user left out.
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
    """Return a test's result for the outcome; a failure by the soft time limit becomes ``timeout``."""
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


_UNKNOWN = re.compile(
    r"unrecognized arguments?: (?P<options>.+)|(?:^|: )Unknown config option: (?P<setting>\S+)|"
    r"option names \{'(?P<twice>[^']+)'.*\} already added"
)
_REFUSED = re.compile(
    r"(?:^|error: argument |Check your '|Wrong expression passed to '|Unknown marker\(s\) in ')"
    r"(?P<names>-[\w/-]+)|"
    r"(?:parsing the following warning configuration:\s+|\.InvalidArgument: Profile ')(?P<value>\S.*?)"
    r"(?:' is not registered)?(?:\n|$)|"
    r"Error importing plugin \"(?P<plugin>(?P<package>\w+)[\w.]*)\": "
    r"No module named '(?:(?P=plugin)|(?P=package))'"
)
"""A complaint of pytest or of a plugin about an option's value: its names, such as ``-k``, or the value."""
_STARTS = {"xdist": ("-n", "--dist", "--maxprocesses", "--tx")}
"""How the options of a plugin start, by its name; those of most start with it."""
_COMPLAINT = re.compile(r"(\S[^:]*: )?error: ")  # of pytest, or of "python -m pytest"


def _refused_options(command: JudgedCommand, record: WorkerRecord) -> Evidence | None:
    """Return evidence of the command's options that pytest does not know, or whose values it refuses.

    ``None`` if it has none. Such an option is a mistake of the plan, not of the environment.
    """
    # pytest may as well complain about options of the ini file or of the user, which are not the plan's.
    own = list(split_options(command.args))
    at = f"{command.place}: " if command.place else ""
    starting = (raw["headline"] for raw in record.startup_failures)
    for text in (*record.usage_errors, *record.internal_errors, *starting):
        if found := _UNKNOWN.search(text):
            setting = found["setting"]
            words = [setting.lower()] if setting else (found["options"] or found["twice"]).split()
            unknown = {each.words[0] for each in own if not each.known}
            refused = [word for word in words if word in unknown]
            problem, headline = "unknown_option", f"{at}pytest does not know {', '.join(refused)}"
            if not refused:
                # The ini file may have options or settings of a plugin that the command disables: --cov
                # in addopts with -p no:cov, asyncio_mode with -p no:asyncio.
                # Or it loads a plugin that pytest loads by itself.
                sign = "" if found["twice"] else "no:"
                named = [each for each in own if each.name == "-p" and (each.value or "").startswith(sign)]
                refused = [
                    shlex.join(each.words)
                    for each in named
                    for plugin in [str(each.value).removeprefix("no:").removeprefix("pytest_")]
                    for start in [plugin if setting else _STARTS.get(plugin, f"--{plugin}")]
                    if any(word.startswith(start) for word in words)
                ]
                if not found["twice"]:
                    refused += [each.name for each in own if each.name == "--disable-plugin-autoload"]
                problem, headline = "bad_value", f"{at}{_complaint(text)}"
        elif found := _REFUSED.search(text):
            names = (found["names"] or "").split("/")
            value = found["value"] or found["plugin"]
            given = [each for each in own if each.name in names or each.value == value is not None]
            refused = [shlex.join(each.words) for each in given if each.name]
            problem, headline = "bad_value", f"{at}{_complaint(text)}"
        else:
            continue
        if refused:
            known = known_options() if problem == "unknown_option" else ()
            selectors = tuple(
                Selector(
                    text=each,
                    problem=problem,
                    nearest=tuple(difflib.get_close_matches(each.partition("=")[0], known, n=2)),
                )
                for each in refused
            )
            return command.evidence(
                EvidenceKind.SELECTION, headline, phase=Phase.SESSION, selectors=selectors
            )
    return None


def _complaint(text: str) -> str:
    """Return the line of an error that says what is wrong."""
    _, frame, raised = text.rpartition('\n  File "')
    if frame:  # a message of several lines says first what is wrong
        return next((line for line in raised.splitlines()[1:] if line.strip() and line[0] != " "), "")
    lines = [line.strip() for line in text.strip().splitlines()]
    # The last line is not always the error: pytest's parser prints ini file and rootdir below it.
    return next((line for line in lines if _COMPLAINT.match(line)), lines[-1] if lines else "")


def _never_collected(command: JudgedCommand, record: WorkerRecord) -> Judgement:
    """Judge a session that finished by itself before it had collected its tests.

    The first explanation that applies counts: refused options, errors while pytest started or collected,
    the exception that stopped the session, selections that were not found, and last its exit status.
    """
    if (refused := _refused_options(command, record)) is not None:
        return Judgement(verdict=Verdict.FAILED, evidence=(refused,), exit_code=record.exit_status)
    evidence = [command.read_back(raw) for raw in record.startup_failures]
    evidence += collection_evidence(command, record)
    if not evidence and record.stopped_by is not None:
        evidence.append(command.read_back(record.stopped_by))
    missing = [
        Selector(
            text=text,
            problem="missing_id",
            nearest=tuple(f"{file_of(text)}::{name}" for name in record.not_found[argument]),
        )
        for text in command.selections
        for argument in _argument_not_found(text, record)
    ]
    if not evidence and record.exit_status == 0:
        evidence.append(_nothing_ran(command))
    elif not evidence:
        found = selection_evidence(command, missing) if missing else session_evidence(command, record)
        evidence.append(found)
    return Judgement(verdict=Verdict.FAILED, evidence=tuple(evidence), exit_code=record.exit_status)


def _argument_not_found(selection: str, record: WorkerRecord) -> list[str]:
    """Return the argument among those that pytest did not find which is this selection: one at most.

    pytest reports its arguments with absolute paths, so their ends are compared.
    """
    _, separator, names = selection.partition("[")[0].partition("::")
    end = file_of(selection) + separator + names
    # Whole components, as a.py::gone is also the end of another file's extra_a.py::gone.
    return [each for each in record.not_found if each == end or each.endswith(f"/{end}")][:1]


def _unexplained(command: JudgedCommand, record: WorkerRecord, judgement: Judgement) -> Judgement:
    """Fail a judgement whose tests passed, but whose session did not end as passing tests explain."""
    if record.exit_status is None:
        death = record.death
        how = f"ended with {how_it_ended(death) if death else 'no exit status'}"
        if death is not None and death.end.timed_out:
            how = f"did not end, and was stopped after {command.limit_seconds:g} s"
        headline = f"the tests passed, but then the session {how}"
    elif record.lost_processes and record.exit_status == 0:
        headline = "the tests passed, but a process of pytest-xdist did not finish its session"
    else:
        headline = f"the tests passed, but the session returned {record.exit_status}"
    evidence = session_evidence(command, record, headline=headline)
    if record.coverage and record.exit_status == _TESTS_FAILED:
        percent, limit = (f"{value:g}" for value in record.coverage)
        headline = f"the tests passed, but they cover {percent} %, and the limit is {limit} %"
        fact = MetricFact(
            name="coverage", operator=">=", expected=float(limit), recorded=(percent,), problem="unmet"
        )
        evidence = command.evidence(EvidenceKind.METRIC, headline, metric=fact)
    judgement.verdict = Verdict.FAILED
    judgement.reason = headline
    judgement.evidence = (evidence,)
    return judgement


# -- evidence ------------------------------------------------------------------------------------------


def test_evidence(command: JudgedCommand, record: WorkerRecord, result: TestRecord) -> list[Evidence]:
    """Return the evidence of one failing test; never empty for a test that did not pass."""
    timing = {"limit_seconds": command.limit_seconds, "duration_seconds": result.duration_ms / 1000}
    about = {"nodeid": result.nodeid, "tests": (result.nodeid,)}
    pieces = [command.read_back(raw, **about, **timing) for raw in result.evidence]
    death = record.death
    if death is not None and death.nodeid == result.nodeid:
        pieces.append(death_evidence(command, death, nodeid=result.nodeid))
    elif not pieces:
        headline = result.reason or f"the test's outcome is {result.outcome}"
        pieces.append(command.evidence(EvidenceKind.TEST, headline, **about))
    return pieces


def death_evidence(command: JudgedCommand, death: Death, *, nodeid: str | None) -> Evidence:
    """Return the evidence of a process that died or was killed before its session had finished.

    The death is attributed to the test ``nodeid``, else to the file that was being imported, else to the
    session.
    """
    subject = nodeid or death.file or "the session"
    # pytest-timeout ends a process by an exit, and at a limit of the test's own.
    is_ours = death.end.timed_out and death.end.exit_code is None
    how = (
        f"was stopped after {command.limit_seconds:g} s"
        if is_ours
        else f"ended the process with {how_it_ended(death)}"
    )
    kind = EvidenceKind.TEST if nodeid else EvidenceKind.COLLECTION if death.file else EvidenceKind.SESSION
    phase = death.phase if nodeid else Phase.COLLECT if death.file else Phase.SESSION
    return command.read_back(
        death.raised or {},
        kind=kind,
        phase=phase,
        nodeid=nodeid or death.file,
        headline=f"{subject} {how}",
        longrepr=death.end.stack or "",
        stderr_tail=death.output[-4_000:],
        limit_seconds=command.limit_seconds if is_ours else None,
        timed_out=death.end.timed_out,
        process=death.end,
        tests=(nodeid,) if nodeid else (),
    )


def how_it_ended(death: Death) -> str:
    """Return a phrase for the signal or the exit status of a process, to be shown to people."""
    if death.end.exit_code is None:
        return death.end.signal or "an unknown cause"
    return f"exit status {death.end.exit_code}"


def selection_evidence(command: JudgedCommand, missing: Iterable[Selector]) -> Evidence:
    """Return the evidence of selections that do not exist."""
    selectors = tuple(missing)
    headline = "; ".join(f"{each.text} {_PROBLEMS[each.problem]}" for each in selectors)
    return command.evidence(EvidenceKind.SELECTION, headline, phase=Phase.COLLECT, selectors=selectors)


def _nothing_ran(command: JudgedCommand) -> Evidence:
    """Return the evidence of a session that ran no test but returned 0, with options that cause it."""
    options = dict.fromkeys(each.name for each in split_options(command.args) if each.name in RUNS_NO_TEST)
    selectors = tuple(Selector(text=name, problem="runs_nothing") for name in options)
    cause = f" ({', '.join(options)})" if options else ""
    return command.evidence(
        EvidenceKind.SELECTION,
        f"no test ran, and the session returned 0{cause}",
        phase=Phase.SESSION,
        vacuous="nothing_collected",
        selectors=selectors,
    )


_PROBLEMS = {
    "missing_file": "does not exist",
    "missing_id": "names no test of that file",
    "no_match": "selects no test",
    "empty": "holds no test",
}


def collection_evidence(command: JudgedCommand, record: WorkerRecord) -> list[Evidence]:
    """Return the evidence of files that could not be imported."""
    return [command.read_back(raw, nodeid=nodeid) for nodeid, raw in record.collection_failures.items()]


def over_limit(
    command: JudgedCommand, record: WorkerRecord, results: Sequence[TestRecord]
) -> Evidence | None:
    """Return evidence if the tests together took longer than the criterion allows, else ``None``.

    So they did if one was interrupted at the limit, but reports no failure.
    """
    seconds = sum(result.duration_ms for result in results) / 1000
    # By the parent's clock; a test may have moved that of its process.
    observed = seconds if record.started_at is None else record.last_at - record.started_at
    interrupted = (
        each
        for each in results
        if each.nodeid in record.interrupted and not each.is_red and not record.reruns_of(each)
    )
    swallowing = next(interrupted, None)
    # Alone, the tests may have taken less than the limit, which includes their collection.
    seconds = min(seconds, observed) if swallowing is None else observed
    if swallowing is None and seconds <= command.limit_seconds:
        return None
    slowest = swallowing or max(results, key=lambda result: result.duration_ms)
    return command.evidence(
        EvidenceKind.TEST,
        f"{seconds:.1f} s for a limit of {command.limit_seconds:g} s; the slowest test is {slowest.nodeid}",
        phase=Phase.CALL,
        nodeid=slowest.nodeid,
        limit_seconds=command.limit_seconds,
        duration_seconds=seconds,
        timed_out=True,
        swallowed_timeout=slowest is swallowing or slowest.duration_ms / 1000 > command.limit_seconds,
        tests=(slowest.nodeid,),
    )


def rerun_evidence(command: JudgedCommand, record: WorkerRecord, result: TestRecord) -> Evidence:
    """Return the evidence of a flaky test: another plugin reran it until it passed."""
    raw = (record.attempts.get(result.nodeid) or [{"kind": "test"}])[0]
    confirmations = [{"where": "alone", "passed": False}] * record.reruns_of(result)
    confirmations.append({"where": "alone", "passed": True})
    return command.read_back(raw, nodeid=result.nodeid, tests=[result.nodeid], confirmations=confirmations)


def overturned_evidence(command: JudgedCommand, record: WorkerRecord, result: TestRecord) -> Evidence:
    """Return the evidence of a test whose body failed, but which was reported as passing."""
    nodeid = result.nodeid
    raw = (record.attempts.get(nodeid) or [{}])[-1]
    detail = f": {raw['headline']}" if raw.get("headline") else ""
    message = f"{nodeid} failed and was reported as {result.outcome}{detail}"
    return _tampering(command, message, (nodeid,), sign="report-overturned", nodeid=nodeid)


def records_evidence(command: JudgedCommand, tests: tuple[str, ...]) -> Evidence:
    """Return the evidence that the session's journal was cut while only these tests ran."""
    what = ", ".join(command.selections) or "the command"
    message = f"the records of the run were truncated or overwritten while {what} ran alone"
    return _tampering(command, message, tests, sign="records-touched")


def _tampering(
    command: JudgedCommand, message: str, tests: tuple[str, ...], *, sign: str, nodeid: str | None = None
) -> Evidence:
    """Return evidence of one hard tampering signal."""
    signal = HygieneSignal(sign=sign, message=message, nodeid=nodeid)
    return command.evidence(EvidenceKind.HYGIENE, message, nodeid=nodeid, signals=(signal,), tests=tests)


def vacuous_evidence(
    command: JudgedCommand, record: WorkerRecord, results: Sequence[TestRecord]
) -> Evidence:
    """Return the evidence that the tests prove nothing, as none was collected or none passed."""
    reasons = [result.reason for result in results if result.reason]
    reasons += [reason for reason in record.skipped_files.values() if reason]
    selectors = tuple(Selector(text=text, problem="empty") for text in command.selections)
    # A file that skips itself when it is imported collects no test, but it is there.
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
    """Return the evidence of a session whose end no test explains, with the last error that it reported."""
    messages = [
        *record.usage_errors,
        *record.internal_errors,
        *([record.stopped] if record.stopped else []),
    ]
    last = messages[-1].strip() if messages else ""
    death = record.death
    default = _complaint(last) or f"the session returned {record.exit_status} and ran no test"
    return command.evidence(
        EvidenceKind.SESSION,
        headline or default,
        phase=Phase.SESSION,
        longrepr=last,
        stderr_tail=death.output[-4_000:] if death else "",
        limit_seconds=command.limit_seconds,
        timed_out=death is not None and death.end.timed_out,
        # A record has either a death or an exit status.
        process=ProcessEnd(exit_code=record.exit_status, complete=record.exit_status is not None)
        if death is None
        else death.end,
        contract_path=command.contract_path,
    )
