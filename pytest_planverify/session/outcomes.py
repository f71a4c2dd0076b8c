"""Assembly of outcomes: state of each todo, its diagnosed failures, root causes, and the summary.

Failures are diagnosed by :class:`Opinions`: plugins are asked first, then the rules.
"""

from __future__ import annotations

import math
import os
import shlex
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from planner.catalog.test_paths import is_test_path
from planner.model.evidence import ChangedFile
from planner.model.journal import CheckRun
from planner.model.outcome import Check, Diagnosis, Failure, Outcome, OutcomeMetrics, Summary
from planner.model.plan import MetricSpec, TodoStatus
from planner.model.verdicts import CheckKind, Side, Since, TodoState, Verdict
from planner.planfile.project_files import RootedFiles
from planner.planfile.tree import SEPARATOR
from planner.policy.branches import agent_at, route
from planner.policy.outcomes import (
    CHECK_ID,
    is_preexisting,
    parent_verdicts,
    severity_of,
    sub_plan_reason,
    sub_plan_verdict,
    verdict_of,
)
from planner.text.sanitizing import clean
from pytest_planverify.baseline.changes import GreenRevisions
from pytest_planverify.checks.metric import is_number
from pytest_planverify.session.check_runs import PlanResult, blocked_reason, recorded_values

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    import pytest

    from planner.model.evidence import Evidence, Hunk
    from planner.model.outcome import Cause
    from planner.model.plan import Todo
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline.changes import Changes
    from pytest_planverify.baseline.comparison import BaselineComparison
    from pytest_planverify.baseline.kept_baseline import KeptBaseline
    from pytest_planverify.session.run import SessionRun

    Compared: TypeAlias = Callable[[Callable[[Evidence], Diagnosis]], Diagnosis]
    """Diagnosis of one failure, by the rules that it gets and the baseline."""

TOP_TESTS = 10

MOST_CHANGED = 50
"""Limit of changed files in evidence."""

_PYTHON = (".py", ".pyi")

AnyChange = TypeVar("AnyChange", "ChangedFile", "Hunk")
AnyFailure = TypeVar("AnyFailure", Diagnosis, Failure)


