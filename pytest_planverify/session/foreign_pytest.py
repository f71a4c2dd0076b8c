"""pytest commands of another interpreter: run there, and judged by a report that pytest can write.

This plugin cannot be loaded there, so there is no worker, no journal and no evidence from inside. The
witness is pytest-json-report if installed, else pytest's own JUnit XML, else the exit status alone. What it
tells is put into the record that a worker's journal would fill, and judged like that.
"""

from __future__ import annotations

import json
import os
import shutil
import xml.etree.ElementTree as ET
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from planner.catalog.pytest_arguments import split_options
from planner.model.evidence import CommandFact, ExceptionFact, ProcessEnd
from planner.model.verdicts import EvidenceKind, Phase, Side, TestOutcome, Verdict, Witness
from planner.planfile.project_files import read_regular
from planner.text.sanitizing import one_line
from pytest_planverify.checks.processes import ProcessResult, run_process
from pytest_planverify.checks.result import Judgement
from pytest_planverify.diagnosis.tool_output import read_traceback
from pytest_planverify.observe.redaction import evidence_without_secrets, without_secrets
from pytest_planverify.reports.reporters import only_writes
from pytest_planverify.session.judge import judge
from pytest_planverify.session.records import Death, RawEvidence, TestRecord, WorkerRecord
from pytest_planverify.session.run_folder import clear_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pytest_planverify.checks.result import JudgedCommand

_REPORTS = ("foreign.json", "foreign.xml")
_STATUSES = range(6)
"""pytest's exit statuses; with any other the process has not ended as its session wanted."""
_RAN = (0, 1, 5)
"""pytest's exit statuses of sessions that ran their tests, if any."""
_NOT_FOUND = (126, 127)
"""Exit statuses with which a shell says that a program cannot be executed or found."""
_USAGE_ERROR = 4
"""pytest's exit status for a command line that it does not understand."""


_NO_REPORT = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError),
    *(OverflowError, RecursionError, ET.ParseError),
)
"""Errors of reading a report that is missing, incomplete or invalid, or that a test has replaced."""


def run_foreign(
    judged: JudgedCommand,
    launcher: Sequence[str],
    args: Sequence[str],
    *,
    root: Path,
    env: Mapping[str, str],
    folder: Path,
    watch: Callable[[], None] | None = None,
) -> Judgement:
    """Run the command; return its judgement, with the witness that it rests on.

    The command is run again with the next witness if pytest refused the option of the first one. Without
    any report the exit status is the witness. Reports are written to ``folder``; ``watch`` is called
    regularly, see :func:`run_process`.
    """
    # Options of pytest-json-report are set below, and the second attempt must do without them.
    options = (each for each in split_options(args) if not each.name.startswith("--json-report"))
    plain = [word for option in options for word in option.words]
    report, xml = (folder / name for name in _REPORTS)
    # Of pytest's JUnit XML only the family xunit1 has the file of each test.
    attempts = (
        (Witness.JSON_REPORT, ["--json-report", f"--json-report-file={report}"], report),
        (Witness.JUNIT_XML, [f"--junitxml={xml}", "-o", "junit_family=xunit1"], xml),
    )
    record, witness, result = WorkerRecord(), Witness.EXIT_CODE, None
    for attempt, extra, file in attempts:
        clear_path(file)
        file.unlink(missing_ok=True)  # the report of an earlier run would pass for that of this one
        # Reports have the tracebacks in the style of the terminal, which may be one without frames.
        argv, limit = [*launcher, *plain, "--tb=auto", *extra], judged.limit_seconds
        try:
            result = run_process(argv, cwd=root, env=env, timeout_seconds=limit, watch=watch)
        except OSError as error:
            return _not_started(judged, launcher, args, error.strerror or str(error))
        # A missing, incomplete or invalid report is no witness.
        with suppress(*_NO_REPORT):
            record, witness = read_report(file, attempt), attempt
            break
        if result.exit_code != _USAGE_ERROR:  # the usage error of an unknown option: no such plugin there
            break
    assert result is not None
    # A shim says on stderr that it found no interpreter; a conftest that exits so need not say anything.
    said = one_line(without_secrets(result.stderr.strip().partition("\n")[0]), limit=300)
    is_shim = witness is Witness.EXIT_CODE and result.exit_code in _NOT_FOUND
    if is_shim and said and not result.stdout.strip():
        return _not_started(judged, launcher, args, said)
    _add_end(record, result)
    judgement = judge(judged, record)
    judgement.duration_ms, judgement.witness = result.duration_ms, witness
    # A worker does this for its records.
    judgement.evidence = tuple(map(evidence_without_secrets, judgement.evidence))
    judgement.tests = tuple(
        each.model_copy(update={"reason": without_secrets(each.reason)}) for each in judgement.tests
    )
    judgement.properties = [(name, without_secrets(value)) for name, value in judgement.properties]
    return judgement


