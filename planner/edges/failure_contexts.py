"""Reads what a repair of a failed todo needs to be told beyond its outcome: the failure report of the same
run, the source around the places that count, samples of the data and the contract.

Everything is read below the plan's root and within bounds; what cannot be read is left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.catalog.test_paths import is_test_path
from planner.edges.project.file_samples import sample
from planner.edges.project.rooted_files import RootedFiles
from planner.edges.project.source_places import SourcePlaces
from planner.model.context import DefinedName, FailureContext, FileSample
from planner.model.failure_report import FAILURE_REPORT_VERSION, FailureReport
from planner.model.kinds import Side
from planner.model.plan import ID_PATTERN, ArtifactSpec, CommandSpec
from planner.model.verdicts import CheckKind
from planner.rules.instructions.case import failing_command

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from planner.model.failure_report import Observation
    from planner.model.outcome import Failure, Location, Outcome, OutcomeDocument
    from planner.model.plan import Todo
    from planner.planfile.loader import LoadedPlan
    from planner.rules.criteria import Criterion

REPORT_PATH = "diagnostics/{todo_id}_failure_report.json"
LARGEST_REPORT = 8 * 1024 * 1024
"""Bytes."""

MOST_REACHED = 170
"""Lines of the code that the failing test reaches, where nothing was raised in the product."""

LESS_REACHED = 80
"""The same beside the place where something was raised."""

LONGEST_WORDS = 2_000
"""Characters."""

_MOST_TESTS = 2
_MOST_WORDED = 4
_MOST_FRAMES = 12
_MOST_STACKED = 4
_LONGEST_STACK = 20_000
_MOST_FINDINGS = 6
_ID = re.compile(ID_PATTERN)
_PLACE = re.compile(
    r"File \"(?P<file>[^\"\n]{1,300}+)\", line (?P<at>\d{1,7})|(?P<path>[\w./-]{1,300}+):(?P<line>\d{1,7})"
)

_LACKS = re.compile(
    r"(?:module '(?P<module>[\w.]{1,200})'|(?:type object )?'(?P<type>\w{1,200})'(?: object)?)"
    r" has no attribute '(?P<name>\w{1,200})'"
    r"|cannot import name '(?P<wanted>\w{1,200})'"
    r" from (?:partially initialized module )?'(?P<source>[\w.]{1,200})'"
    r"|name '(?P<undefined>\w{1,200})' is not defined"
)
"""What is said of a name that is missing, and of what lacks it."""


def gather(
    loaded: LoadedPlan,
    document: OutcomeDocument,
    todo_ids: Iterable[str],
    *,
    reports: Path | None = None,
) -> dict[str, FailureContext]:
    """What could be read about each of the todos that the outcomes know, by id.

    ``reports`` is the folder below which the failure reports lie, the plan's root where none is given:
    those of a sub-plan's todos lie below the top plan's root.
    """
    plan_id = loaded.plan.todo_list_id
    outcomes = {
        outcome.todo_id: outcome for outcome in document.outcomes if outcome.plan in (None, plan_id)
    }
    todos = {todo.id: todo for todo in loaded.plan.items}
    files = RootedFiles(loaded.root)
    report_files = files if reports is None or reports == loaded.root else RootedFiles(reports)
    places = SourcePlaces(files)
    contexts: dict[str, FailureContext] = {}
    for todo_id in todo_ids:
        outcome, todo = outcomes.get(todo_id), todos.get(todo_id)
        if outcome is None or todo is None or todo_id in contexts:
            continue
        report = _report(report_files, outcome, plan_id, document.run.run_id)
        contexts[todo_id] = _context(todo, outcome, report, loaded.criteria.get(todo_id, ()), files, places)
    return contexts


def gather_one(
    loaded: LoadedPlan, outcome: Outcome, *, reports: Path | None = None
) -> FailureContext | None:
    """As :func:`gather`, of one outcome of a run that is not known: its report is of the same failure."""
    plan_id = loaded.plan.todo_list_id
    todo = next((each for each in loaded.plan.items if each.id == outcome.todo_id), None)
    if todo is None:
        return None
    files = RootedFiles(loaded.root)
    report = _report(files if reports is None else RootedFiles(reports), outcome, plan_id, None)
    criteria = loaded.criteria.get(todo.id, ())
    return _context(todo, outcome, report, criteria, files, SourcePlaces(files))


def _report(files: RootedFiles, outcome: Outcome, plan_id: str, run_id: str | None) -> FailureReport | None:
    """The report of this todo and this run; any other would tell of another failure."""
    if not _ID.match(_report_name(outcome.todo_id)):
        return None
    path = REPORT_PATH.format(todo_id=_report_name(outcome.todo_id))
    file = files.read_once(path, limit=LARGEST_REPORT)
    if file is None or not file.is_whole:
        return None
    try:
        report = FailureReport.model_validate_json(file.data)
    except (ValueError, RecursionError):
        return None
    fits = (
        report.schema_version <= FAILURE_REPORT_VERSION
        and report.todo.id == outcome.todo_id
        and report.plan.id == plan_id
        and (
            report.run_id == run_id
            if report.run_id is not None and run_id is not None
            else _is_same_failure(report, outcome)
        )
    )
    return report if fits else None


def _report_name(todo_id: str) -> str:
    """How the report of a todo is called: a qualified id would name a folder."""
    return todo_id.replace("/", "__")


def _is_same_failure(report: FailureReport, outcome: Outcome) -> bool:
    deciding = outcome.failure_evidence
    signature = report.failures[0].diagnosis.signature if report.failures else None
    return signature is not None and deciding is not None and deciding.signature == signature


def _context(
    todo: Todo,
    outcome: Outcome,
    report: FailureReport | None,
    criteria: tuple[Criterion, ...],
    files: RootedFiles,
    places: SourcePlaces,
) -> FailureContext:
    failure = outcome.failure_evidence
    named = failing_command(todo, failure) if failure else None
    check_id = named[0] if named else failure.check_id if failure else None
    criterion = next((each for each in criteria if each.id == check_id), None)
    names = _look(places, todo, outcome, report, criterion)
    return FailureContext(
        todo_id=todo.id,
        report=report,
        excerpts=places.take(),
        names=names,
        fixture=_sample(files, _data_path(outcome, criterion), mentioned=_spoken_of(failure)),
        contract=_sample(files, todo.contract_path, whole=True),
        report_path=REPORT_PATH.format(todo_id=_report_name(todo.id)) if report else None,
    )


def _look(
    places: SourcePlaces,
    todo: Todo,
    outcome: Outcome,
    report: FailureReport | None,
    criterion: Criterion | None,
) -> tuple[DefinedName, ...]:
    """Name the places to show, the likeliest first, and the names that may be meant by a missing one."""
    failure = outcome.failure_evidence
    observations = report.failures[0].observations if report and report.failures else ()
    tests = _tests(outcome)
    test_files = {nodeid.partition("::")[0] for nodeid in tests}
    location = failure.location if failure else None
    if location is not None and location.path == _data_path(outcome, criterion):
        location = None  # its sample shows it already
    _speak(places, failure, observations)
    if location is not None and not _is_test(location.path, test_files):
        places.at(location.path, location.line)
    raised = list(_observed(observations[:_MOST_TESTS]))
    for path, line in raised:
        places.at(path, line)
    for seen in observations[:1]:
        for finding in seen.command.findings[:_MOST_FINDINGS] if seen.command else ():
            if finding.path and finding.line:
                places.near(finding.path, finding.line)
    if failure is not None and report is None and not places:
        for path, line in _named(failure):
            places.at(path, line)
    _start(places, tests, location, observations)
    names = _names(places, failure, report)
    places.reached(LESS_REACHED if raised else MOST_REACHED)
    if all(_is_test(path, test_files) for path in places):
        for nodeid in tests:
            places.subjects_of(nodeid)
    for nodeid in tests:
        places.of_test(nodeid)
    if location is not None:
        places.at(location.path, location.line)
    if criterion is not None and isinstance(criterion.spec, ArtifactSpec) and criterion.spec.json_schema:
        places.beginning(criterion.spec.json_schema)
    if set(places) <= test_files:
        target = todo.controller_task_spec.target_file if todo.controller_task_spec else None
        for path in [each for each in (target, *outcome.touched_files) if each][:1]:
            places.beginning(path)
    return names


def _names(
    places: SourcePlaces, failure: Failure | None, report: FailureReport | None
) -> tuple[DefinedName, ...]:
    """What the module or class that lacks a name does define, where that is what failed."""
    observations = report.failures[0].observations if report and report.failures else ()
    texts = [raised.message for seen in observations[:1] for raised in seen.exceptions[:2]]
    for text in (*texts, failure.stack_trace_head or "" if failure else ""):
        found = _LACKS.search(text[:LONGEST_WORDS])
        if found is None:
            continue
        paths = [failure.location.path] if failure and failure.location else []
        paths += [path for path, _ in _observed(observations[:1])]
        module = found["module"] or found["source"]
        owner = found["type"] or ""
        return tuple(
            DefinedName(name=name, path=path, line=line)
            for path, line, name in places.defined(
                paths, module, owner, found["name"] or found["wanted"] or found["undefined"]
            )
        )
    return ()


def _is_test(path: str, test_files: Collection[str]) -> bool:
    return path in test_files or is_test_path(path)


def _speak(places: SourcePlaces, failure: Failure | None, observations: Sequence[Observation]) -> None:
    """Tell the words of the failure, by which the code that matters is known."""
    for nodeid in failure.top_failing_tests[:_MOST_WORDED] if failure else ():
        places.speak_of(nodeid[-LONGEST_WORDS:])
    places.speak_of(_spoken_of(failure), 2.0)
    for seen in observations[:1]:
        places.speak_of(seen.headline[:LONGEST_WORDS], 2.0)
        if seen.comparison is not None:
            places.speak_of(seen.comparison.expected[:LONGEST_WORDS], 2.0)
            places.speak_of(seen.comparison.actual[:LONGEST_WORDS], 2.0)


def _start(
    places: SourcePlaces,
    tests: Iterable[str],
    location: Location | None,
    observations: Sequence[Observation],
) -> None:
    """Say where to begin to look for the code that the failure goes through."""
    for seen in observations[:1]:
        for raised in seen.exceptions[:2]:
            for frame in raised.frames[-_MOST_FRAMES:]:
                if frame.side in (Side.PRODUCT, Side.TEST):
                    places.start_from(frame.path, frame.line)
    if location is not None and location.line:
        places.start_from(location.path, location.line)
    for nodeid in tests:
        places.start_from_test(nodeid)


def _tests(outcome: Outcome) -> list[str]:
    """The failing tests; where none fails, the first ones that ran: they make and measure what is wrong."""
    failing = outcome.failure_evidence.top_failing_tests if outcome.failure_evidence else ()
    run = [test.nodeid for check in outcome.checks for test in check.tests]
    return list(failing or run)[:_MOST_TESTS]


def _observed(observations: Iterable[Observation]) -> Iterator[tuple[str, int]]:
    """The product's places that the report names."""
    for seen in observations:
        for raised in seen.exceptions:
            own = [f for f in raised.frames if f.side is Side.PRODUCT and not is_test_path(f.path)]
            yield from ((frame.path, frame.line) for frame in reversed(own[-2:]))
        yield from _stacked(seen.process.stack if seen.process else None)
        if seen.contract and seen.contract.module_path and seen.contract.line:
            yield seen.contract.module_path, seen.contract.line


