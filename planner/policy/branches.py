"""Repair policy: which role acts on a failing todo, how often, and when a branch or a person follows.

The functions decide only; :mod:`planner.engine.repair` carries the decisions out.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.catalog.test_paths import is_test_path
from planner.model.base import report_path
from planner.model.plan import ArtifactSpec, Todo
from planner.model.taxonomy import BranchReason, Category, Owner, Role
from planner.policy.criteria import conventional_command, wants_convention
from planner.text.display import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from planner.model.outcome import Failure, Location, Outcome
    from planner.model.plan import Policy
    from planner.model.taxonomy import RoutingKey

_MAX_STEM = 185
"""Number of characters of a todo's id that its branch ids repeat: an id has at most 200 characters."""

_SHARED = (
    *("verify", "test_command", "test_file", "contract_path", "allowed_files"),
    *("risk_level", "failure_routing", "timeout_seconds", "priority"),
)
"""Fields that a branch has from its parent, beside the acceptance criteria."""


def branch_reason(category: Category) -> BranchReason:
    """Return the reason of a branch for a failure category.

    It is ``test_failure`` for a category without a routing key.
    """
    key = category.facts.routing_key
    return BranchReason.TEST_FAILURE if key is None else BranchReason(key.value)


def next_branch_id(todo_id: str, made: int, is_taken: Callable[[str], bool]) -> str:
    """Return the next free id ``{todo}_branch_{nn}`` of a todo that has ``made`` branches already."""
    names = (f"{todo_id[:_MAX_STEM]}_branch_{number:02d}" for number in count(made + 1))
    return next(name for name in names if not is_taken(name))


def attempts_of(reason: BranchReason | None, policy: Policy) -> int:
    """Return the number of attempts of a branch that does not state it itself."""
    # A limit of their own, as flaky tests pass by chance if they are tried often enough.
    if reason is BranchReason.FLAKY_TEST:
        return policy.flaky_retry.attempts
    return policy.max_debug_attempts


def retries_of(todo: Todo, failure: Failure | None) -> int:
    """Return the number of retries by the same role."""
    limit = todo.max_retries
    # Further turns of work without a known fault are wasted.
    return min(limit, 1) if failure is not None and failure.category is Category.UNKNOWN else limit


class RedTodo(NamedTuple):
    """Facts about a failing todo that decide its repair."""

    id: str
    """Qualified by its parents."""
    todo: Todo
    failure: Failure
    retries: int
    """Number of retries by the same role so far."""
    by_person: bool
    """The failed turn of work was granted by a person."""
    passed_branch: str | None
    """Id of the latest branch, if it passed while the todo still fails."""
    depth: int
    """Depth of that branch."""


class Repair(NamedTuple):
    """A repair decision: kind (``retry``, ``branch``, ``ask`` or ``give_up``), rule and reason."""

    kind: str
    rule: str
    because: str


def decide_repair(red: RedTodo, policy: Policy) -> Repair:
    """Decide the repair of a failing todo: retries by its role, then a branch, deeper branches, a person.

    A deeper branch follows one that passed while the todo still fails. An inserted step gets no branch:
    it is given up. A person is asked if a limit of the policy is reached, and at once if the failed turn
    of work was granted by a person.
    """
    # First: whoever granted the turn decides again, even if retries are left.
    if red.by_person:
        return Repair("ask", "attempts-used-up", "the extra turn that a person granted did not repair it")
    if red.passed_branch is not None:
        rule, reason = "deeper-branch", f"{red.passed_branch} passed, but {red.id} still fails"
    else:
        rule, reason = "failed-todo-gets-a-branch", "its criteria failed"
        limit = retries_of(red.todo, red.failure)
        if red.retries < limit:
            reason += f"; retry {red.retries + 1} of {limit}"
            return Repair("retry", "retry-by-the-same-role", reason)
        # A step is itself part of a repair; its branch is given up with it, and a person decides.
        if red.todo.is_temporary:
            return Repair("give_up", "step-failed", reason)
        reason += f" after {counted(red.retries, 'retry')}" if red.retries else ""
    if red.depth >= policy.max_branch_depth:
        reason += f"; a branch for it would have depth {red.depth + 1}"
        return Repair("ask", "branch-depth", f"{reason}, and max_branch_depth is {policy.max_branch_depth}")
    if attempts_of(branch_reason(red.failure.category), policy) < 1:
        return Repair("ask", "attempts-used-up", f"{reason}; the plan allows no attempts for such a repair")
    return Repair("branch", rule, reason)