def remove_reports(folder: Path) -> None:
    """Remove the reports that were written to ``folder``, which may have secrets."""
    for name in _REPORTS:
        with suppress(OSError):
            (folder / name).unlink()


def write_requested_report(judgement: Judgement, args: Sequence[str], *, root: Path, folder: Path) -> None:
    """Copy the witness to the file that the command requests, in place of which it was written."""
    given = {option.name: option.value or "" for option in split_options(args)}
    target = given.get("--junitxml") or given.get("--junit-xml") or ""
    if judgement.witness is Witness.JUNIT_XML and target:
        source = folder / _REPORTS[1]
        target = os.path.expanduser(os.path.expandvars(target))
    elif judgement.witness is Witness.JSON_REPORT and "--json-report" in given:
        source = folder / _REPORTS[0]
        target = given.get("--json-report-file") or ".report.json"
    else:
        return
    if target.lower() != "none":  # of pytest-json-report: write no file
        with suppress(OSError):
            (root / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, root / target)


def without_reports(args: Sequence[str]) -> list[str]:
    """Return the arguments for a repeated run, which must not overwrite the reports of the first."""
    own = (option for option in split_options(args) if not only_writes(option.name))
    return [word for option in own for word in option.words]


def _not_started(
    judged: JudgedCommand, launcher: Sequence[str], args: Sequence[str], why: str
) -> Judgement:
    """Return the judgement of a command whose interpreter cannot be started: inconclusive."""
    reason = f"{launcher[0]} cannot be started: {why}"
    fact = CommandFact(argv=(*launcher, *args), tool="pytest", purpose="test", found=False)
    evidence = judged.evidence(EvidenceKind.COMMAND, reason, command=fact)
    return Judgement(
        verdict=Verdict.INCONCLUSIVE, reason=reason, evidence=(evidence,), witness=Witness.EXIT_CODE
    )


def _add_end(record: WorkerRecord, result: ProcessResult) -> None:
    """Add to a record how the process ended; without tests, also its output, which may say why."""
    text = result.stderr.strip() or result.stdout.strip()
    if result.exit_code in _STATUSES:
        record.exit_status = result.exit_code
    else:
        end = ProcessEnd(exit_code=result.exit_code, signal=result.signal, timed_out=result.timed_out)
        record.death = Death(end, None, None, output=text)
    # pytest writes a report after a usage error, too.
    if record.death is None and not record.nodeids and not record.collection_failures:
        record.collected = record.collected and result.exit_code in _RAN
        record.usage_errors += [] if record.collected else [text[-8_000:]]


def read_report(file: Path, witness: Witness) -> WorkerRecord:
    """Parse a report of pytest-json-report, or pytest's JUnit XML of the family xunit1.

    Raises one of the errors in ``_NO_REPORT`` if there is no valid report.
    """
    content = read_regular(file)  # which a pipe in its place does not block
    data: dict[str, Any] = (
        _junit_as_json(content) if witness is Witness.JUNIT_XML else json.loads(content.decode())
    )
    if "summary" not in data:
        raise ValueError("no report of pytest-json-report")
    record = WorkerRecord()
    record.collected = True
    for entry in data.get("tests", ()):
        phases = [(name, entry[name]) for name in ("setup", "call", "teardown") if name in entry]
        nodeid, properties = str(entry["nodeid"]), entry.get("user_properties", ())
        was_rerun = entry["outcome"] == "rerun"  # by pytest-rerunfailures, until it passed
        result = TestRecord(
            nodeid,
            TestOutcome("passed" if was_rerun else entry["outcome"]).value,
            round(sum(float(phase.get("duration", 0)) for _, phase in phases) * 1000),  # finite
            entry.get("reason"),
            int(was_rerun),
            [(str(name), value) for each in properties for name, value in dict(each).items()],
            [_facts("test", name, nodeid, phase) for name, phase in phases if phase["outcome"] == "failed"],
        )
        # JUnit XML has a case of its own for each failed subtest, and for an error after a failure.
        if (other := record.results.get(nodeid)) is not None:
            other.outcome = result.outcome if result.evidence else other.outcome
            other.evidence += result.evidence
            continue
        record.nodeids.append(nodeid)
        record.results[nodeid] = result
        if was_rerun:
            headline = f"{nodeid} passed only when it ran again"
            record.attempts[nodeid] = [{"kind": "test", "phase": "call", "headline": headline}]
    for each in data.get("collectors", ()):
        if each["outcome"] == "failed":
            facts = _facts("collection", "collect", each["nodeid"], each)
            record.collection_failures[str(each["nodeid"])] = facts
    return record


