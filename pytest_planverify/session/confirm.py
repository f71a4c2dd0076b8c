"""Confirmation of a red: its command once more, cold and alone.

The same answer makes the red deterministic, another makes it flaky. Where chance is in the code, a few more
runs decide. A hang is not confirmed by hanging again. The evidence stays that of the first run.
"""

from __future__ import annotations

import ast
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from planner.model.evidence import Confirmation
from planner.model.verdicts import EvidenceKind, Side, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from planner.model.evidence import Evidence
    from pytest_planverify.checks.result import Judgement

_MORE_CHANCE = frozenset(
    {"monotonic", "perf_counter", "sleep", "getpid", "set", "frozenset", "hash", "id"}
    | {"Thread", "ThreadPoolExecutor", "gather", "as_completed"}
)
"""What gives another answer each time though it is no call that the rules for plans know."""
_LARGEST = 1 << 20


@dataclass(slots=True)
class ConfirmationBudget:
    """Seconds that all confirmations of a run have together; what could not be confirmed is told."""

    seconds: float = 900.0
    spent: float = 0.0
    refused: int = 0

    def allows(self) -> bool:
        """Return whether another confirmation may start; count a refusal."""
        if self.spent < self.seconds:
            return True
        self.refused += 1
        return False


def is_worth_confirming(judgement: Judgement) -> bool:
    """Return whether a second look may change a red.

    It cannot where a file does not exist, where something was reached for already, or where records of the
    run were touched; and a hang would only cost its limit again.
    """
    if not judgement.is_red or not judgement.evidence:
        return False
    settled = (EvidenceKind.SANDBOX, EvidenceKind.HYGIENE)
    if any(each.kind in settled or each.timed_out or each.swallowed_timeout for each in judgement.evidence):
        return False
    return not all(
        each.selectors and all(selector.problem == "missing_file" for selector in each.selectors)
        for each in judgement.evidence
    )


def confirm(
    first: Judgement,
    again: Callable[[], Judgement],
    *,
    most: int,
    budget: ConfirmationBudget,
    root: Path,
    company: bool = False,
) -> Judgement:
    """Settle a red. ``again`` runs the command once more; it is asked once, or up to ``most`` times.

    ``company`` says that other criteria ran at the same time as the first run.
    """
    if not budget.allows():
        first.reason = f"{first.reason or 'seen once'}; not confirmed, because the time for it is used up"
        return first
    told = [_told(first, "company" if company else "alone")]
    unanswered = False
    for number in range(most):
        if number and not budget.allows():
            break
        started = time.monotonic()
        judgement = again()
        budget.spent += time.monotonic() - started
        late = any(each.timed_out for each in judgement.evidence)  # on a busy machine: not the same red
        if judgement.verdict is not Verdict.PASSED and (late or not judgement.is_red):
            unanswered = True
            break
        told.append(_told(judgement, "alone"))
        if not judgement.is_red or not depends_on_chance(first.evidence, root):
            break
    first.runs, first.reds = len(told), sum(not each.passed for each in told)
    first.evidence = tuple(
        each.model_copy(update={"confirmations": (*each.confirmations, *told)}) for each in first.evidence
    )
    if first.reds < first.runs:
        first.verdict = Verdict.FLAKY
        first.reason = f"the same code gave both answers: red {first.reds} of {first.runs} times"
    elif unanswered:
        first.reason = f"{first.reason or 'seen once'}; run again it gave no answer"
    return first


def depends_on_chance(evidence: Iterable[Evidence], root: Path) -> bool:
    """Return whether a function that the failure goes through asks for chance, a clock or sets."""
    places = dict.fromkeys(place for piece in evidence for place in _places_of(piece))
    return any(_asks_for_chance(root / path, line) for path, line in places)


def test_depends_on_chance(nodeid: str, root: Path) -> bool:
    """Return whether the code of a test itself asks for chance, a clock or sets."""
    file, _, rest = nodeid.partition("::")
    name = rest.rpartition("::")[2].partition("[")[0]
    tree = _parsed(root / file)
    return tree is not None and any(
        _is_chance(node)
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and function.name == name
        for node in ast.walk(function)
    )


def _places_of(evidence: Evidence) -> Iterator[tuple[str, int]]:
    frames = [frame for error in evidence.exceptions for frame in error.frames]
    for frame in (*frames, *evidence.subjects):
        if frame.side in (Side.TEST, Side.PRODUCT):
            yield frame.path, frame.line


def _asks_for_chance(path: Path, line: int) -> bool:
    tree = _parsed(path)
    if tree is None:
        return path.is_file() and path.stat().st_size > _LARGEST
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    innermost = max(around, key=lambda node: node.lineno, default=tree)
    return any(_is_chance(node) for node in ast.walk(innermost))


def _parsed(path: Path) -> ast.Module | None:
    try:
        return ast.parse(path.read_bytes()) if path.stat().st_size <= _LARGEST else None
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@cache
def _names_of_chance() -> frozenset[str]:
    """Return names whose calls give another answer each time: chance, clocks, the order of sets, threads.

    Only the last part of a name is compared, so those are left out that mean something else elsewhere.
    """
    from planner.catalog.impure_calls import CHANCE, CLOCK, GENERATORS

    drawn = " ".join((*CHANCE.values(), *CLOCK.values())).split()
    return frozenset(drawn) | {name.rpartition(".")[2] for name in GENERATORS} | _MORE_CHANCE


def _is_chance(node: ast.AST) -> bool:
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name in _names_of_chance()
        case _:
            return False


def _told(judgement: Judgement, where: str) -> Confirmation:
    return Confirmation(where=where, passed=not judgement.is_red, duration_ms=judgement.duration_ms)
