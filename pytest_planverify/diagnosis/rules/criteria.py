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
    from collections.abc import Collection

    from planner.model.evidence import ContractFact
    from pytest_planverify.diagnosis.case import Case
    from pytest_planverify.diagnosis.rule import Reader

_SHOWN = 5
"""Limit of file names in a suggestion."""
_LONGEST = 130
"""Limit of characters of each signature in a suggestion, so that the text after it is not cut off."""

GUARD_RULES = Rules()
CHECK_RULES = Rules()
SELECTION_RULES = Rules()

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


@GUARD_RULES.rule(C.HYGIENE_VIOLATION, 0.95, owner=Owner.PRODUCT)
def judge_tampered(case: Case) -> Hit | None:
    """A file that judges the work was changed without leave, or the work tries to please its judge."""
    signals = case.evidence.signals
    if not signals:
        return None
    first = min(signals, key=lambda signal: signal.hardness is not Hardness.HARD)
    more = f" (and {len(signals) - 1} more)" if len(signals) > 1 else ""
    # Files that judge are accepted without being named; code of the product is not.
    files = dict.fromkeys(each.path for each in signals if each.path and not is_test_path(each.path))
    named = "".join(f" --file {shlex.quote(path)}" for path in list(files)[:_SHOWN])
    return Hit(
        suggestion=(
            f"{first.message}{more}. Restore the earlier state, or let a person accept the "
            f"change: planverify baseline accept TODO{named} --reason '…'."
        ),
        location=Location(path=first.path, line=first.line) if first.path else None,
    )


@GUARD_RULES.rule(C.SANDBOX_VIOLATION, 0.98, owner=Owner.PRODUCT)
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


@GUARD_RULES.rule(C.ALLOWLIST_VIOLATION, 0.97, owner=Owner.PLAN)
def outside_allowed_files(case: Case) -> Hit | None:
    """A file was changed that no todo's allowed_files grants."""
    outside = case.evidence.outside
    if not outside:
        return None
    more = f" and {len(outside) - _SHOWN} more" if len(outside) > _SHOWN else ""
    return Hit(
        suggestion=(
            f"No todo may change {', '.join(map(quote, outside[:_SHOWN]))}{more}. Revert the "
            "change, or widen allowed_files in the plan."
        ),
        location=Location(path=outside[0]),
    )


@GUARD_RULES.rule(C.BUDGET_EXCEEDED, 0.99, owner=Owner.PLAN)
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


def _artifact(kind: EvidenceKind, what: str, problems: Collection[str] = ()) -> Reader:
    """Return a reader for artifact facts of a kind of evidence, with one of the ``problems`` or with any.

    ``what`` begins the suggestion.
    """

    def read(case: Case) -> Hit | None:
        fact = case.evidence.artifact
        if case.evidence.kind is not kind or fact is None or (problems and fact.problem not in problems):
            return None
        phrase = _ARTIFACTS.get(fact.problem, f"{{path}}: {fact.problem}").format(path=fact.path)
        detail = ""
        if fact.expected and fact.actual:
            detail = f": expected {quote(fact.expected)}, found {quote(fact.actual)}"
        elif value := fact.actual or fact.expected:
            detail = f": {quote(value)}"
        return Hit(
            suggestion=f"{what}{phrase}{detail}{nearest(fact.nearest)}.",
            location=Location(path=fact.path),
            owner=Owner.PLAN if fact.problem in _PLAN_FAULTS else None,
        )

    return read


# fmt: off
CHECK_RULES.add(
    "artifact-missing", _artifact(EvidenceKind.ARTIFACT, "", ("missing", "no_match")),
    C.ARTIFACT_MISSING, 0.98, "A file that the plan expects does not exist.",
)
CHECK_RULES.add(
    "artifact-not-as-promised", _artifact(EvidenceKind.ARTIFACT, ""),
    C.ARTIFACT_MISSING, 0.93, "The artifact differs from the plan, or the plan is wrong.",
)
CHECK_RULES.add(
    "fixture-file-missing", _artifact(EvidenceKind.FIXTURE, "The data file that the criterion names: "),
    C.ARTIFACT_MISSING, 0.93, "The data file that the criterion names cannot be used.",
    owner=Owner.PLAN,
)
# fmt: on


@CHECK_RULES.rule(C.METRIC_UNMET, 0.97)
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


def _contract(*problems: str) -> Reader:
    """Return a reader for contract facts with one of the ``problems``."""

    def read(case: Case) -> Hit | None:
        fact = case.evidence.contract
        if fact is None or fact.problem not in problems:
            return None
        changes = who_changed(case.evidence, product=fact.module_path, test=None)
        return Hit(
            suggestion=_contract_sentence(fact, case.evidence.headline) + changes,
            location=Location(path=fact.module_path or fact.path, line=fact.line, function=fact.function),
            owner=Owner.PLAN if fact.problem == "unreadable" else None,
        )

    return read


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
    sentence = _CONTRACTS[fact.problem].format(
        path=fact.path, function=fact.function or "a name", module=fact.module_path or "its module"
    )
    if fact.expected and fact.actual:
        return f"{sentence} Promised: {quote(fact.expected)}; found: {quote(fact.actual)}."
    detail = fact.expected or fact.actual or headline
    return f"{sentence} {quote(detail, 3 * _LONGEST).rstrip('.')}." if detail else sentence