class Assembled(NamedTuple):
    """The outcome of one todo with the material that it was made from."""

    flat: FlatPlan
    todo: Todo
    outcome: Outcome
    diagnosed: tuple[tuple[Evidence, Diagnosis], ...]
    """Evidence and diagnosis of each failure."""

    @property
    def plan_id(self) -> str:
        """The plan's id."""
        return self.flat.loaded.plan.todo_list_id

    @property
    def root(self) -> Path:
        """Root of the todo's own plan."""
        return self.flat.owner(self.todo.id).root

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Evidence of all failures."""
        return tuple(piece for piece, _ in self.diagnosed)


@dataclass(frozen=True, kw_only=True)
class Assembler:
    """Assembles the outcomes of one plan."""

    result: PlanResult
    shown_path: str
    changes: Mapping[Path, Changes]
    """Changes by root of plan and sub-plans."""
    diagnose: Callable[[Evidence, Compared | None], Diagnosis]
    recording: bool = False
    baseline: KeptBaseline | None = None
    green: GreenRevisions | None = None
    _changed: dict[Changes, dict[str, Any]] = field(default_factory=dict[Any, Any])
    """Cache of the members of evidence on changes, by the changes that they are made from."""

    @cached_property
    def _comparison(self) -> BaselineComparison | None:
        if self.baseline is None:
            return None
        from pytest_planverify.baseline.comparison import BaselineComparison

        return BaselineComparison(self.result.flat, self.baseline)

    def assemble(self) -> list[Assembled]:
        """Return the outcomes in plan order, with diagnosed failures."""
        found: dict[str, Assembled] = {}
        for todo in reversed(self.result.todos):  # todos of a sub-plan follow their parent
            below = self.result.flat.children.get(todo.id, ())
            found[todo.id] = self._todo(todo, [found[each].outcome for each in below if each in found])
        return [found[todo.id] for todo in self.result.todos]

    def _todo(self, todo: Todo, children: Sequence[Outcome]) -> Assembled:
        """Return the outcome of one todo; ``children`` are those of its sub-plan's todos.

        Of a blocked todo only the guards' failures are diagnosed, unless a baseline is recorded.
        """
        criteria = self.result.plan.criteria[todo.id]
        runs = self.result.checks[todo.id]
        guards = [run for run in runs.values() if run.check.kind is CheckKind.GUARD]
        own = [*(runs[each.id] for each in criteria if each.id in runs), *guards]
        blocked = self.result.blocked.get(todo.id, ())
        ordered = [self._sub_plan_check(todo, children, blocked), *own] if children else own
        verdicts = parent_verdicts(
            [run.check.counts_as for run in own], [verdict_of(child) for child in children]
        )
        state = todo_state(todo, verdicts, blocked=bool(blocked))
        root = self.result.flat.owner(todo.id).root
        counted = guards
        if not blocked or self.recording:
            counted = [
                self._with_parent_facts(run, root, todo)
                for run in own
                if run.check.counts_as.is_red or (run.evidence and not run.check.quarantined)
            ]
        diagnosed = tuple(
            (piece, self._diagnosis(todo, piece)) for run in counted for piece in run.evidence
        )
        changes = self.changes[root]
        touched, digest = changes.of(todo.allowed_files)
        primary = todo.parent_id or todo.id  # the baseline knows no branches
        outcome = Outcome(
            todo_id=todo.id,
            plan=self.result.plan.plan.todo_list_id,
            title=todo.title,
            state=state,
            # A claimed todo that requires no testing is done without any criterion.
            verified=bool(own) and state in (TodoState.DONE, TodoState.TEST_FAILED),
            success=state is TodoState.DONE,
            tests_passed=_tests_passed(own, children),
            blocked_by=blocked,
            at_base=self._comparison.todo(todo) if self._comparison is not None else None,
            checks=tuple(
                run.check if self._comparison is None else self._comparison.check(primary, run.check)
                for run in ordered
            ),
            # An edit of the plan is no work on a todo.
            touched_files=tuple(each for each in touched if each not in changes.apart),
            diff_hash=digest,
            metrics=OutcomeMetrics(duration_ms=sum(run.check.duration_ms for run in ordered)),
            recorded=self._recorded(todo, ordered),
        )
        # Its own failures precede pre-existing ones, so that one of its own decides the route.
        failures = sorted(
            self._failures(todo, diagnosed), key=lambda each: is_preexisting(todo, outcome, each)
        )
        return Assembled(self.result.flat, todo, _with_failures(outcome, failures), diagnosed)

    def _diagnosis(self, todo: Todo, evidence: Evidence) -> Diagnosis:
        if self._comparison is None:
            return self.diagnose(evidence, None)
        return self.diagnose(evidence, partial(self._comparison.diagnosis, todo, evidence))

    def _with_parent_facts(self, run: CheckRun, root: Path, todo: Todo) -> CheckRun:
        """Return the check with facts that only the parent knows: promises, permissions and changes."""
        # Only failed todos need it.
        from pytest_planverify.session.installation import with_installation, with_promise

        flat = self.result.flat
        todos = (todo, *(each for each in flat.loaded.plan.items if flat.owner(each.id).root == root))
        granted = [glob for each in todos for glob in each.allowed_files or ()]
        granted += [file.path for each in todos for file in each.acceptance_criteria.expected_artifacts]
        changed = self._changes_as_evidence(root, todo)
        if changed:
            base, basis = os.path.relpath(flat.loaded.root, root), run.rests_on
            names = run.read_data if basis is None else basis.files
            read = {os.path.normpath(os.path.join(base, name)) for name in names}
            changed = _with_reads(changed, read, run.evidence, is_complete=basis is not None)
            changed = _with_sides_of_tests(changed, run.evidence)
        evidence: list[Evidence] = []
        for piece in run.evidence:
            extended = with_installation(with_promise(piece, root), root, tuple(dict.fromkeys(granted)))
            evidence.append(extended.model_copy(update=changed))
        return run.model_copy(update={"evidence": tuple(evidence)})

    def _changes_as_evidence(self, root: Path, todo: Todo) -> dict[str, Any]:
        """Return the members of evidence on what the work changed; empty if that is unknown."""
        changes = self.changes[root]
        # A todo that passed before has been broken since then, not since the run's baseline.
        if self.green is not None:
            changes = self.green.changes_since(todo.id, changes) or changes
        if changes not in self._changed:
            facts: dict[str, Any] = {}
            if (files := changed_files(root, changes)) is not None:
                kept = self.baseline if root == self.result.flat.loaded.root else None
                hunks = changes.hunks({each.path: each.side for each in files}, kept)
                facts = {"changed": files, "changed_since": changes.since, "hunks": hunks}
            self._changed[changes] = facts
        return self._changed[changes]

    def _sub_plan_check(self, todo: Todo, children: Sequence[Outcome], blocked: Sequence[str]) -> CheckRun:
        """Return a parent's check, as decided by its sub-plan's todos."""
        verdict = sub_plan_verdict(verdict_of(child) for child in children)
        file = os.path.relpath(self.result.flat.files[todo.id].path, self.result.plan.root)
        check = Check(
            id=CHECK_ID,
            kind=CheckKind.SUB_PLAN,
            verdict=verdict,
            duration_ms=sum(child.metrics.duration_ms or 0 for child in children),
            title=file,
            reason=blocked_reason(blocked) if blocked else sub_plan_reason(children, verdict),
        )
        return CheckRun(check=check)

    def _recorded(self, todo: Todo, runs: Sequence[CheckRun]) -> dict[str, tuple[int | float | str, ...]]:
        """Return all recorded numbers, and any value recorded under the name of a metric in the plan."""
        asked = {
            criterion.spec.name
            for criterion in self.result.plan.criteria[todo.id]
            if isinstance(criterion.spec, MetricSpec)
        }
        found: dict[str, tuple[int | float | str, ...]] = {}
        for name, values in recorded_values(runs).items():
            kept = [_plain(value) for value in values if name in asked or is_number(value)]
            if kept:
                found[name] = tuple(kept)
        return found

    def _failures(self, todo: Todo, diagnosed: Iterable[tuple[Evidence, Diagnosis]]) -> list[Failure]:
        """Return one failure for each root cause, the deciding one first."""
        groups: dict[tuple[str, bool], tuple[Diagnosis, Evidence, dict[str, None]]] = {}
        for evidence, diagnosis in diagnosed:
            signature, compare = diagnosis.signature, self._comparison
            key = signature, compare is not None and compare.failed_alike(todo, evidence, signature)
            first, seen, tests = groups.get(key, (diagnosis, evidence, {}))
            if diagnosis.confidence > first.confidence:  # the same cause, diagnosed with more certainty
                first, seen = diagnosis, evidence
            groups[key] = first, seen, tests | dict.fromkeys(evidence.tests)
        failures: list[Failure] = []
        for (signature, _), (diagnosis, evidence, tests) in groups.items():
            # One cause gives two failures if some of its tests failed before the work and others did
            # not.
            parts = [(Since.UNKNOWN, tuple(tests))]
            if self._comparison is not None:
                primary = todo.parent_id or todo.id
                parts = self._comparison.parts(primary, evidence, signature, tuple(tests))
            failures += [self._failure(todo, diagnosis, evidence, named, since) for since, named in parts]
        return sorted(failures, key=severity_of)

    def _failure(
        self, todo: Todo, diagnosis: Diagnosis, evidence: Evidence, tests: Sequence[str], since: Since
    ) -> Failure:
        agent = diagnosis.target_agent or agent_at(diagnosis.category, diagnosis.owner, diagnosis.location)
        facts: dict[str, Any] = dict(diagnosis)
        facts |= {
            "routing_key": diagnosis.category.facts.routing_key,
            "target_agent": route(diagnosis.category, todo.failure_routing, agent),
            "check_id": evidence.check_id,
            "phase": evidence.phase,
            "top_failing_tests": tuple(tests[:TOP_TESTS]),
            "tests": tuple(tests),
            "since": since,
            "stack_trace_head": evidence.headline,
            "process": evidence.process,
            "rerun": f"pytest --planverify {shlex.quote(f'{self.shown_path}::{todo.id}')}",
            # Of this failure, unlike those of the check: its test may have passed where another failed.
            "runs": len(evidence.confirmations) or None,
            "reds": sum(not each.passed for each in evidence.confirmations) or None,
        }
        return Failure(**facts)


def _with_failures(outcome: Outcome, failures: Iterable[Failure]) -> Outcome:
    """Return the outcome with these failures, of which the first one decides the route."""
    ordered = tuple(failures)
    deciding = ordered[0] if ordered else None
    return outcome.model_copy(update={"failures": ordered, "failure_evidence": deciding})


def todo_state(todo: Todo, verdicts: Sequence[Verdict], *, blocked: bool) -> TodoState:
    """Return the state of a todo from the verdicts of all its criteria."""
    if blocked:
        return TodoState.BLOCKED
    if not verdicts:
        claimed = todo.status is TodoStatus.CLAIMED and not todo.requires_testing and not todo.has_sub_plan
        return TodoState.DONE if claimed else TodoState.PENDING
    if any(verdict.is_red for verdict in verdicts):
        return TodoState.TEST_FAILED
    if all(verdict is Verdict.PASSED for verdict in verdicts):
        return TodoState.DONE
    if all(verdict is Verdict.NOT_RUN for verdict in verdicts):
        return TodoState.PENDING
    return TodoState.TESTING


def summary_of(outcomes: Iterable[Outcome], *, compared: Collection[str] = ()) -> Summary:
    """Return counts of todos by state, criteria by verdict, and tests against a baseline.

    ``compared`` are the ids of plans with a baseline.
    """
    entries = list(outcomes)
    since: dict[Since, int] = {}
    if compared:
        from pytest_planverify.baseline.comparison import count_since

        since = count_since(entry for entry in entries if entry.plan in compared)
    return Summary(
        todos=dict(Counter(entry.state for entry in entries if entry.state is not None)),
        criteria=dict(Counter(check.verdict for entry in entries for check in entry.checks)),
        tests_since=since,
    )


def _tests_passed(runs: Sequence[CheckRun], children: Sequence[Outcome]) -> bool:
    """Return whether a todo's commands passed, those of its sub-plan included; ``False`` without any."""
    commands = [run.check.counts_as is Verdict.PASSED for run in runs if run.check.cmd is not None]
    commands += [
        child.tests_passed
        for child in children
        if any(check.cmd is not None or check.kind is CheckKind.SUB_PLAN for check in child.checks)
    ]
    return bool(commands) and all(commands)