def _facts(kind: str, phase: str, nodeid: str, entry: Mapping[str, Any]) -> RawEvidence:
    """Return the evidence for one failed phase or collector; ``entry`` is its part of the JSON report."""
    crash: Mapping[str, Any] = entry.get("crash") or {}
    longrepr = str(entry.get("longrepr") or "")
    # pytest marks the lines of a message by an E.
    lines = [line[1:].strip() for line in longrepr.splitlines() if line.startswith("E ")]
    message = str(crash.get("message") or (lines or longrepr.strip().splitlines() or ["failed"])[-1])
    return {
        "kind": kind,
        "phase": phase,
        "headline": message.partition("\n")[0],
        "exceptions": (_exception(nodeid, longrepr, message, crash),),
        "longrepr": longrepr[-20_000:],
        "stdout_tail": str(entry.get("stdout") or "")[-8_000:],
        "stderr_tail": str(entry.get("stderr") or "")[-8_000:],
    }


def _exception(nodeid: str, longrepr: str, message: str, crash: Mapping[str, Any]) -> ExceptionFact:
    """Parse pytest's report of a failure; of one without a traceback, its message and place."""
    file, _, names = nodeid.partition("::")
    test = names.partition("[")[0].rpartition("::")[2] or "<module>"
    found = read_traceback(f"___ {test} ___\n{longrepr}")
    if found is None:  # an exception group, or pytest.fail(pytrace=False)
        place = f'File "{crash.get("path", "x")}", line {crash.get("lineno", 1)}, in {test}'
        first = message.partition("\n")[0]
        found = read_traceback(f"Traceback (most recent call last):\n  {place}\n{first}")
        if found is None:  # pytest omits the type of an assertion
            return ExceptionFact(
                type="AssertionError", qualified="builtins.AssertionError", message=message
            )
        found = found.model_copy(update={"frames": found.frames if "path" in crash else ()})
    # A test's own file is one of tests, however it is called.
    frames = (
        each.model_copy(update={"side": Side.TEST}) if f"/{each.path}".endswith(f"/{file}") else each
        for each in found.frames
    )
    return found.model_copy(update={"frames": tuple(frames)})


_JUNIT_OUTCOMES = {
    "failure": TestOutcome.FAILED,
    "error": TestOutcome.ERROR,
    "skipped": TestOutcome.SKIPPED,
}
"""Outcomes by the child element of a test case; a case without any of them has passed."""


_JUNIT_PHASES = {
    "collection failure": Phase.COLLECT,
    "failed on setup": Phase.SETUP,
    "failed on teardown": Phase.TEARDOWN,
}
"""Prefixes of error messages from other phases than the call."""


def _junit_as_json(content: bytes) -> dict[str, Any]:
    """Return the members of a JSON report that JUnit XML has, too; its phases are those that failed.

    Raises ``ParseError`` or ``ValueError`` if it is invalid.
    """
    root = ET.fromstring(content)
    if root.tag not in ("testsuites", "testsuite"):
        raise ValueError("no JUnit XML")
    data: dict[str, Any] = {"summary": {}, "tests": [], "collectors": []}
    for case in root.iter("testcase"):
        children = (child for tag in _JUNIT_OUTCOMES for child in case.findall(tag))
        found = next(children, None)  # a failed teardown rather than the skipped test before it
        outcome = TestOutcome.PASSED if found is None else _JUNIT_OUTCOMES[found.tag]
        # pytest reports an expected failure as skipped, with this type.
        if found is not None and found.get("type") == "pytest.xfail":
            outcome = TestOutcome.XFAILED
        message = "" if found is None else found.get("message") or ""
        other = next((each for begin, each in _JUNIT_PHASES.items() if message.startswith(begin)), None)
        phase = {
            "nodeid": _nodeid(case),
            "outcome": "failed" if outcome.is_red else outcome,
            "duration": case.get("time", 0),
            "longrepr": None if found is None else found.text,
            # Outside of the call phase the message only names the phase.
            "crash": {"message": "" if other else message},
        }
        if other is Phase.COLLECT:
            data["collectors"].append(phase)
            continue
        properties = [{each.get("name"): _number(each.get("value"))} for each in case.iter("property")]
        test = {"nodeid": phase["nodeid"], "outcome": outcome, "user_properties": properties}
        test |= {"reason": message} if found is not None else {}
        data["tests"].append({**test, (other or Phase.CALL).value: phase})
    return data


def _nodeid(case: ET.Element) -> str:
    """Return the node id of a test case, of which JUnit XML has the parts."""
    file, classname, name = case.get("file"), case.get("classname"), str(case.get("name"))
    if file is None:
        return name
    path = file.replace(os.sep, "/")
    # The class name has the file, with dots, then the classes in it. A file that cannot be imported has a
    # case without one.
    classes = (classname or "").partition(path.removesuffix(".py").replace("/", "."))[2].split(".")
    return "::".join([path, *filter(None, classes), name]) if classname else path


def _number(text: str | None) -> Any:
    """Return the number in a text, or the text: JUnit XML has properties as text only."""
    try:
        return float(text or "")
    except ValueError:
        return text
