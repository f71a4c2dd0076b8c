"""What is promised for a function that a test could not call, and what its source has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from planner.text.python_messages import callee_of
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from planner.model.contract import Contract, FunctionContract
    from planner.model.evidence import Evidence

MAX_SIGNATURE = 500


def with_promise(evidence: Evidence, root: Path) -> Evidence:
    """The evidence with the promised and the actual signature, if a call failed and they can be had.

    The one is read from the todo's contract, the other from the source of the product.
    """
    callee = _callee(evidence)
    if callee is None:
        return evidence
    told = {
        "promised": evidence.promised or _promised(callee, evidence.contract_path, root),
        "actual_signature": evidence.actual_signature or _actual(callee, evidence, root),
    }
    return evidence.model_copy(update=told) if any(told.values()) else evidence


def _callee(evidence: Evidence) -> str | None:
    """The function that the first exception is about, if it is a call that does not fit."""
    if not evidence.exceptions or evidence.exceptions[0].qualified != "builtins.TypeError":
        return None
    return callee_of(evidence.exceptions[0].message)


def _promised(callee: str, contract_path: str | None, root: Path) -> str | None:
    if contract_path is None:
        return None
    # Only such a failure pays for reading the contract.
    from planner.contracts.file import read_contract_file
    from planner.contracts.signatures import render_signature
    from planner.errors import ContractFileError

    try:
        contract = read_contract_file(Path(contract_path), root=root)
    except ContractFileError:
        return None  # the criterion that compares the contract says what is wrong with it
    promised = _promises(contract).get(callee)
    if promised is None:
        return None
    return clean(f"{callee}{render_signature(promised)}", limit=MAX_SIGNATURE)


def _actual(callee: str, evidence: Evidence, root: Path) -> str | None:
    if not evidence.subjects:
        return None
    from pytest_planverify.checks.actual import actual_signature

    actual = actual_signature(callee, evidence.subjects, root)
    return None if actual is None else clean(actual, limit=MAX_SIGNATURE)


def _promises(contract: Contract) -> dict[str, FunctionContract]:
    functions = {each.name: each for each in contract.functions}
    methods = {f"{each.name}.{one.name}": one for each in contract.classes for one in each.methods}
    return {**functions, **methods}
