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
from planner.model.taxonomy import Category as C
from planner.model.taxonomy import Owner
from planner.model.verdicts import EvidenceKind, Hardness
from pytest_planverify.diagnosis.messages import nearest, quote, who_changed
from pytest_planverify.diagnosis.rule import Hit, Rules

if TYPE_CHECKING:
    from planner.model.evidence import ContractFact
    from pytest_planverify.diagnosis.case import Case

ACCEPT = "planverify baseline accept TODO"
"""Command in a suggestion. A diagnosis does not know its todo, so the outcome names it."""

_SHOWN = 5
"""Limit of file names in a suggestion."""
_LONGEST = 130
"""Limit of characters of each signature in a suggestion, so that the text after it is not cut off."""

CRITERIA_RULES = Rules()

_BUDGETS = {
    "wall_seconds": "The run took {used:g} s, but the plan allows {limit:g} s",
    "memory_mb": "The processes of the run used {used:.0f} MiB, but the plan allows {limit:g} MiB",
    "new_files": "The run left {used:g} new files, but the plan allows {limit:g}",
}
"""Sentences by limit of the plan's budget."""
_REACHED = {
    "connect": ("the network was accessed ({})", "network"),
    "process": ("a program was started ({})", "processes"),
    "write": ("something was written outside the plan's root ({})", "writes"),
}
"""By kind of denied access: the phrase, and the key of the plan's metadata that grants it."""


@CRITERIA_RULES.rule(C.HYGIENE_VIOLATION, 0.95, facts="hygiene", owner=Owner.PRODUCT)
def judge_tampered(case: Case) -> Hit | None:
    """A file that judges the work was changed without leave, or the work tries to please its judge."""
    signals = case.evidence.signals
    if not signals:
        return None
    first = min(signals, key=lambda signal: signal.hardness is not Hardness.HARD)
    paths = list(dict.fromkeys(each.path for each in signals if each.path))
    of = f" of {', '.join(map(quote, paths[:_SHOWN]))}" if paths else ""
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    # Files that judge are accepted without being named; code of the product is not.
    files = [path for path in paths if not is_test_path(path)]
    named = "".join(f" --file {shlex.quote(path)}" for path in files[:_SHOWN])
    return Hit(
        suggestion=(
            f"Restore the earlier state{of}{more}, or let a person accept the change: "
            f"{ACCEPT}{named} --reason '…'."
        ),
        location=Location(path=first.path, line=first.line) if first.path else None,
    )


@CRITERIA_RULES.rule(C.SANDBOX_VIOLATION, 0.98, facts="sandbox", owner=Owner.PRODUCT)
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


@CRITERIA_RULES.rule(C.ALLOWLIST_VIOLATION, 0.97, facts="allowlist", owner=Owner.PLAN)
def outside_allowed_files(case: Case) -> Hit | None:
    """A file was changed that no todo's allowed_files grants."""
    outside = case.evidence.outside
    if not outside:
        return None
    more = f" and {len(outside) - _SHOWN} more" if len(outside) > _SHOWN else ""
    older = "" if case.evidence.changed_since == "baseline" else "commit it if it is older than the work, "
    return Hit(
        suggestion=(
            f"No todo may change {', '.join(map(quote, outside[:_SHOWN]))}{more}. Revert the "
            f"change, {older}or widen allowed_files in the plan."
        ),
        location=Location(path=outside[0]),
    )


@CRITERIA_RULES.rule(C.BUDGET_EXCEEDED, 0.99, facts="budget", owner=Owner.PLAN)
def budget_spent(case: Case) -> str | None:
    """The run used more than the plan's budget grants."""
    fact = case.evidence.budget
    if fact is None:
        return None
    sentence = _BUDGETS.get(fact.name, "{used:g}, but the plan allows {limit:g}")
    return (
        f"{sentence.format(used=fact.used, limit=fact.limit)}. Find the cause, or raise "
        f"budget.{fact.name} in the plan."
    )


_ARTIFACTS = {
    "missing": "{path} does not exist",
    "no_match": "No file matches {path}",
    "empty": "{path} is empty",
    "too_small": "{path} is too small",
    "too_large": "{path} is too large",
    "not_a_file": "{path} is not a file",
    "outside_root": "{path} is outside of the plan's root",
    "not_json": "{path} is not JSON",
    "schema": "{path} does not satisfy its schema",
    "bad_schema": "The schema of {path} cannot be used",
    "sha256": "{path} has other content than expected",
    "unreadable": "{path} cannot be read",
}
_PLAN_FAULTS = ("outside_root", "bad_schema")
"""Problems that only a change of the plan can solve."""