def branch_todo(
    parent: Todo,
    outcome: Outcome,
    policy: Policy,
    *,
    branch_id: str,
    failure: Failure,
    role: Role,
    after: Todo | None,
) -> Todo:
    """Return a new branch todo, which reuses all criteria of its parent.

    ``after`` is the previous branch, which passed while the parent still fails.
    """
    reason = branch_reason(failure.category)
    attempts = attempts_of(reason, policy)
    wanted = parent.acceptance_criteria
    report = ArtifactSpec(path=report_path(parent.id))  # for the worker to read
    fields: dict[str, Any] = {name: getattr(parent, name) for name in _SHARED} | {
        "id": branch_id,
        "parent_id": parent.id,
        # A title has at most 10,000 characters in a plan file.
        "title": f"Repair {parent.title} ({reason.replace('_', ' ')})"[:10_000],
        "agent_role": role,
        "target_agent_role": role,
        "branch_reason": reason,
        "branch_depth": 1 if after is None else (after.branch_depth or 1) + 1,
        "via": None if after is None else after.id,
        "acceptance_criteria": wanted.model_copy(
            update={"expected_artifacts": (*wanted.expected_artifacts, report)}
        ),
        "is_temporary": True,
        "max_debug_attempts": min(attempts, 1) if failure.category is Category.UNKNOWN else attempts,
        "max_lifetime_seconds": policy.branch_timeout_seconds,
    }
    if wants_convention(parent):
        # Stated, as a command derived from the branch's own id would differ.
        ran = (check.cmd for check in outcome.checks if check.id == "convention")
        fields["test_command"] = next(ran, None) or conventional_command(parent)
    # Unset rather than null: the plan file gets only the keys that are set.
    return Todo.model_validate({name: value for name, value in fields.items() if value not in (None, {})})


def approval_setting(policy: Policy, top: Policy) -> str | None:
    """Return the setting by which a branch needs approval, ``None`` if it needs none.

    The branch is one of a plan with this policy, below the plan with the policy ``top``.
    ``require_planner_approval`` in either of them always requires it. Otherwise ``auto_fix_mode`` or
    ``auto_approve_branches`` of its own plan suffices to continue without asking.
    """
    if policy.require_planner_approval is True or top.require_planner_approval is True:
        return "require_planner_approval: true"
    return None if policy.auto_fix_mode or policy.auto_approve_branches else "auto_fix_mode: false"


def route(
    category: Category,
    failure_routing: Mapping[RoutingKey | Category, Role],
    diagnosed: Role | None = None,
) -> Role:
    """Return the role that acts on a failure category under a todo's routing.

    The first match counts: the todo's entry for the category; the category's own default, if it overrides
    that of its routing key; the todo's entry for the routing key; the default. ``diagnosed``, the role
    named by a diagnosis, replaces both defaults.
    """
    facts = category.facts
    default = diagnosed or facts.default_role
    if category in failure_routing:
        return failure_routing[category]
    if facts.routing_key is None or facts.overrides_key:
        return default
    return failure_routing.get(facts.routing_key, default)


def role_for(failure: Failure, todo: Todo) -> Role:
    """Return the role that acts on a diagnosed failure of a todo, under the todo's routing."""
    diagnosed = failure.target_agent or agent_at(failure.category, failure.owner, failure.location)
    return route(failure.category, todo.failure_routing, diagnosed)


def agent_at(category: Category, owner: Owner | None, location: Location | None) -> Role | None:
    """Return the role that may edit the place at fault if the category's default role may not.

    Returns ``None`` if the default role applies.
    """
    # A coder, the default role, must not edit tests.
    if category.facts.default_role is Role.CODER and owner is Owner.TEST:
        return Role.TESTER
    # The tester, its default role, must not edit the product.
    in_product = location is not None and not is_test_path(location.path)
    return Role.CODER if category is Category.TEST_TIMEOUT and in_product else None
