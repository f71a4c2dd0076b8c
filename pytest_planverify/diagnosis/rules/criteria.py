"""Rules for guards, for criteria other than tests and commands, and for selections that prove nothing.

These rules decide by facts that the check itself recorded (signals, events, artifact, metric, contract,
selectors), not by exceptions.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from planner.catalog.test_paths import is_test_path
from planner.model.outcome import Location
from planner.model.taxonomy import Owner
from planner.model.verdicts import EvidenceKind
from pytest_planverify.diagnosis.messages import nearest, quote
from pytest_planverify.diagnosis.rule import Hit

if TYPE_CHECKING:
    from planner.model.evidence import ContractFact
    from pytest_planverify.diagnosis.case import Case

ACCEPT = "planverify baseline accept TODO"
"""Command in a suggestion. A diagnosis does not know its todo, so the outcome names it."""

_SHOWN = 5
"""Limit of file names in a suggestion."""
_LONGEST = 130
"""Limit of characters of each signature in a suggestion, so that the text after it is not cut off."""

_REACHED = {
    "connect": ("the network was accessed ({})", "network"),
    "process": ("a program was started ({})", "processes"),
    "write": ("something was written outside the plan's root ({})", "writes"),
}
"""By kind of denied access: the phrase, and the key of the plan's metadata that grants it."""


def judge_tampered(case: Case) -> Hit | None:
    """A file that judges the work was changed without leave, or the work tries to please its judge."""
    signals = case.evidence.signals
    if not signals:
        return None
    first = signals[0]
    paths = list(dict.fromkeys(each.path for each in signals if each.path))
    of = f" of {', '.join(map(quote, paths[:_SHOWN]))}" if paths else ""
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    # Files that judge are accepted without being named; code of the product is not.
    files = [path for path in paths if not is_test_path(path)]
    named = "".join(f" --file {shlex.quote(path)}" for path in files[:_SHOWN])
    accept = f"accept the change: {ACCEPT}{named} --reason '…'"
    if first.sign == "records-touched":  # no change is accepted on top of a doubtful baseline
        accept = "record the baseline again, if it has changed: planverify baseline PLAN --reason '…'"
    return Hit(
        suggestion=f"Restore the earlier state{of}{more}, or let a person {accept}.",
        location=Location(path=first.path, line=first.line) if first.path else None,
    )


def denied_by_the_plan(case: Case) -> Hit | None:
    """Something was reached for that the plan denies."""
    event = next((event for event in case.evidence.events if event.denied), None)
    if event is None:
        return None
    reached, key = _REACHED.get(event.event, ("{} was accessed", "network"))
    where = f"In {quote(event.nodeid)}" if event.nodeid else "Outside any test"
    return Hit(
        suggestion=(
            f"{where} {reached.format(quote(event.target))}, which the plan denies. Avoid it in "
            f"the tests, or allow it in the plan's metadata.{key}."
        ),
        location=Location(path=event.path) if event.path else None,
    )


def outside_allowed_files(case: Case) -> Hit | None:
    """A file was changed that no todo's allowed_files grants."""
    outside = case.evidence.outside
    if not outside:
        return None
    more = f" and {len(outside) - _SHOWN} more" if len(outside) > _SHOWN else ""
    older = "" if case.evidence.changed_since == "baseline" else "commit it if it is older than the work, "
    # Another todo of the plan may have done it.
    is_part = "allowed_files of any claimed or selected todo" in case.evidence.headline
    none = "No claimed or selected todo" if is_part else "No todo"
    more_todos = "verify the todo that made it, too, " if is_part else ""
    named = ", ".join(quote(each.replace("\n", " ")) for each in outside[:_SHOWN])
    return Hit(
        suggestion=(
            f"{none} may change {named}{more}. Revert the "
            f"change, {older}{more_todos}or widen allowed_files in the plan."
        ),
        location=Location(path=outside[0]),
    )


def budget_spent(case: Case) -> str | None:
    """The run used more than the plan's budget grants."""
    fact = case.evidence.budget
    if fact is None:
        return None
    return f"{_found_by_check(case)}. Find the cause, or raise budget.{fact.name} in the plan."


def _found_by_check(case: Case) -> str:
    """Return what the check itself found, without a period."""
    return quote(case.evidence.headline or "The check failed", 3 * _LONGEST).rstrip(".")


_PLAN_FAULTS = ("outside_root", "bad_schema")
"""Problems that only a change of the plan can solve."""


def artifact_not_as_promised(case: Case) -> Hit | None:
    """A file that the plan or its criterion names is missing, or differs from what they say."""
    fact = case.evidence.artifact
    if fact is None:
        return None
    # A data file of the criterion itself is written by the plan's author, not by the work.
    is_data = case.evidence.kind is EvidenceKind.FIXTURE
    others = Owner.TEST if is_test_path(fact.path) else None
    return Hit(
        suggestion=f"{_found_by_check(case)}.",
        location=Location(path=fact.path),
        owner=Owner.PLAN if is_data or fact.problem in _PLAN_FAULTS else others,
    )


