"""Contract criteria: a module's promised interface, compared with its source."""

from __future__ import annotations

from pathlib import Path

from planner.contracts.comparison import compare_contract, read_contract_file
from planner.errors import ContractFileError
from planner.model.contract import ContractDifference
from planner.model.evidence import ContractFact, Evidence, ExceptionFact
from planner.model.verdicts import EvidenceKind, Verdict
from planner.text.sanitizing import clean, one_line
from pytest_planverify.checks.result import Judgement

MAX_REASON = 1_000
"""Limit of a reason, in characters."""


def check_contract(path: str, root: Path, *, check_id: str = "") -> Judgement:
    """Compare a module's source with its contract. Never raises.

    A broken promise is ``failed``, as is a contract that cannot be read. If all differences are ones
    that only running the code could decide, the verdict is ``inconclusive``.
    """
    try:
        differences = compare_contract(read_contract_file(Path(path), root=root), root)
    except (ContractFileError, OSError) as error:
        text = f"the contract {path} cannot be checked: {error}"
        if isinstance(error, ContractFileError):
            text = f"the contract cannot be used: {'; '.join(error.faults)}"
        differences = (ContractDifference(problem="unreadable", message=clean(text, limit=MAX_REASON)),)
    if not differences:
        return Judgement(verdict=Verdict.PASSED)
    first, *others = differences
    names = dict.fromkeys(each.name or each.problem for each in others)
    more = f" (and {len(others)} more: {', '.join(names)})" if others else ""
    return Judgement(
        # Open differences come last, so the first is one only if all are.
        verdict=Verdict.INCONCLUSIVE if first.is_open else Verdict.FAILED,
        reason=one_line(f"{first.message}{more}", limit=MAX_REASON),
        evidence=tuple(_evidence(each, path, check_id) for each in differences),
    )


def _evidence(difference: ContractDifference, path: str, check_id: str) -> Evidence:
    exceptions: tuple[ExceptionFact, ...] = ()
    if difference.exception is not None:  # the syntax error of a module that cannot be parsed
        type_, message = difference.exception
        error = ExceptionFact(
            type=type_,
            qualified=f"builtins.{type_}",
            bases=("builtins.SyntaxError", "builtins.Exception", "builtins.BaseException"),
            message=clean(message, limit=500),
            path=difference.path,
            line=difference.line,
        )
        exceptions = (error,)
    return Evidence(
        kind=EvidenceKind.CONTRACT,
        check_id=check_id,
        headline=difference.message,
        contract_path=path,
        exceptions=exceptions,
        contract=ContractFact(
            path=path,
            function=difference.name,
            problem=difference.problem,
            expected=difference.expected,
            actual=difference.actual,
            why=difference.why,
            module_path=difference.path,
            line=difference.line,
        ),
    )