def _stacked(stack: str | None) -> Iterator[tuple[str, int]]:
    """The product's places in the stack of a process that was ended, the newest call first."""
    _, current, after = (stack or "")[:_LONGEST_STACK].partition("Current thread")
    text = after.partition("\n\n")[0] if current else (stack or "")[:_LONGEST_STACK]
    places = ((found["file"], found["at"]) for found in _PLACE.finditer(text) if found["file"])
    own = [
        (path, int(line)) for path, line in places if not path.startswith("/") and not is_test_path(path)
    ]
    yield from list(dict.fromkeys(own))[:_MOST_STACKED]


def _named(failure: Failure) -> Iterator[tuple[str, int]]:
    """Places in the text of an outcome that has nothing better."""
    for text in (failure.stack_trace_head, failure.suggestion):
        for found in [*_PLACE.finditer(text[:4_000])][-3:] if text else ():
            yield found["file"] or found["path"], int(found["at"] or found["line"])


def _data_path(outcome: Outcome, criterion: Criterion | None) -> str | None:
    """The data file of the failing criterion; of an artifact, that file itself."""
    failure = outcome.failure_evidence
    check = next((each for each in outcome.checks if failure and each.id == failure.check_id), None)
    if check is not None and check.fixture is not None:
        return check.fixture.path
    if criterion is None:
        return None
    if isinstance(criterion.spec, CommandSpec):
        return criterion.spec.fixture
    return (
        criterion.spec.path
        if criterion.kind is CheckKind.ARTIFACT and isinstance(criterion.spec, ArtifactSpec)
        else None
    )


def _spoken_of(failure: Failure | None) -> str:
    return f"{failure.stack_trace_head or ''}\n{failure.suggestion or ''}"[:4_000] if failure else ""


def _sample(
    files: RootedFiles, path: str | None, *, whole: bool = False, mentioned: str = ""
) -> FileSample | None:
    file = files.read(path) if path else None
    return sample(file, whole=whole, mentioned=mentioned) if file else None