@CRITERIA_RULES.rule(C.ARTIFACT_MISSING, 0.95, facts="artifact")
def artifact_not_as_promised(case: Case) -> Hit | None:
    """A file that the plan or its criterion names is missing, or differs from what they say."""
    fact = case.evidence.artifact
    if fact is None:
        return None
    # A data file of the criterion itself is written by the plan's author, not by the work.
    is_data = case.evidence.kind is EvidenceKind.FIXTURE
    phrase = _ARTIFACTS.get(fact.problem, f"{{path}}: {fact.problem}").format(path=fact.path)
    detail = ""
    if fact.expected and fact.actual:
        detail = f": expected {quote(fact.expected)}, found {quote(fact.actual)}"
    elif value := fact.actual or fact.expected:
        detail = f": {quote(value)}"
    return Hit(
        suggestion=f"{'The data file that the criterion names: ' if is_data else ''}{phrase}{detail}"
        f"{nearest(fact.nearest)}.",
        location=Location(path=fact.path),
        owner=Owner.PLAN if is_data or fact.problem in _PLAN_FAULTS else None,
    )


@CRITERIA_RULES.rule(C.METRIC_UNMET, 0.97, facts="metric")
def metric_unmet(case: Case) -> Hit | str | None:
    """A recorded number does not satisfy the plan's comparison, or none was recorded."""
    fact = case.evidence.metric
    if fact is None:
        return None
    if fact.problem == "not_recorded":
        return Hit(
            suggestion=f"No test recorded {fact.name}: record it with "
            f"record_property({fact.name!r}, value) in a test that the todo runs.",
            owner=Owner.TEST,
        )
    recorded = quote(", ".join(fact.recorded[:3]) or "nothing", 60)
    if fact.problem == "not_a_number":
        return f"{fact.name} was recorded as {recorded}, which is not a finite number."
    return f"{fact.name} was {recorded}, but the plan requires {fact.operator} {fact.expected:g}."


_CONTRACTS = {
    "missing_module": "The module that {path} describes does not exist.",
    "missing_function": "{path} promises {function}, which is missing in {module}.",
    "signature": "{function} in {module} has another signature than {path} promises.",
    "unreadable": "The contract {path} cannot be read.",
    "unresolved": "It cannot be determined without running the code whether {function} satisfies {path}.",
}


@CRITERIA_RULES.rule(C.SPEC_MISMATCH, 0.4, facts="contract", owner=Owner.UNKNOWN, second=C.ARTIFACT_MISSING)
def contract_unresolved(case: Case) -> Hit | None:
    """The interface cannot be determined from the source."""
    fact = case.evidence.contract
    return _contract_hit(case, fact) if fact is not None and fact.problem == "unresolved" else None


@CRITERIA_RULES.rule(C.SPEC_MISMATCH, 0.96, facts="contract", second=C.ARTIFACT_MISSING)
def contract_broken(case: Case) -> Hit | None:
    """The code does not satisfy the contract, or the contract cannot be read."""
    fact = case.evidence.contract
    return _contract_hit(case, fact) if fact is not None else None


def _contract_hit(case: Case, fact: ContractFact) -> Hit:
    """Return the hit for a contract that the code is not known to satisfy."""
    changes = who_changed(case.evidence, product=fact.module_path, test=None)
    return Hit(
        suggestion=_contract_sentence(fact, case.evidence.headline) + changes,
        location=Location(path=fact.module_path or fact.path, line=fact.line, function=fact.function),
        owner=Owner.PLAN if fact.problem == "unreadable" else None,
        # A module that does not exist may as well be called an artifact that is missing.
        weight=0.88 if fact.problem == "missing_module" else 1.0,
    )


