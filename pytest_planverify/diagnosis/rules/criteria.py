"""Rules for guards, for criteria other than tests and commands, and for selections that prove nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.model.outcome import Location
from planner.model.taxonomy import Category, Owner
from planner.model.verdicts import EvidenceKind, Hardness
from pytest_planverify.diagnosis.boundaries import who_changed
from pytest_planverify.diagnosis.rule import Hit, Reader, Rule
from pytest_planverify.diagnosis.wording import nearest, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from planner.model.evidence import ArtifactFact, ContractFact, MetricFact, Selector
    from pytest_planverify.diagnosis.case import Case

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


# fmt: off
GUARD_RULES: tuple[Rule, ...] = (
    Rule("judge-tampered", Category.HYGIENE_VIOLATION, 0.95, _hygiene, owner=Owner.PRODUCT,
         because="What judges the work was changed without leave, or the work tries to please its judge."),
    Rule("denied-by-the-plan", Category.SANDBOX_VIOLATION, 0.98, _sandbox, owner=Owner.PRODUCT,
         because="Something was reached for that the plan denies."),
    Rule("outside-allowed-files", Category.ALLOWLIST_VIOLATION, 0.97, _allowlist, owner=Owner.PLAN,
         because="A file was changed that no todo's allowed_files grants."),
    Rule("budget-spent", Category.BUDGET_EXCEEDED, 0.99, _budget, owner=Owner.PLAN,
         because="The run used more than the plan's budget grants."),
)
# fmt: on


_LONGEST = 130
"""Of each signature in a suggestion, so that what follows it is not cut off."""

_ABSENT = frozenset({"missing", "no_match"})
_PLAN_FAULTS = frozenset({"outside_root", "bad_schema"})

_ARTIFACT_PHRASES: dict[str, str] = {
    "missing": "{path} does not exist",
    "no_match": "No file matches {path}",
    "empty": "{path} is empty",
    "too_small": "{path} is too small",
    "too_large": "{path} is too large",
    "not_a_file": "{path} is not a file",
    "outside_root": "{path} leads out of the plan's root",
    "not_json": "{path} is not JSON",
    "schema": "{path} does not satisfy its schema",
    "bad_schema": "The schema of {path} cannot be used",
    "sha256": "{path} has another content than promised",
    "unreadable": "{path} cannot be read",
}
_METRIC_PHRASES: dict[str, str] = {
    "unmet": "{name} was {recorded} where the plan asks for {operator} {expected:g}.",
    "not_recorded": (
        "No test recorded {name}: record it with record_property({name!r}, value) "
        "in a test that the todo runs."
    ),
    "not_a_number": "{name} was recorded as {recorded}, which is no finite number.",
}
_CONTRACT_PHRASES: dict[str, str] = {
    "missing_module": "The module that {path} describes does not exist.",
    "missing_function": "{function} is promised by {path} and missing from {module}.",
    "signature": "{function} in {module} has another signature than {path} promises.",
    "unreadable": "The contract {path} cannot be read.",
    "unresolved": "Whether {function} keeps {path} cannot be seen without running it.",
}
_CONTRACT_REMEDIES: dict[str, str] = {
    "missing_module": "{path} promises it: write it, or correct the contract.",
    "missing_function": "{path} promises it: write it, or rename what is there.",
    "signature": "Change the code to what {path} promises, or agree on another contract.",
    "unreadable": "Mend it before anything is compared.",
    "unresolved": "Whether {path} is kept cannot be seen without running the code.",
}


def _artifact(fact: ArtifactFact, *, what: str = "") -> Hit:
    phrase = _ARTIFACT_PHRASES.get(fact.problem, "{path}: " + fact.problem).format(path=fact.path)
    detail = ""
    if fact.expected and fact.actual:
        detail = f": expected {quote(fact.expected)}, found {quote(fact.actual)}"
    elif fact.actual or fact.expected:
        detail = f": {quote(fact.actual or fact.expected or '')}"
    return Hit(
        suggestion=f"{what}{phrase}{detail}{nearest(fact.nearest)}.", location=Location(path=fact.path)
    )


def _artifact_with(wanted: Callable[[str], bool]) -> Reader:
    def read(case: Case) -> Hit | None:
        fact = case.evidence.artifact
        if case.evidence.kind is not EvidenceKind.ARTIFACT or fact is None or not wanted(fact.problem):
            return None
        return _artifact(fact)

    return read


def _fixture_file(case: Case) -> Hit | None:
    fact = case.evidence.artifact
    if case.evidence.kind is not EvidenceKind.FIXTURE or fact is None:
        return None
    return _artifact(fact, what="The data file that the criterion names: ")


def _metric_with(problems: Collection[str]) -> Reader:
    def read(case: Case) -> Hit | None:
        fact = case.evidence.metric
        if case.evidence.kind is not EvidenceKind.METRIC or fact is None or fact.problem not in problems:
            return None
        return Hit(suggestion=_metric(fact))

    return read


def _metric(fact: MetricFact) -> str:
    return _METRIC_PHRASES[fact.problem].format(
        name=fact.name,
        operator=fact.operator,
        expected=fact.expected,
        recorded=quote(", ".join(fact.recorded[:3]) or "nothing", 60),
    )


def _contract_with(problems: Collection[str]) -> Reader:
    def read(case: Case) -> Hit | None:
        fact = case.evidence.contract
        if case.evidence.kind is not EvidenceKind.CONTRACT or fact is None or fact.problem not in problems:
            return None
        hit = _contract(fact, case.evidence.headline)
        changes = who_changed(case.evidence, product=fact.module_path, test=None)
        return replace(hit, suggestion=hit.suggestion + changes)

    return read


def _contract(fact: ContractFact, headline: str) -> Hit:
    sentence = _CONTRACT_PHRASES[fact.problem].format(
        path=fact.path, function=fact.function or "a name", module=fact.module_path or "its module"
    )
    if fact.expected and fact.actual:
        sentence += f" Promised: {quote(fact.expected)}; found: {quote(fact.actual)}."
    elif fact.expected or fact.actual:
        sentence += f" {quote(fact.expected or fact.actual or '')}."
    if fact.why and fact.expected and fact.actual:
        expected, actual = quote(fact.expected, _LONGEST), quote(fact.actual, _LONGEST)
        sentence = (
            f"{fact.function} ({fact.module_path}:{fact.line}): {quote(fact.why, _LONGEST)}. "
            f"{fact.path} promises {expected}, the code has {actual}."
        )
    elif headline and fact.problem in _CONTRACT_REMEDIES:
        sentence = (
            f"{quote(headline, 3 * _LONGEST)}. {_CONTRACT_REMEDIES[fact.problem].format(path=fact.path)}"
        )
    where = Location(path=fact.module_path or fact.path, line=fact.line, function=fact.function)
    return Hit(suggestion=sentence, location=where)


def _manual(case: Case) -> Hit | None:
    if case.evidence.kind is not EvidenceKind.MANUAL:
        return None
    return Hit(suggestion=f"A person answered no: {quote(case.evidence.headline or 'no reason given')}.")


# fmt: off
CHECK_RULES: tuple[Rule, ...] = (
    Rule("artifact-missing", Category.ARTIFACT_MISSING, 0.98, _artifact_with(_ABSENT.__contains__),
         because="A file that the plan expects is not there."),
    Rule("artifact-plan-fault", Category.ARTIFACT_MISSING, 0.9, _artifact_with(_PLAN_FAULTS.__contains__),
         owner=Owner.PLAN,
         because="What the plan says about the artifact cannot be checked."),
    Rule("artifact-not-as-promised", Category.ARTIFACT_MISSING, 0.93, _artifact_with(lambda problem: True),
         because="The artifact is there, but not what the plan asks for."),
    Rule("fixture-file-missing", Category.ARTIFACT_MISSING, 0.93, _fixture_file, owner=Owner.PLAN,
         because="The data file that the criterion names cannot be used."),
    Rule("metric-unmet", Category.METRIC_UNMET, 0.97, _metric_with({"unmet", "not_a_number"}),
         because="A recorded number does not satisfy the plan's comparison."),
    Rule("metric-not-recorded", Category.METRIC_UNMET, 0.93, _metric_with({"not_recorded"}),
         owner=Owner.TEST,
         because="No test of the todo recorded the metric."),
    Rule("contract-broken", Category.SPEC_MISMATCH, 0.97, _contract_with({"missing_function", "signature"}),
         because="The code does not have the interface that the contract promises."),
    Rule("contract-module-missing", Category.SPEC_MISMATCH, 0.85, _contract_with({"missing_module"}),
         second=(Category.ARTIFACT_MISSING, 0.4),
         because="The module that the contract describes does not exist."),
    Rule("contract-unreadable", Category.SPEC_MISMATCH, 0.85, _contract_with({"unreadable"}),
         owner=Owner.PLAN,
         because="The contract file itself cannot be read."),
    Rule("contract-unresolved", Category.SPEC_MISMATCH, 0.4, _contract_with({"unresolved"}),
         owner=Owner.UNKNOWN, second=(Category.UNKNOWN, 0.3),
         because="The interface cannot be told by looking at the source."),
    Rule("answered-no", Category.TEST_REGRESSION, 0.7, _manual, second=(Category.SPEC_MISMATCH, 0.3),
         because="A person looked at the result and refused it."),
)
# fmt: on


_PROBLEM_PHRASES: dict[str, str] = {
    "missing_file": "{text} does not exist",
    "missing_id": "{text} names a test that does not exist",
    "no_match": "{text} matches no test",
    "bad_expression": "{text} is not an expression that pytest understands",
    "empty": "{text} holds no test",
    "unknown_option": "pytest does not know the option {text} of the command",
}
_EXIT_NO_TESTS = 5


def _selector_with(problems: frozenset[str]) -> Reader:
    def read(case: Case) -> Hit | None:
        found = [selector for selector in case.evidence.selectors if selector.problem in problems]
        if not found:
            return None
        rest = f" So do {len(found) - 1} more selections of the command." if len(found) > 1 else ""
        first = found[0]
        path = first.text.partition("::")[0]
        where = None if path.startswith("-") else Location(path=path)
        return Hit(suggestion=f"{_phrase(first)}{nearest(first.nearest)}.{rest}", location=where)

    return read


_named_nothing = _selector_with(frozenset({"no_match", "empty"}))


def _phrase(selector: Selector) -> str:
    return _PROBLEM_PHRASES.get(selector.problem, "{text}: " + selector.problem).format(text=selector.text)


def _empty_selector(case: Case) -> Hit | None:
    """Tests that were skipped or expected to fail were selected, so the selection is not to blame."""
    if case.evidence.vacuous in ("all_skipped", "only_xfailed"):
        return None
    return _named_nothing(case)


def _nothing_collected(case: Case) -> Hit | None:
    silent = case.evidence.kind is EvidenceKind.SESSION and case.process.exit_code == _EXIT_NO_TESTS
    if case.evidence.vacuous != "nothing_collected" and not silent:
        return None
    return Hit(suggestion=f"No test of {_command(case)} ran: write the test or correct the selection.")


def _all_skipped(case: Case) -> Hit | None:
    if case.evidence.vacuous != "all_skipped":
        return None
    reason = quote("; ".join(case.evidence.skip_reasons) or "no reason given")
    return Hit(suggestion=f"Every test of {_command(case)} was skipped: {reason}.")


def _command(case: Case) -> str:
    """What the criterion names, as far as it names anything."""
    command = case.evidence.command
    words = [selector.text for selector in case.evidence.selectors] or (command.argv if command else ())
    return quote(" ".join(words)) or "the command"


def _other_selection(case: Case) -> Hit | None:
    if case.evidence.kind is not EvidenceKind.SELECTION:
        return None
    said = quote(case.evidence.headline)
    return Hit(
        suggestion=f"The command selected nothing that proves the todo{': ' + said if said else ''}."
    )


# fmt: off
SELECTION_RULES: tuple[Rule, ...] = (
    Rule("test-id-missing", Category.TEST_NOT_FOUND, 0.97,
         _selector_with(frozenset({"missing_file", "missing_id"})),
         because="The command names a file or a test that does not exist."),
    Rule("selection-empty", Category.TEST_NOT_FOUND, 0.95, _empty_selector,
         because="The command's selection matches no test."),
    Rule("nothing-collected", Category.TEST_NOT_FOUND, 0.93, _nothing_collected,
         because="The session ended without a single test."),
    Rule("all-skipped", Category.TEST_NOT_FOUND, 0.9, _all_skipped, owner=Owner.TEST,
         because="All tests were skipped, so nothing was proved."),
    Rule("selection-proves-nothing", Category.TEST_NOT_FOUND, 0.8, _other_selection,
         because="The command's selection proves nothing."),
)
# fmt: on