def _plain(value: Any) -> int | float | str:
    with suppress(OverflowError):  # an integer beyond the range of floats
        if is_number(value) and math.isfinite(float(value)):
            return value
    return str(value)


def root_causes(results: Sequence[Assembled]) -> tuple[Cause, ...]:
    """Return the root causes of all failures, most urgent first."""
    if not any(each.diagnosed for each in results):
        return ()
    # Imported late: a passing run needs no causes.
    from pytest_planverify.diagnosis.causes import SeenFailure, find_causes

    depends: dict[tuple[str | None, str], list[tuple[str | None, str]]] = {
        (each.plan_id, each.todo.id): [(each.plan_id, name) for name in each.todo.dependencies]
        for each in results
    }
    seen: list[SeenFailure] = []
    for each in results:
        todo, root = (each.plan_id, each.todo.id), str(each.root)
        old = [
            failure for failure in each.outcome.failures if is_preexisting(each.todo, each.outcome, failure)
        ]
        for evidence, diagnosis in each.diagnosed:
            # One failure may be in two parts, of which one is older than the work.
            named = [failure for failure in old if failure.signature == diagnosis.signature]
            tests = {test for failure in named for test in failure.tests}
            is_old = tests.issuperset(evidence.tests) if evidence.tests else bool(named)
            seen.append(SeenFailure(todo, evidence, diagnosis, root, is_old))
    return find_causes(seen, depends)