def _contract_sentence(fact: ContractFact, headline: str) -> str:
    """Return what differs between contract and code, as precisely as the fact states it."""
    if fact.why and fact.expected and fact.actual:
        expected, actual = quote(fact.expected, _LONGEST), quote(fact.actual, _LONGEST)
        return (
            f"{fact.function} ({fact.module_path}:{fact.line}): {quote(fact.why, _LONGEST)}. "
            f"{fact.path} promises {expected}, the code has {actual}."
        )
    if fact.problem == "missing_function" and headline:  # the headline names similar functions
        missing = quote(headline, 3 * _LONGEST)
        promised = f" {fact.path} promises {quote(fact.expected)}." if fact.expected else ""
        return f"{missing}{'' if missing.endswith(('.', '?')) else '.'}{promised}"
    sentence = _CONTRACTS.get(fact.problem, "{path} is not satisfied.").format(
        path=fact.path, function=fact.function or "a name", module=fact.module_path or "its module"
    )
    if fact.expected and fact.actual:
        return f"{sentence} Promised: {quote(fact.expected)}; found: {quote(fact.actual)}."
    detail = fact.expected or fact.actual or headline
    return f"{sentence} {quote(detail, 3 * _LONGEST).rstrip('.')}." if detail else sentence


@CRITERIA_RULES.rule(C.TEST_REGRESSION, 0.7, facts="manual", second=C.SPEC_MISMATCH)
def answered_no(case: Case) -> str:
    """A person looked at the result and refused it."""
    return f"A person answered no: {quote(case.evidence.headline or 'no reason given')}."


_SELECTORS = {
    "missing_file": "{text} does not exist",
    "missing_id": "{text} names a test that does not exist",
    "no_match": "{text} selects no test",
    "bad_expression": "{text} is not a valid expression for pytest",
    "empty": "{text} contains no test",
    "unknown_option": "pytest does not know the option {text} of the command",
}


@CRITERIA_RULES.rule(C.TEST_NOT_FOUND, 0.96, facts="selectors")
def selection_empty(case: Case) -> Hit | None:
    """The command names a file or a test that does not exist, or its selection matches no test."""
    # Tests that were skipped or expected to fail were selected, so the selection is not to blame.
    is_selected = case.evidence.vacuous in ("all_skipped", "only_xfailed")
    found = [
        each
        for each in case.evidence.selectors
        if each.problem in _SELECTORS and not (is_selected and each.problem in ("no_match", "empty"))
    ]
    if not found:
        return None
    rest = f" So do {len(found) - 1} more selections of the command." if len(found) > 1 else ""
    first = found[0]
    path = first.text.partition("::")[0]
    return Hit(
        suggestion=f"{_SELECTORS[first.problem].format(text=first.text)}{nearest(first.nearest)}.{rest}",
        location=None if path.startswith("-") else Location(path=path),
    )


_IMPORTORSKIP = re.compile(r"^could not import '(?P<module>[\w.]+)': No module named ")
"""The skip reason of ``pytest.importorskip``."""
_REQUIREMENT = re.compile(
    r"\bnot (?:installed|available)\b|\b(?:requires?|needs?|missing)\b", re.IGNORECASE
)
"""Usual words of a skip reason that states a requirement of the tests on the machine."""


def _selected(case: Case) -> str:
    """Return the criterion's failed selectors, else its command, as a phrase."""
    command = case.evidence.command
    words = [selector.text for selector in case.evidence.selectors] or (command.argv if command else ())
    return quote(" ".join(words)) or "the command"


@CRITERIA_RULES.rule(C.ENVIRONMENT_ERROR, 0.85, facts="all-skipped", second=C.TEST_NOT_FOUND)
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
        return Hit(suggestion=f"{skipped}: {said}. Install what is missing.", weight=0.9)
    return None


@CRITERIA_RULES.rule(C.TEST_NOT_FOUND, 0.9, facts="all-skipped", owner=Owner.TEST)
def all_skipped(case: Case) -> str:
    """All tests were skipped, so nothing was proved."""
    reason = quote("; ".join(case.evidence.skip_reasons) or "no reason given")
    return f"Every test of {_selected(case)} was skipped: {reason}."


@CRITERIA_RULES.rule(C.TEST_NOT_FOUND, 0.9, facts="nothing-checked")
def nothing_checked(case: Case) -> str:
    """No test ran, or the command's selection proves nothing."""
    if case.evidence.kind is EvidenceKind.COMMAND:
        return f"{_selected(case)} checked nothing: correct the command, or write what it is to check."
    if case.evidence.vacuous == "nothing_collected" or case.evidence.kind is EvidenceKind.SESSION:
        return f"No test of {_selected(case)} ran: write the test or correct the selection."
    headline = quote(case.evidence.headline)
    return f"The command selected nothing that proves the todo{': ' + headline if headline else ''}."
