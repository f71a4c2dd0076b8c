"""From a failed todo to its repair: who acts, how often, whether a branch is made, what it looks like."""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field, ValidationError

from planner.catalog.test_paths import is_test_path
from planner.model.base import ReadValue
from planner.model.failure_report import report_path
from planner.model.plan import AcceptanceCriteria, ArtifactSpec, Todo
from planner.model.taxonomy import BranchReason, Category, Owner, Role
from planner.policy.criteria import conventional_command, wants_convention
from planner.text.display import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from planner.model.outcome import Failure, Location, Outcome
    from planner.model.plan import Policy
    from planner.model.taxonomy import RoutingKey

MEMORY = "x-planner"
"""The key of a branch under which the planner remembers what was tried."""

_LONGEST_STEM = 185
"""Of a todo's id, so much stands in the ids of its branches: an id has at most 200 characters."""

RETRIED_ONCE = frozenset((Category.UNKNOWN,))
"""Categories whose branch has one attempt only."""


class Tried(ReadValue):
    """The history of a branch."""

    opened_at: str | None = None
    attempts: int = Field(default=0, ge=0)
    signature: str | None = None
    diff_hash: str | None = None


def tried(branch: Todo) -> Tried:
    """Return what a branch remembers; whatever is not as it should be is passed over."""
    try:
        return Tried.model_validate(branch.extensions.get(MEMORY, {}))
    except ValidationError:
        return Tried()


def branch_reason(category: Category) -> BranchReason:
    """Return the routing key of a category, ``test_failure`` where it has none."""
    key = category.facts.routing_key
    return BranchReason.TEST_FAILURE if key is None else BranchReason(key.value)


def next_branch_id(todo_id: str, own: Iterable[str], is_taken: Callable[[str], bool]) -> str:
    """Return the first free id ``{todo}_branch_{nn}`` after those of the todo's ``own`` branches."""
    prefix = f"{todo_id[:_LONGEST_STEM]}_branch_"
    # A longer number was not counted by anybody, and one more would not fit.
    numbers = (name.removeprefix(prefix) for name in own if name.startswith(prefix))
    last = max((int(each) for each in numbers if re.fullmatch("[0-9]{1,7}", each)), default=0)
    names = (f"{prefix}{number:02d}" for number in count(last + 1))
    return next(name for name in names if not is_taken(name))


def attempts_of(reason: BranchReason | None, policy: Policy) -> int:
    """Return how many attempts a branch has that does not say so itself.

    A flaky test is green by chance if it is only tried often enough: its repair has a number of its own.
    """
    if reason is BranchReason.FLAKY_TEST:
        return policy.flaky_retry.attempts
    return policy.max_debug_attempts


def retries_of(todo: Todo, failure: Failure | None) -> int:
    """Return how many retries by the same role a todo has; an unknown failure is retried once."""
    limit = todo.max_retries
    return min(limit, 1) if failure is not None and failure.category in RETRIED_ONCE else limit


class RedTodo(NamedTuple):
    """Facts that decide about the repair of a todo whose criteria do not hold."""

    id: str
    """Qualified by its parents."""
    todo: Todo
    failure: Failure
    retries: int
    by_person: bool
    """The turn that failed was granted by a person."""
    passed_branch: str | None
    """The id of the last branch, which passed while the todo stayed red."""
    depth: int
    """Of that branch."""


class Repair(NamedTuple):
    """The repair of a red todo: ``retry``, ``branch``, ``ask`` a person, or ``give_up``; and why."""

    kind: str
    rule: str
    because: str


def decide_repair(red: RedTodo, policy: Policy) -> Repair:
    """Decide how a todo is repaired: by the same role, then by ever deeper branches, then by a person."""
    said, limit = "its criteria do not hold", retries_of(red.todo, red.failure)
    attempts = attempts_of(branch_reason(red.failure.category), policy)
    if red.by_person:
        return Repair("ask", "attempts-used-up", "the turn that a person has granted did not mend it")
    if red.passed_branch is not None:
        said = f"{red.passed_branch} passed and {red.id} is still red"
        if attempts < 1:
            said += "; the plan allows no attempts at such a repair"
            return Repair("ask", "attempts-used-up", said)
        if red.depth + 1 > policy.max_branch_depth:
            said += f"; a deeper branch would have depth {red.depth + 1}"
            return Repair(
                "ask", "branch-depth", f"{said}, and max_branch_depth is {policy.max_branch_depth}"
            )
        return Repair("branch", "deeper-branch", said)
    if red.retries < limit:
        return Repair("retry", "retry-by-the-same-role", f"{said}; retry {red.retries + 1} of {limit}")
    if red.todo.is_temporary:
        return Repair("give_up", "step-failed", said)
    if policy.max_branch_depth < 1:
        return Repair("ask", "branch-depth", "the plan allows no branches (max_branch_depth is 0)")
    if attempts < 1:
        return Repair("ask", "attempts-used-up", "the plan allows no attempts at a repair")
    said += f" after {counted(red.retries, 'retry')}" if red.retries else ""
    return Repair("branch", "failed-todo-gets-a-branch", said)