def find_outcomes(
    runs: Sequence[SessionRun], opinions: Opinions, *, run_id: str, recording: bool = False
) -> tuple[list[Assembled], tuple[Cause, ...]]:
    """Return the outcomes of all plans in order, and the root causes.

    Writes the failure reports. ``recording``: the run itself is a baseline, so blocked todos have failures
    and no reports are written.
    """
    found: list[Assembled] = []
    for each in runs:
        changes = each.changes[each.loaded.root]
        green = None
        if not recording and changes.under_git:
            green = GreenRevisions(each.loaded.root, each.id)
        results = Assembler(
            result=each.result,
            shown_path=each.shown,
            changes=each.changes,
            diagnose=opinions.diagnose,
            recording=recording,
            baseline=each.baseline,
            green=green,
        ).assemble()
        if green is not None:
            made = (result.outcome for result in results)
            green.note([one.todo_id for one in made if one.success and one.verified], changes)
        found += results
    share_places(found)
    found = list(map(_with_right_suggestions, found))
    causes = root_causes(found)
    if not recording:
        write_reports(found, run_id, causes)
    return found, causes


def share_places(results: list[Assembled]) -> None:
    """Give failures without candidate locations those of another failure with the same signature, in place.

    Equal signatures are one root cause; a test that runs the product in another process shows no
    product frames, while one that calls it directly does.
    """
    best: dict[tuple[Path, str], Diagnosis] = {}

    def placed(root: Path, failure: AnyFailure) -> AnyFailure:
        shown = best.get((root, failure.signature or ""))
        if failure.candidates or shown is None:
            return failure
        return failure.model_copy(update={"location": shown.location, "candidates": shown.candidates})

    for each in results:
        for _, diagnosis in filter(lambda pair: pair[1].candidates, each.diagnosed):
            key = each.root, diagnosis.signature
            # Candidates are sorted by score; of equal ones the first failure's stay.
            best[key] = max(best.get(key, diagnosis), diagnosis, key=lambda it: it.candidates[0].score)
    for number, each in enumerate(results if best else ()):
        failures = (placed(each.root, failure) for failure in each.outcome.failures)
        results[number] = each._replace(
            outcome=_with_failures(each.outcome, failures),
            diagnosed=tuple((piece, placed(each.root, diagnosis)) for piece, diagnosis in each.diagnosed),
        )


