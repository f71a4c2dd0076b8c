"""From a plan and the outcomes of a run to what comes next.

Each decision stands in a file of its own: :mod:`.halting`, :mod:`.triage`, :mod:`.routing`,
:mod:`.branching`, :mod:`planner.revise`, :mod:`.scheduling`, :mod:`.noticing`. Here they
are asked in their order, and nothing else is decided.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from shlex import quote
from typing import TYPE_CHECKING, Any

from planner.model.decision import (
    Approval,
    BlockedTodo,
    Decisions,
    Move,
    PlanState,
    Progress,
    Repair,
)
from planner.model.edits import QuarantineTest, RecordAttempt
from planner.model.outcome import PlanRef
from planner.model.verdicts import TodoState
from planner.revise.editing import Editing
from planner.revise.preexisting import set_apart
from planner.rules.approving import branch_approval
from planner.rules.board import lay_out
from planner.rules.branching import branch_reason, can_remember, next_branch_id
from planner.rules.halting import halt_of
from planner.rules.noticing import needs, notices
from planner.rules.repairing import Failed, context_edit, propose_branch, revised
from planner.rules.routing import role_for
from planner.rules.scheduling import deferred, ready_todos
from planner.rules.shared_causes import behind_shared_causes
from planner.rules.triage import Ruling, triage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from planner.model.context import FailureContext
    from planner.model.decision import Halt, HumanNeed
    from planner.model.edits import Edit
    from planner.model.outcome import Failure, OutcomeDocument
    from planner.model.plan import Plan, Policy
    from planner.model.taxonomy import Category
    from planner.rules.board import Board, Entry

DECISION_RULES: Mapping[str, str] = {
    "failed-todo-gets-a-branch": "A todo whose criteria failed gets a branch todo, for the role that its "
    "failure is routed to.",
    "deeper-branch": "A branch that passes while its parent is still red is followed by a deeper one.",
    "branch-has-attempts-left": "A branch that is still red is worked on again, up to max_debug_attempts.",
    "branch-under-way": "While a branch is open and unchanged, nothing else is sent to its parent.",
    "branch-limit": "No more than max_concurrent_branches branches are open at once; the others wait.",
    "shared-cause": "Todos that fail by one cause get one branch; the others wait until it is mended.",
    "branch-depth": "Branches are nested no deeper than max_branch_depth; after that a person decides.",
    "attempts-used-up": "A branch that is red after max_debug_attempts attempts goes to a person.",
    "branch-lifetime": "A branch that is red after max_lifetime_seconds goes to a person.",
    "branches-in-a-circle": "Branches that came out of each other in a circle are followed no further.",
    "branch-without-parent": "A red branch of a todo that the plan lacks goes to a person.",
    "pre-existing-failure": "What failed before the work began becomes a todo of its own: no blame.",
    "environment-blames-nobody": "What the environment lacks is no role's work: it is verified later.",
    "harness-blames-nobody": "When the run itself went wrong, nothing is concluded about the work.",
    "inconclusive-is-verified-again": "What a run could not tell is verified again.",
    "demand-proves-nothing": "A demand that no run can prove, whatever the work, goes to a person.",
    "claimed-but-not-run": "A todo that is said to be done and was not run is verified.",
    "question-is-open": "A question of the plan waits for a person's answer.",
    "children-first": "A parent waits for the todos of its sub-plan.",
    "halt-on-violation": "A violation of the sandbox, of hygiene or of the allowed files stops everything.",
    "halt-on-budget": "A budget that is used up stops everything.",
    "many-failed-branches": "More failed branches than notify_after_n_failures: a person hears of it.",
    "revision-conflict": "Where a strategy's edits do not fit the plan, the branch is made without.",
}
"""Every rule that may have decided, each in one sentence."""

_UNDECIDED_ROUTE = "its acceptance criteria failed, and nothing tells more"


def todos_to_explain(
    plan: Plan, document: OutcomeDocument, subs: Mapping[str, Plan] | None = None
) -> tuple[str, ...]:
    """The todos for whose repair instructions will be written: only their files need to be read."""
    board = lay_out(plan, document, subs or {})
    if halt_of(board, document, plan.metadata) is not None:
        return ()
    rulings = behind_shared_causes(triage(board, document.run.finished_at), document.causes)
    waiting = deferred(board, rulings, limit=plan.metadata.max_concurrent_branches)
    return tuple(
        ruling.entry.id
        for ruling in rulings
        if ruling.move in (Move.BRANCH, Move.RETRY) and ruling.entry.id not in waiting
    )


def decide(
    plan: Plan,
    document: OutcomeDocument,
    *,
    contexts: Mapping[str, FailureContext] | None = None,
    subs: Mapping[str, Plan] | None = None,
    approved: Collection[str] = (),
    tools: frozenset[str] = frozenset(),
    since: Mapping[str, str] | None = None,
) -> Decisions:
    """What the outcomes of a run call for. The same facts give the same decisions.

    ``contexts`` are of the todos that :func:`todos_to_explain` names, ``subs`` the loaded sub-plans by the
    qualified id of their parent, ``approved`` what a person agreed to, ``tools`` the type checkers and
    linters that the project is set up for, ``since`` the times since when todos are known to be blocked.
    """
    board = lay_out(plan, document, subs or {})
    halt = halt_of(board, document, plan.metadata)
    ref = _reference(plan, document)
    deciding = _Deciding(board, document, plan.metadata, contexts or {}, approved, tools)
    repairs = _halted(halt, board) if halt is not None else deciding.repairs(plan)
    ready = () if halt is not None else tuple(ready_todos(board))
    wanted = tuple(needs(board, repairs, halt, ref.path, document.run.unexplained))
    return Decisions(
        plan=ref,
        run_id=document.run.run_id,
        decided_at=document.run.finished_at,
        state=_plan_state(board, halt, repairs, bool(ready), wanted, document.run.unexplained is None),
        progress=_progress(board),
        halt=halt,
        repairs=tuple(repairs),
        ready=ready,
        blocked=tuple(
            BlockedTodo(todo_id=name, by=by, since=(since or {}).get(name, document.run.started_at))
            for name, by in board.blocked.items()
        ),
        needs_human=wanted,
        notices=tuple(notices(board, repairs, plan.metadata)),
    )


@dataclass(slots=True)
class _Deciding:
    """Turns rulings into repairs."""

    board: Board
    document: OutcomeDocument
    policy: Policy
    """Of the plan at the top."""
    contexts: Mapping[str, FailureContext]
    approved: Collection[str]
    tools: frozenset[str]
    taken: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """The ids that are used, by sub-plan."""
    quarantined: set[str] = field(default_factory=set[str])
    drafts: dict[str, Editing] = field(default_factory=dict[str, Editing])
    """By sub-plan; each edit that is tried there is taken back."""

    def repairs(self, plan: Plan) -> list[Repair]:
        for entry in self.board.entries.values():
            self.taken.setdefault(entry.within, set()).add(entry.todo.id)
        known = {(within, name) for within, names in self.taken.items() for name in names}
        ruled = triage(self.board, self.document.run.finished_at)
        rulings = behind_shared_causes(ruled, self.document.causes)
        limit = plan.metadata.max_concurrent_branches
        waiting = deferred(self.board, rulings, limit=limit)
        found: list[Repair] = []
        for ruling in rulings:
            apart = set_apart(ruling.entry, ruling.before_the_work, known)
            if ruling.entry.id in waiting:
                because = f"{limit} branches are open at most (max_concurrent_branches); its own waits"
                found.append(
                    self._repair(ruling, apart, move=Move.WAIT, rule="branch-limit", because=because)
                )
            elif ruling.move is Move.BRANCH:
                found.append(self._branch(ruling, apart))
            elif ruling.move is Move.RETRY:
                found.append(self._retry(ruling, apart))
            elif ruling.move is Move.ESCALATE and ruling.attempts:
                found.append(self._repair(ruling, [*apart, *self._attempt(ruling)]))
            else:
                found.append(self._repair(ruling, apart))
        return found

    def _branch(self, ruling: Ruling, apart: Sequence[Edit]) -> Repair:
        entry, failure = ruling.entry, ruling.failure
        assert failure is not None
        taken = self.taken[entry.within]
        proposal = propose_branch(
            self._failed(ruling, failure),
            self._draft(entry),
            branch_id=next_branch_id(entry.todo.id, taken),
            role=role_for(failure, entry.todo),
            depth=ruling.depth,
            via=None if ruling.branch is None else ruling.branch.todo.id,
            rule=ruling.rule,
            because=ruling.because,
            taken=taken,
            keep=self._kept,
        )
        branch = proposal.branch
        taken.add(branch.id)
        approval = branch_approval(
            entry.plan.metadata, entry.sibling(branch.id), self.approved, top=self.policy
        )
        return self._repair(
            ruling,
            [*apart, *proposal.edits],
            branch_id=entry.sibling(branch.id),
            branch=branch,
            approval=approval,
        )

    def _kept(self, edits: Sequence[Edit]) -> list[Edit]:
        """A test is borne by one edit, however many todos it fails."""
        kept: list[Edit] = []
        for edit in edits:
            if isinstance(edit, QuarantineTest):
                if edit.nodeid in self.quarantined:
                    continue
                self.quarantined.add(edit.nodeid)
            kept.append(edit)
        return kept

    def _failed(self, ruling: Ruling, failure: Failure) -> Failed:
        entry = ruling.entry
        assert entry.outcome is not None
        return Failed(
            plan=entry.plan,
            todo=entry.todo,
            outcome=entry.outcome,
            failure=failure,
            context=self.contexts.get(entry.id),
            at=self.document.run.finished_at,
            rerun=self._rerun(entry),
            tools=self.tools,
        )

    def _retry(self, ruling: Ruling, apart: Sequence[Edit]) -> Repair:
        entry, last = ruling.entry, ruling.branch
        assert last is not None
        assert ruling.failure is not None
        failed = self._failed(ruling, ruling.failure)
        edits = [*self._attempt(ruling), context_edit(failed, last.todo)]
        return self._repair(
            ruling,
            [*apart, *edits],
            branch_id=last.id,
            branch=revised(self._draft(entry), edits, last.todo.id),
            role=last.todo.agent_role,
        )

    def _attempt(self, ruling: Ruling) -> Iterator[Edit]:
        last, outcome = ruling.branch, ruling.entry.outcome
        assert last is not None
        if can_remember(last.todo):
            yield RecordAttempt(
                rule=ruling.rule,
                because=ruling.because,
                todo_id=last.todo.id,
                attempts=ruling.attempts,
                signature=None if ruling.failure is None else ruling.failure.signature,
                diff_hash=None if outcome is None else outcome.diff_hash,
            )

    def _rerun(self, entry: Entry) -> str:
        said = None if entry.outcome is None else entry.outcome.failure_evidence
        if said is not None and said.rerun:
            return said.rerun
        place = f"{_reference(entry.plan, self.document).path}::{entry.id}"
        return f"pytest --planverify {quote(place)}"

    def _draft(self, entry: Entry) -> Editing:
        draft = self.drafts.get(entry.within)
        if draft is None:
            draft = self.drafts[entry.within] = Editing(entry.plan)
        return draft

    def _repair(self, ruling: Ruling, edits: Sequence[Edit], **more: Any) -> Repair:
        entry, failure = ruling.entry, ruling.failure
        acts = ruling.move in (Move.BRANCH, Move.RETRY, Move.SEPARATE)
        fields: dict[str, Any] = {
            "todo_id": entry.id,
            "within": entry.within,
            "state": entry.state,
            "move": ruling.move,
            "rule": ruling.rule,
            "because": ruling.because,
            "category": None if failure is None else failure.category,
            "reason": None if failure is None else branch_reason(failure.category),
            "role": role_for(failure, entry.todo) if failure and acts else None,
            "confidence": None if failure is None else failure.confidence,
            "failure": failure,
            "branch_id": None if ruling.branch is None else ruling.branch.id,
            "edits": tuple(edits),
            "blocks": self.board.blocks(entry.id),
        }
        return Repair(**fields | more)


def _halted(halt: Halt, board: Board) -> list[Repair]:
    return [
        Repair(
            todo_id=name,
            within=board.entries[name].within,
            state=board.entries[name].state,
            move=Move.HALT,
            rule=halt.rule,
            because=halt.because,
            category=halt.category,
            failure=_failure_of(board.entries[name], halt.category),
            blocks=board.blocks(name),
        )
        for name in halt.todo_ids
    ]


def _failure_of(entry: Entry, category: Category) -> Failure | None:
    outcome = entry.outcome
    assert outcome is not None
    found = (outcome.failure_evidence, *outcome.failures)
    return next((failure for failure in found if failure and failure.category is category), None)


def _plan_state(
    board: Board,
    halt: Halt | None,
    repairs: Iterable[Repair],
    ready: bool,
    wanted: Sequence[HumanNeed],
    accepted: bool,
) -> PlanState:
    if halt is not None:
        return PlanState.HALTED
    if accepted and all(entry.state is TodoState.DONE for entry in board.primaries()):
        return PlanState.COMPLETED
    going_on = (Move.BRANCH, Move.RETRY, Move.SEPARATE)
    if any(repair.move in going_on and repair.approval is not Approval.NEEDED for repair in repairs):
        return PlanState.REVISING
    if ready or not wanted:
        return PlanState.EXECUTING
    return PlanState.AWAITING_REVIEW


def _progress(board: Board) -> Progress:
    """Of the todos that are no parents."""
    counts = dict.fromkeys(("done", "failed", "blocked", "unfinished"), 0)
    for entry in board.primaries():
        if entry.todo.has_sub_plan:
            continue
        if entry.state is TodoState.DONE:
            counts["done"] += 1
        elif entry.id in board.blocked:
            counts["blocked"] += 1
        elif entry.failed:
            counts["failed"] += 1
        else:
            counts["unfinished"] += 1
    return Progress(**counts, total=sum(counts.values()))


def _reference(plan: Plan, document: OutcomeDocument) -> PlanRef:
    """How the run named the plan."""
    for ref in document.plans:
        if ref.todo_list_id == plan.todo_list_id:
            return ref
    return PlanRef(todo_list_id=plan.todo_list_id, path="plan.yaml", digest="")
