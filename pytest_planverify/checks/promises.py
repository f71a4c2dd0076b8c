"""Promised and actual signature of a function that a test could not call."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.text.python_messages import callee_of
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.evidence import Evidence, Frame

MAX_SIGNATURE = 500


def with_promise(evidence: Evidence, root: Path) -> Evidence:
    """The evidence with the promised and the actual signature, if a call failed and they can be had.

    The one is read from the todo's contract, the other from the source of the product.
    """
    # Only the first exception is asked, if it is about a call that does not fit.
    first = evidence.exceptions[0] if evidence.exceptions else None
    is_call = first is not None and first.qualified == "builtins.TypeError"
    callee = callee_of(first.message) if first is not None and is_call else None
    if callee is None:
        return evidence
    told = {
        "promised": evidence.promised or _promised(callee, evidence.contract_path, root),
        "actual_signature": evidence.actual_signature or actual_signature(callee, evidence.subjects, root),
    }
    return evidence.model_copy(update=told) if any(told.values()) else evidence


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
    functions = {each.name: each for each in contract.functions}
    methods = {f"{each.name}.{one.name}": one for each in contract.classes for one in each.methods}
    promised = {**functions, **methods}.get(callee)
    if promised is None:
        return None
    return clean(f"{callee}{render_signature(promised)}", limit=MAX_SIGNATURE)


def actual_signature(callee: str, subjects: Sequence[Frame], root: Path) -> str | None:
    """``compute_rsi(series, period=14)`` as the product's source has it, read but never run.

    ``subjects`` tell which files define what the test used; those of functions or classes of the callee's
    name are read first. ``None`` where the source does not tell: no such definition there, one under a
    condition, or a decorator that may change it.
    """
    from griffe import Kind

    from planner.contracts.signatures import render_signature
    from planner.contracts.source import (
        ModuleProblem,
        ModuleReader,
        describe_function,
        members,
        uncertainty,
    )

    *classes, name = callee.split(".")
    first = (*classes, name)[0]
    named = sorted(subjects, key=lambda frame: frame.function.split(".")[0] != first)
    reader = ModuleReader(root)
    for path in dict.fromkeys(frame.path for frame in named):
        module = path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        try:
            owner: Any = reader.read(module)
        except (ModuleProblem, OSError):
            continue
        for each in classes:
            owner = None if owner is None or uncertainty(owner, each) else owner.members.get(each)
            owner = owner if owner is not None and owner.is_class else None
        if owner is None or uncertainty(owner, name):
            continue
        if name in members(owner, Kind.CLASS):
            return f"{callee}()"  # only a class without a constructor is named itself
        if name in members(owner, Kind.FUNCTION):
            found = describe_function(owner.members[name])
            if found.strange_decorator is not None:
                return None
            return clean(f"{callee}{render_signature(found.bound)}", limit=MAX_SIGNATURE)
    return None