def _with_right_suggestions(result: Assembled) -> Assembled:
    """Name the todo in suggestions, and remove those that contradict the file tree or its permissions."""
    outcome, todo = result.outcome, result.todo
    if not outcome.failures:
        return result
    # Imported late: a passing run needs no suggestions.
    from planner.brief.instructions import read_instruction, right_suggestion
    from planner.planfile.source_excerpts import look_up
    from pytest_planverify.diagnosis.rules.criteria import ACCEPT

    files = RootedFiles(result.root)
    accept = ACCEPT.replace("TODO", shlex.quote(outcome.todo_id))
    protected = result.flat.loaded.plan.metadata.protected_files

    def checked(failure: Failure) -> Failure:
        suggestion = (failure.suggestion or "").replace(ACCEPT, accept)
        failure = failure.model_copy(update={"suggestion": suggestion or None})
        instruction = read_instruction(suggestion)
        if not (instruction.makes or instruction.changes):
            return failure
        context = look_up(files, todo.id, failure, result.evidence)
        if right_suggestion(failure, todo, context, protected) is not None:
            return failure
        return failure.model_copy(update={"suggestion": None})

    return result._replace(outcome=_with_failures(outcome, map(checked, outcome.failures)))


def changed_files(root: Path, changes: Changes) -> tuple[ChangedFile, ...] | None:
    """Return the files changed below a root, code first; ``None`` if unknown."""
    from pytest_planverify.observe.project_map import ProjectMap

    files = changes.files_of_work()
    if files is None:
        return None
    project = ProjectMap.discover(root)

    def side(file: str) -> Side | None:
        if not file.endswith(_PYTHON):
            return None
        return Side.TEST if project.is_test(str(root / file)) else Side.PRODUCT

    found = [ChangedFile(path=file, side=side(file)) for file in files]
    # Code first, so that generated data does not take its places.
    return tuple(sorted(found, key=lambda each: (each.side is None, each.path))[:MOST_CHANGED])


def _with_reads(
    facts: dict[str, Any], read: Collection[str], evidence: Sequence[Evidence] = (), *, is_complete: bool
) -> dict[str, Any]:
    """Return facts on changes with a side for data that was read, or that errors name, and unread code.

    ``read`` are paths relative to the root; if it ``is_complete``, nothing else was read. Such data belongs
    to the product, or to the tests below whose folder it lies; settings belong to neither.
    """
    # Imported late: a passing run asks for no side.
    from pytest_planverify.baseline.work_tree import CONFIGURATIONS
    from pytest_planverify.diagnosis.messages import names_file
    from pytest_planverify.session.installation import NATIVE_MODULES, NATIVE_SOURCES

    # What a build made an extension module of was read in its stead.
    sources = NATIVE_SOURCES if any(name.endswith(NATIVE_MODULES) for name in read) else ()
    # What a program reads that a test starts is not observed, but its command may name the file.
    errors = [error for piece in evidence for error in piece.exceptions]
    said = [error.message for error in errors]
    said += [frame.source or "" for error in errors for frame in error.frames]

    def is_read(path: str) -> bool:
        return path in read or path.endswith(sources) or any(names_file(text, path) for text in said)

    def sided(each: AnyChange) -> AnyChange:
        if each.side is not None or each.path in CONFIGURATIONS or not is_read(each.path):
            return each
        return each.model_copy(update={"side": Side.TEST if is_test_path(each.path) else Side.PRODUCT})

    def marked(each: Hunk) -> Hunk:
        # A file that only loses lines may be deleted, so that nobody can read it.
        is_code = each.path.endswith(_PYTHON) and each.added > 0
        is_unread = is_complete and is_code and not is_read(each.path)
        return each.model_copy(update={"is_unread": True}) if is_unread else each

    changed: tuple[ChangedFile, ...] = facts["changed"]
    hunks: tuple[Hunk, ...] = facts["hunks"]
    sides = tuple(map(sided, hunks))
    return {**facts, "changed": tuple(map(sided, changed)), "hunks": tuple(map(marked, sides))}