# fmt: off
CHECK_RULES.add(
    "contract-broken", _contract("missing_function", "signature", "unreadable"),
    C.SPEC_MISMATCH, 0.97, "The code does not satisfy the contract, or the contract cannot be read.",
)
CHECK_RULES.add(
    "contract-module-missing", _contract("missing_module"),
    C.SPEC_MISMATCH, 0.85, "The module that the contract describes does not exist.",
    second=(C.ARTIFACT_MISSING, 0.4),
)
CHECK_RULES.add(
    "contract-unresolved", _contract("unresolved"),
    C.SPEC_MISMATCH, 0.4, "The interface cannot be determined from the source.",
    owner=Owner.UNKNOWN, second=(C.UNKNOWN, 0.3),
)
# fmt: on


@CHECK_RULES.rule(C.TEST_REGRESSION, 0.7, second=(C.SPEC_MISMATCH, 0.3))
def answered_no(case: Case) -> str | None:
    """A person looked at the result and refused it."""
    if case.evidence.kind is not EvidenceKind.MANUAL:
        return None
    return f"A person answered no: {quote(case.evidence.headline or 'no reason given')}."


_SELECTORS = {
    "missing_file": "{text} does not exist",
    "missing_id": "{text} names a test that does not exist",
    "no_match": "{text} matches no test",
    "bad_expression": "{text} is not a valid expression for pytest",
    "empty": "{text} contains no test",
    "unknown_option": "pytest does not know the option {text} of the command",
}


def _selector(*problems: str, unless: tuple[str, ...] = ()) -> Reader:
    """Return a reader for selectors with one of the ``problems``.

    ``unless`` lists reasons for a vacuous result to which the rule does not apply.
    """

    def read(case: Case) -> Hit | None:
        found = [selector for selector in case.evidence.selectors if selector.problem in problems]
        if not found or case.evidence.vacuous in unless:
            return None
        rest = f" So do {len(found) - 1} more selections of the command." if len(found) > 1 else ""
        first = found[0]
        path = first.text.partition("::")[0]
        return Hit(
            suggestion=f"{_SELECTORS[first.problem].format(text=first.text)}{nearest(first.nearest)}.{rest}",
            location=None if path.startswith("-") else Location(path=path),
        )

    return read


# fmt: off
SELECTION_RULES.add(
    "test-id-missing", _selector("missing_file", "missing_id"),
    C.TEST_NOT_FOUND, 0.97, "The command names a file or a test that does not exist.",
)
SELECTION_RULES.add(
    # Tests that were skipped or expected to fail were selected, so the selection is not to blame.
    "selection-empty", _selector("no_match", "empty", unless=("all_skipped", "only_xfailed")),
    C.TEST_NOT_FOUND, 0.95, "The command's selection matches no test.",
)
# fmt: on


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


@SELECTION_RULES.rule(C.TEST_NOT_FOUND, 0.93)
def nothing_collected(case: Case) -> str | None:
    """The session ended without a single test."""
    # 5 is pytest's exit code for a session without tests.
    silent = case.evidence.kind is EvidenceKind.SESSION and case.process.exit_code == 5
    if case.evidence.vacuous != "nothing_collected" and not silent:
        return None
    if case.evidence.kind is EvidenceKind.COMMAND:
        return f"{_selected(case)} checked nothing: correct the command, or write what it is to check."
    return f"No test of {_selected(case)} ran: write the test or correct the selection."


@SELECTION_RULES.rule(C.ENVIRONMENT_ERROR, 0.85, second=(C.TEST_NOT_FOUND, 0.15))
def all_skipped_for_a_module(case: Case) -> Hit | None:
    """All tests were skipped because something that they need is not installed."""
    reasons = case.evidence.skip_reasons
    if case.evidence.vacuous != "all_skipped" or not reasons:
        return None
    skipped = f"Every test of {_selected(case)} was skipped"
    modules = [found["module"] for reason in reasons if (found := _IMPORTORSKIP.match(reason))]
    if len(modules) == len(reasons):
        wanted = ", ".join(dict.fromkeys(modules))
        return Hit(suggestion=f"{skipped}, because {wanted} is not installed: install it.")
    if all(_IMPORTORSKIP.match(reason) or _REQUIREMENT.search(reason) for reason in reasons):
        said = quote("; ".join(reasons))
        # A project words such reasons itself, so this is less certain than the reason of importorskip.
        return Hit(suggestion=f"{skipped}: {said}. Install what is missing.", weight=0.9)
    return None


@SELECTION_RULES.rule(C.TEST_NOT_FOUND, 0.9, owner=Owner.TEST)
def all_skipped(case: Case) -> str | None:
    """All tests were skipped, so nothing was proved."""
    if case.evidence.vacuous != "all_skipped":
        return None
    reason = quote("; ".join(case.evidence.skip_reasons) or "no reason given")
    return f"Every test of {_selected(case)} was skipped: {reason}."


@SELECTION_RULES.rule(C.TEST_NOT_FOUND, 0.8)
def selection_proves_nothing(case: Case) -> str | None:
    """The command's selection proves nothing."""
    if case.evidence.kind is not EvidenceKind.SELECTION:
        return None
    headline = quote(case.evidence.headline)
    return f"The command selected nothing that proves the todo{': ' + headline if headline else ''}."
