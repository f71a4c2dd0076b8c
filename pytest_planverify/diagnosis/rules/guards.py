"""Rules for what the guards found: tampering, what the plan denies, files out of bounds, spent budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.kinds import EvidenceKind, Hardness
from planner.model.outcome import Location
from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis.rule import Hit, Rule
from pytest_planverify.diagnosis.wording import quote

if TYPE_CHECKING:
    from pytest_planverify.diagnosis.reading import Case

_SHOWN = 5
_BUDGETS = {
    "wall_seconds": "The run took {used:g} s where the plan grants {limit:g} s",
    "memory_mb": "The run's processes used {used:.0f} MiB together where the plan grants {limit:g} MiB",
    "new_files": "The run left {used:g} new files where the plan grants {limit:g}",
}
_REACHED = {
    "connect": "the network was reached for ({target})",
    "process": "a program was started ({target})",
    "write": "something was written outside the plan's root ({target})",
}


_KEYS = {"connect": "network", "process": "processes", "write": "writes"}
"""Where a plan grants what was reached for."""


def _hygiene(case: Case) -> Hit | None:
    signals = case.evidence.signals
    if case.evidence.kind is not EvidenceKind.HYGIENE or not signals:
        return None
    first = min(signals, key=lambda signal: signal.hardness is not Hardness.HARD)
    more = f" (and {len(signals) - 1} more)" if len(signals) > 1 else ""
    return Hit(
        suggestion=f"{first.message}{more}. Put back what was there before, or have a person bless the "
        "change: planverify baseline accept TODO --reason '…'.",
        location=Location(path=first.path, line=first.line) if first.path else None,
    )


def _sandbox(case: Case) -> Hit | None:
    denied = [event for event in case.evidence.events if event.denied]
    if case.evidence.kind is not EvidenceKind.SANDBOX or not denied:
        return None
    event = denied[0]
    what = _REACHED.get(event.event, "{target} was reached for").format(target=quote(event.target))
    where = f"In {quote(event.nodeid)} {what}" if event.nodeid else f"Outside any test {what}"
    return Hit(
        suggestion=f"{where}, which the plan denies. Have the tests do without it, or grant it in the "
        f"plan's metadata.{_KEYS.get(event.event, 'network')}.",
        location=Location(path=event.path) if event.path else None,
    )


def _allowlist(case: Case) -> Hit | None:
    outside = case.evidence.outside
    if case.evidence.kind is not EvidenceKind.ALLOWLIST or not outside:
        return None
    more = f" and {len(outside) - _SHOWN} more" if len(outside) > _SHOWN else ""
    return Hit(
        suggestion=f"No todo may change {', '.join(map(quote, outside[:_SHOWN]))}{more}. Take the change "
        "back, or widen allowed_files in the plan.",
        location=Location(path=outside[0]),
    )


def _budget(case: Case) -> Hit | None:
    fact = case.evidence.budget
    if case.evidence.kind is not EvidenceKind.BUDGET or fact is None:
        return None
    said = _BUDGETS.get(fact.name, "{used:g} where the plan grants {limit:g}")
    return Hit(
        suggestion=f"{said.format(used=fact.used, limit=fact.limit)}. Find what uses so much, or raise "
        f"budget.{fact.name} in the plan."
    )


GUARD_RULES: tuple[Rule, ...] = (
    Rule(
        id="judge-tampered",
        because="What judges the work was changed without leave, or the work was made to please its judge.",
        category=Category.HYGIENE_VIOLATION,
        owner=Owner.PRODUCT,
        confidence=0.95,
        read=_hygiene,
    ),
    Rule(
        id="denied-by-the-plan",
        because="Something was reached for that the plan denies.",
        category=Category.SANDBOX_VIOLATION,
        owner=Owner.PRODUCT,
        confidence=0.98,
        read=_sandbox,
    ),
    Rule(
        id="outside-allowed-files",
        because="A file was changed that no todo's allowed_files grants.",
        category=Category.ALLOWLIST_VIOLATION,
        owner=Owner.PLAN,
        confidence=0.97,
        read=_allowlist,
    ),
    Rule(
        id="budget-spent",
        because="The run used more than the plan's budget grants.",
        category=Category.BUDGET_EXCEEDED,
        owner=Owner.PLAN,
        confidence=0.99,
        read=_budget,
    ),
)