def branch_todo(
    parent: Todo,
    outcome: Outcome,
    policy: Policy,
    *,
    branch_id: str,
    failure: Failure,
    role: Role,
    after: Todo | None,
    opened_at: str,
) -> Todo:
    """Return the branch todo as it is before any edit: it reuses all criteria of its parent.

    ``after`` is the branch before it, which passed while the parent stayed red.
    """
    reason = branch_reason(failure.category)
    attempts = attempts_of(reason, policy)
    memory = Tried(opened_at=opened_at, signature=failure.signature, diff_hash=outcome.diff_hash)
    fields: dict[str, Any] = {
        "id": branch_id,
        "parent_id": parent.id,
        "title": f"Repair {parent.title} ({reason.replace('_', ' ')})"[:10_000],
        "agent_role": role,
        "target_agent_role": role,
        "branch_reason": reason,
        "branch_depth": 1 if after is None else (after.branch_depth or 1) + 1,
        "via": None if after is None else after.id,
        "acceptance_criteria": _criteria(parent),
        "verify": parent.verify,
        "test_command": parent.test_command or _conventional(parent, outcome),
        "test_file": parent.test_file,
        "contract_path": parent.contract_path,
        "allowed_files": parent.allowed_files,
        "risk_level": parent.risk_level,
        "failure_routing": parent.failure_routing or None,
        "is_temporary": True,
        "max_debug_attempts": min(attempts, 1) if failure.category in RETRIED_ONCE else attempts,
        "max_lifetime_seconds": policy.branch_timeout_seconds,
        "timeout_seconds": parent.timeout_seconds,
        "priority": parent.priority,
        "extensions": {MEMORY: {name: held for name, held in memory if held not in (None, "")}},
    }
    return Todo.model_validate({name: held for name, held in fields.items() if held is not None})


def _criteria(parent: Todo) -> AcceptanceCriteria:
    """Return the parent's criteria, and the report of its failure, which informs and is no criterion."""
    wanted = parent.acceptance_criteria
    report = ArtifactSpec(path=report_path(parent.id))
    return wanted.model_copy(
        update={"expected_artifacts": (*wanted.expected_artifacts, report)},
    )


def _conventional(parent: Todo, outcome: Outcome) -> str | None:
    """Return the command that a convention gave to the parent: the branch's own id would lead elsewhere."""
    if not wants_convention(parent):
        return None
    said = next((check.cmd for check in outcome.checks if check.id == "convention"), None)
    return said or conventional_command(parent)


def needs_approval(policy: Policy, top: Policy) -> bool:
    """Return whether a branch needs approval under the policy of its plan and that of the plan at the top.

    With ``auto_fix_mode`` a branch is made without asking, unless ``require_planner_approval`` is set: that
    always asks, in sub-plans too. ``auto_approve_branches`` answers where nothing insists on a person.
    """
    if policy.require_planner_approval is True or top.require_planner_approval is True:
        return True
    return not policy.auto_fix_mode and not policy.auto_approve_branches


def route(
    category: Category,
    failure_routing: Mapping[RoutingKey | Category, Role],
    diagnosed: Role | None = None,
) -> Role:
    """Return who acts on a failure of that category, under the routing of its todo. The first that answers:

    the todo's entry for the category; the category's own default, where it differs from that of its key;
    the todo's entry for the key; the default. The role that a diagnosis names takes the place of both
    defaults.
    """
    facts = category.facts
    default = diagnosed or facts.default_role
    if category in failure_routing:
        return failure_routing[category]
    if facts.routing_key is None or facts.overrides_key:
        return default
    return failure_routing.get(facts.routing_key, default)


def role_for(failure: Failure, todo: Todo) -> Role:
    """Return who acts on a diagnosed failure: what the diagnosis says, where the todo does not."""
    diagnosed = failure.target_agent or agent_at(failure.category, failure.owner, failure.location)
    return route(failure.category, todo.failure_routing, diagnosed)


def agent_at(category: Category, owner: Owner | None, location: Location | None) -> Role | None:
    """Return who may touch the place at fault, where the default of the category may not.

    A timeout goes to the tester, who must not edit the product in which it was ended; a test that fails by
    itself goes to the coder, who must not edit tests.
    """
    if category is Category.TEST_REGRESSION and owner is Owner.TEST:
        return Role.TESTER
    in_product = location is not None and not is_test_path(location.path)
    return Role.CODER if category is Category.TEST_TIMEOUT and in_product else None