def _with_sides_of_tests(facts: dict[str, Any], evidence: Sequence[Evidence]) -> dict[str, Any]:
    """Return facts on changes in which what the worker collected tests from is a test, as ``tests.py``."""
    raised = (error for piece in evidence for error in piece.exceptions)
    tests = {frame.path for error in raised for frame in error.frames if frame.side is Side.TEST}

    def sided(each: AnyChange) -> AnyChange:
        return each.model_copy(update={"side": Side.TEST}) if each.path in tests else each

    changed: tuple[ChangedFile, ...] = facts["changed"]
    hunks: tuple[Hunk, ...] = facts["hunks"]
    return {**facts, "changed": tuple(map(sided, changed)), "hunks": tuple(map(sided, hunks))}


def write_reports(results: Iterable[Assembled], run_id: str, causes: Sequence[Cause]) -> None:
    """Write the failure report of each failed todo that is not blocked, and remove that of a passing one.

    All go below the top plan's root, including those of sub-plans with another root.
    """
    for each in results:
        flat, outcome, root = each.flat, each.outcome, each.flat.loaded.root
        name = outcome.todo_id.replace(SEPARATOR, "__")
        if outcome.failure_evidence is not None and not outcome.blocked_by:
            from pytest_planverify.reports.failure_report import failure_report, write_failure_report

            owner = flat.owner(outcome.todo_id)
            plan = replace(flat.loaded, path=owner.path, root=owner.root, digest=owner.digest)
            report = failure_report(outcome, each.evidence, plan=plan, run_id=run_id, causes=causes)
            write_failure_report(report, root=root, name=name)
        elif outcome.success and (root / "diagnostics").is_dir():  # else spare the import
            from pytest_planverify.reports.failure_report import remove_failure_report

            remove_failure_report(each.plan_id, outcome, root=root, name=name)


# -- diagnoses -----------------------------------------------------------------------------------------


HOOK = "pytest_planverify_diagnose"
_LONGEST = 200


class Opinions:
    """Diagnoses the failures of a run, and collects notes about plugins that failed."""

    def __init__(self, pluginmanager: pytest.PytestPluginManager) -> None:
        self._plugins = pluginmanager
        self._notes: dict[str, None] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """One line each on plugins that raised or returned nonsense."""
        return tuple(self._notes)

    def diagnose(self, evidence: Evidence, compared: Compared | None = None) -> Diagnosis:
        """Return the diagnosis of the first plugin that gives one, else that of the rules.

        ``compared`` applies the rules to the evidence, and compares it with the baseline.
        """
        from pytest_planverify.diagnosis import diagnose  # imported late: a passing run needs no rules

        if told := self._ask_plugins(evidence):
            return told
        return diagnose(evidence) if compared is None else compared(diagnose)

    def _ask_plugins(self, evidence: Evidence) -> Diagnosis | None:
        """Return the first diagnosis of a plugin; one that raises or returns nonsense is skipped.

        Implementations are called one by one, as pluggy would not tell which one raised.
        """
        for each in reversed(getattr(self._plugins.hook, HOOK).get_hookimpls()):
            if each.wrapper or each.hookwrapper:  # there is no call that it could surround
                continue
            try:
                answer = each.function(*(evidence for _ in each.argnames))
                if answer is not None:
                    # Validated again, as model_construct() and model_copy() of a plugin check nothing.
                    return Diagnosis.model_validate(dict(answer))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # SystemExit of a plugin would lose the failure
                name = clean(self._plugins.get_name(each.plugin) or "", limit=_LONGEST)
                why = " ".join(clean(f"{type(error).__name__}: {error}", limit=_LONGEST).split())
                self._notes[
                    f"the plugin {name} gave no valid diagnosis in {HOOK} ({why}); "
                    f"fix it, or disable it with -p no:{name}"
                ] = None
        return None