def metric_unmet(case: Case) -> Hit | str | None:
    """A recorded number does not satisfy the plan's comparison, or none was recorded."""
    fact = case.evidence.metric
    if fact is None:
        return None
    if fact.problem == "not_recorded":
        return Hit(
            suggestion=f"{_found_by_check(case)}: record it with "
            f"record_property({fact.name!r}, value) in a test that the todo runs.",
            owner=Owner.TEST,
        )
    return f"{_found_by_check(case)}."


def contract_unresolved(case: Case) -> Hit | None:
    """The interface cannot be determined from the source."""
    fact = case.evidence.contract
    return _contract_hit(case, fact) if fact is not None and fact.problem == "unresolved" else None


def contract_broken(case: Case) -> Hit | None:
    """The code does not satisfy the contract, or the contract cannot be read."""
    fact = case.evidence.contract
    # A module of the project that does not parse breaks more than its contract.
    return _contract_hit(case, fact) if fact is not None and not case.is_error("SyntaxError") else None


def _contract_hit(case: Case, fact: ContractFact) -> Hit:
    """Return the hit for a contract that the code is not known to satisfy."""
    said = case.evidence.headline or "The code does not satisfy the contract"
    if fact.why:  # the headline quotes both signatures
        said = f"{fact.function} ({fact.module_path}:{fact.line}): {' '.join(fact.why.split())}"
    promised = "" if fact.path in said else f" The contract is {fact.path}."
    if fact.expected:
        has = f", the code has {quote(fact.actual, _LONGEST)}" if fact.actual else ""
        promised = f" {fact.path} promises {quote(fact.expected, _LONGEST)}{has}."
    return Hit(
        suggestion=f"{quote(said, 3 * _LONGEST).rstrip('.')}.{promised}",
        location=Location(path=fact.module_path or fact.path, line=fact.line, function=fact.function),
        owner=Owner.PLAN if fact.problem == "unreadable" and fact.module_path is None else None,
        # A module that does not exist may as well be called an artifact that is missing.
        weight=0.88 if fact.problem == "missing_module" else 1.0,
    )


def answered_no(case: Case) -> str:
    """A person looked at the result and refused it."""
    return f"A person answered no: {quote(case.evidence.headline or 'no reason given')}."


def selection_empty(case: Case) -> Hit | None:
    """The command names a file or a test that does not exist, or its selection matches no test."""
    # Tests that were skipped or expected to fail were selected, so the selection is not to blame.
    is_selected = case.evidence.vacuous in ("all_skipped", "only_xfailed")
    found = [
        each
        for each in case.evidence.selectors
        if not (is_selected and each.problem in ("no_match", "empty"))
    ]
    if not found:
        return None
    first, said = found[0], _found_by_check(case)
    path = first.text.partition("::")[0]
    return Hit(
        suggestion=f"{'' if first.text in said else f'{first.text}: '}{said}{nearest(first.nearest)}.",
        location=None if path.startswith("-") else Location(path=path),
    )


_IMPORTORSKIP = re.compile(r"^could not import '(?P<module>[\w.]+)': No module named ")
"""The skip reason of ``pytest.importorskip``."""
_REQUIREMENT = re.compile(
    r"\bnot (?:installed|available)\b|\b(?:requires?|needs?|missing)\b|\binterpreter\b.* not found\b",
    re.IGNORECASE,
)
"""Usual words of a skip reason that states a requirement of the tests on the machine."""


def _selected(case: Case) -> str:
    """Return the criterion's failed selectors, else its command, as a phrase."""
    command = case.evidence.command
    words = [selector.text for selector in case.evidence.selectors] or (command.argv if command else ())
    return quote(" ".join(words)) or "the command"


def all_skipped_for_a_module(case: Case) -> Hit | None:
    """All tests were skipped because something that they need is not installed."""
    reasons = case.evidence.skip_reasons
    skipped = f"Every test of {_selected(case)} was skipped"
    modules = [found["module"] for reason in reasons if (found := _IMPORTORSKIP.match(reason))]
    if modules and len(modules) == len(reasons):
        wanted = ", ".join(dict.fromkeys(modules))
        return Hit(suggestion=f"{skipped}, because {wanted} is not installed: install it.")
    if reasons and all(_IMPORTORSKIP.match(each) or _REQUIREMENT.search(each) for each in reasons):
        said = quote("; ".join(reasons))
        # A project words such reasons itself, so this is less certain than the reason of importorskip.
        return Hit(suggestion=f"{skipped}: {said.rstrip('.')}. Install what is missing.", weight=0.9)
    return None


def all_skipped(case: Case) -> str:
    """All tests were skipped, so nothing was proved."""
    reason = quote("; ".join(case.evidence.skip_reasons) or "no reason given")
    return f"Every test of {_selected(case)} was skipped: {reason.rstrip('.')}."


def nothing_checked(case: Case) -> str:
    """No test ran, or the command's selection proves nothing."""
    if case.evidence.kind is EvidenceKind.COMMAND:
        return f"{_selected(case)} checked nothing: correct the command, or write what it is to check."
    if case.evidence.vacuous == "nothing_collected" or case.evidence.kind is EvidenceKind.SESSION:
        return f"No test of {_selected(case)} ran: write the test or correct the selection."
    headline = quote(case.evidence.headline)
    return f"The selected tests do not prove the todo{': ' + headline if headline else ''}."
