"""What the contract of a todo promises for a function that a test could not call."""

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
    """The evidence with the promised signature, if a call failed and the contract names what was called."""
    callee = _callee(evidence)
    if callee is None or evidence.contract_path is None or evidence.promised is not None:
        return evidence
    # Only such a failure pays for reading the contract.
    from planner.edges.contracts.file import read_contract_file
    from planner.errors import ContractFileError
    from planner.rules.contracts.signatures import render_signature

    try:
        contract = read_contract_file(Path(evidence.contract_path), root=root)
    except ContractFileError:
        return evidence  # the criterion that compares the contract says what is wrong with it
    promised = _promises(contract).get(callee)
    if promised is None:
        return evidence
    signature = clean(f"{callee}{render_signature(promised)}", limit=MAX_SIGNATURE)
    return evidence.model_copy(update={"promised": signature})


def _callee(evidence: Evidence) -> str | None:
    """The function that the first exception is about, if it is a call that does not fit."""
    if not evidence.exceptions or evidence.exceptions[0].qualified != "builtins.TypeError":
        return None
    return callee_of(evidence.exceptions[0].message)


def _promises(contract: Contract) -> dict[str, FunctionContract]:
    functions = {each.name: each for each in contract.functions}
    methods = {f"{each.name}.{one.name}": one for each in contract.classes for one in each.methods}
    return {**functions, **methods}
