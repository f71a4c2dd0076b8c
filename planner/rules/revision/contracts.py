"""When code and contract differ: the contract is settled in a step before the branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.edits import AddContract
from planner.model.taxonomy import Role
from planner.rules.criteria import wants_convention
from planner.rules.revision.facts import observed, quoted
from planner.rules.revision.files import below_root
from planner.rules.revision.steps import add_step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.edits import Edit
    from planner.model.evidence import ContractFact
    from planner.rules.revision.situation import Situation


_READ = frozenset({"missing_module", "missing_function", "signature", "unresolved"})
"""What can be said of a contract that was found and read."""


def after_spec_mismatch(situation: Situation) -> Iterator[Edit]:
    """Adds a step in which the architect settles the contract, and binds a todo that names none to it."""
    todo = situation.todo
    fact = _fact(situation)
    path = (
        todo.contract_path
        or below_root(fact.path if fact else None)
        or f"contracts/{todo.id}_contract.json"
    )
    what = _mismatch(situation, fact)
    yield from add_step(
        situation,
        rule="contract-settled-first",
        because=f"code and callers differ in what was agreed: {what}",
        title=f"Settle the contract of {todo.title}",
        task="CONTRACT",
        hint=f"{'Reconcile' if todo.contract_path else 'Write'} {path} so that it says what the tests and "
        f"the callers rely on: {what}. The code is brought in line with it afterwards.",
        role=Role.ARCHITECT,
        target_file=path,
        # Of a contract that is there already, its being there would prove nothing.
        artifacts=() if fact is not None and fact.problem in _READ else (path,),
        allowed_files=(path,),
    )
    if situation.branch is None or todo.contract_path is not None or wants_convention(todo):
        return
    yield AddContract(
        rule="contract-binds-todo",
        because=f"no contract of {todo.id} says what was promised, so nothing kept the two sides together",
        requires_approval=True,
        todo_id=todo.id,
        contract_path=path,
    )


def _fact(situation: Situation) -> ContractFact | None:
    return next((each.contract for each in observed(situation) if each.contract is not None), None)


def _mismatch(situation: Situation, fact: ContractFact | None) -> str:
    failure = situation.failure
    if fact is not None and fact.expected and fact.actual:
        name = quoted(fact.function or "the signature")
        return f"{name} is promised as {quoted(fact.expected)} and found as {quoted(fact.actual)}"
    return quoted(failure.stack_trace_head or failure.suggestion or failure.because or "the two sides")
