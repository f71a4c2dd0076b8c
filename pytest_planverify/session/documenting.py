"""From the plans of a run that is over to its outcome document, and the failure reports beside it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from planner.model.outcome import OutcomeDocument
from planner.model.verdicts import TodoState
from planner.planfile.tree import SEPARATOR
from pytest_planverify.session.assembling import Assembler, summary_of
from pytest_planverify.session.exit_status import ExitStatus, counting, exit_status
from pytest_planverify.session.root_causes import root_causes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from planner.model.evidence import Evidence
    from planner.model.outcome import Cause, Outcome, RunInfo
    from planner.model.plan import Todo
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.options import Scope
    from pytest_planverify.session.opinions import Opinions
    from pytest_planverify.session.prepare import Prepared
    from pytest_planverify.session.root_causes import Diagnosed


FailedTodo = tuple["FlatPlan", "Outcome", tuple["Evidence", ...]]
"""What a failure report is written of."""


class Longreprs(dict[tuple[str, str, str], list[tuple[str, str]]]):
    """Titles and texts of pytest's own failure reports, by plan, todo and check."""


@dataclass(slots=True)
class Found:
    """All that a run found."""

    causes: tuple[Cause, ...] = ()
    """Of all failures, the first to mend first."""
    outcomes: list[Outcome] = field(default_factory=list["Outcome"])
    longreprs: Longreprs = field(default_factory=Longreprs)
    todos: dict[tuple[str | None, str], Todo] = field(default_factory=dict[tuple[str | None, str], "Todo"])
    """By plan and id."""
    unasked: frozenset[tuple[str | None, str]] = frozenset()
    """Todos that nobody asked for, and that only keep their last verdicts."""
    unexplained: frozenset[str] = frozenset()
    """The plans of which a session failed for no test's reason."""

    def of(self, plan_ids: Collection[str]) -> Found:
        """What was found of some of the plans."""
        return replace(
            self,
            causes=tuple(each for each in self.causes if any(todo.plan in plan_ids for todo in each.todos)),
            outcomes=[outcome for outcome in self.outcomes if outcome.plan in plan_ids],
            unexplained=self.unexplained & frozenset(plan_ids),
        )

    def status(self, scope: Scope, *, interrupted: bool) -> ExitStatus:
        """The exit status that follows."""
        counted = counting(self.outcomes, self.todos, scope, self.unasked)
        return exit_status(counted, interrupted=interrupted, unexplained=bool(self.unexplained))


def find_outcomes(
    prepared: Sequence[Prepared],
    opinions: Opinions,
    *,
    run_id: str,
    recording: bool = False,
) -> Found:
    """The outcome of each todo, and the causes of all failures; a failed one's report is written, that of
    one that is green now is removed.

    ``recording`` is of a run that is made to be compared with: it has the failures of blocked todos as
    well, and no reports.
    """
    found = Found()
    diagnosed: list[Diagnosed] = []
    failed: list[FailedTodo] = []
    for each in prepared:
        if each.run.result.unexplained is not None:
            found.unexplained |= {each.plan.plan.todo_list_id}
        found.todos |= {(each.plan.plan.todo_list_id, todo.id): todo for todo in each.todos}
        found.unasked |= {
            (each.plan.plan.todo_list_id, todo.id) for todo in each.todos if todo.id not in each.asked
        }
        assembler = Assembler(
            each.run.result,
            shown_path=each.shown,
            changes=each.changes,
            first_opinion=opinions.below(each.folder.home),
            recording=recording,
            baseline=each.baseline,
        )
        for outcome, evidence in assembler.outcomes():
            found.outcomes.append(outcome)
            _keep_texts(found, each, outcome, evidence)
            if outcome.failure_evidence is not None and not outcome.blocked_by and not recording:
                failed.append((each.flat, outcome, evidence))
            elif outcome.success and outcome.state is TodoState.DONE and not recording:
                _remove_report(each.flat, outcome)
        diagnosed.append((each.flat, assembler.diagnosed))
    found.causes = root_causes(diagnosed, found.todos)
    write_reports(failed, run_id, found.causes)
    return found


def document_of(prepared: Sequence[Prepared], found: Found, run: RunInfo) -> OutcomeDocument:
    """The document as it is written to the outcome file."""
    return OutcomeDocument(
        plans=tuple(each.reference for each in prepared),
        run=run,
        summary=summary_of(
            found.outcomes,
            compared=[each.plan.plan.todo_list_id for each in prepared if each.baseline is not None],
        ),
        outcomes=tuple(found.outcomes),
        causes=found.causes,
    )


def _keep_texts(found: Found, each: Prepared, outcome: Outcome, evidence: Sequence[Evidence]) -> None:
    for piece in evidence:
        if piece.longrepr:
            key = (each.plan.plan.todo_list_id, outcome.todo_id, piece.check_id)
            texts = found.longreprs.setdefault(key, [])
            texts.append((piece.nodeid or piece.check_id, piece.longrepr))


def write_reports(failed: Iterable[FailedTodo], run_id: str, causes: Sequence[Cause]) -> None:
    """Below the top plan's root, also for a sub-plan with another: one place to look for them all."""
    known = None
    for flat, outcome, evidence in failed:
        from pytest_planverify.reports.failure_report import failure_report, write_failure_report
        from pytest_planverify.reports.reported_causes import KnownCauses

        known = known or KnownCauses(causes)
        owner = flat.owner(outcome.todo_id)
        plan = replace(flat.loaded, path=owner.path, root=owner.root, digest=owner.digest)
        write_failure_report(
            failure_report(outcome, evidence, plan=plan, run_id=run_id, causes=known),
            root=flat.loaded.root,
            name=_report_name(outcome),
        )


def _remove_report(flat: FlatPlan, outcome: Outcome) -> None:
    if (flat.loaded.root / "diagnostics").is_dir():  # else there is nothing to import this for
        from pytest_planverify.reports.failure_report import remove_failure_report

        plan_id = flat.loaded.plan.todo_list_id
        remove_failure_report(plan_id, outcome, root=flat.loaded.root, name=_report_name(outcome))


def _report_name(outcome: Outcome) -> str:
    return outcome.todo_id.replace(SEPARATOR, "__")
