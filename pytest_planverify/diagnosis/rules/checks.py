"""Rules for criteria other than tests: artifacts, fixtures, metrics, contracts, questions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.model.kinds import EvidenceKind
from planner.model.outcome import Location
from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis.boundaries import who_changed
from pytest_planverify.diagnosis.rule import Hit, Reader, Rule
from pytest_planverify.diagnosis.wording import nearest, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from planner.model.evidence import ArtifactFact, ContractFact, MetricFact
    from pytest_planverify.diagnosis.reading import Case

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


CHECK_RULES: tuple[Rule, ...] = (
    Rule(
        id="artifact-missing",
        because="A file that the plan expects is not there.",
        category=Category.ARTIFACT_MISSING,
        confidence=0.98,
        read=_artifact_with(_ABSENT.__contains__),
    ),
    Rule(
        id="artifact-plan-fault",
        because="What the plan says about the artifact cannot be checked.",
        category=Category.ARTIFACT_MISSING,
        confidence=0.9,
        owner=Owner.PLAN,
        read=_artifact_with(_PLAN_FAULTS.__contains__),
    ),
    Rule(
        id="artifact-schema",
        because="The artifact is there and breaks the schema that it was promised to satisfy.",
        category=Category.ARTIFACT_MISSING,
        confidence=0.85,
        runner_up=(Category.SPEC_MISMATCH, 0.3),
        read=_artifact_with(lambda problem: problem == "schema"),
    ),
    Rule(
        id="artifact-not-as-promised",
        because="The artifact is there, but not what the plan asks for.",
        category=Category.ARTIFACT_MISSING,
        confidence=0.93,
        read=_artifact_with(lambda problem: True),
    ),
    Rule(
        id="fixture-file-missing",
        because="The data file that the criterion names cannot be used.",
        category=Category.ARTIFACT_MISSING,
        confidence=0.93,
        owner=Owner.PLAN,
        read=_fixture_file,
    ),
    Rule(
        id="metric-unmet",
        because="A recorded number does not satisfy the plan's comparison.",
        category=Category.METRIC_UNMET,
        confidence=0.97,
        read=_metric_with({"unmet"}),
    ),
    Rule(
        id="metric-not-recorded",
        because="No test of the todo recorded the metric.",
        category=Category.METRIC_UNMET,
        confidence=0.93,
        owner=Owner.TEST,
        read=_metric_with({"not_recorded"}),
    ),
    Rule(
        id="metric-not-a-number",
        because="What was recorded is no finite number.",
        category=Category.METRIC_UNMET,
        confidence=0.93,
        read=_metric_with({"not_a_number"}),
    ),
    Rule(
        id="contract-broken",
        because="The code does not have the interface that the contract promises.",
        category=Category.SPEC_MISMATCH,
        confidence=0.97,
        read=_contract_with({"missing_function", "signature"}),
    ),
    Rule(
        id="contract-module-missing",
        because="The module that the contract describes does not exist.",
        category=Category.SPEC_MISMATCH,
        confidence=0.85,
        runner_up=(Category.ARTIFACT_MISSING, 0.4),
        read=_contract_with({"missing_module"}),
    ),
    Rule(
        id="contract-unreadable",
        because="The contract file itself cannot be read.",
        category=Category.SPEC_MISMATCH,
        confidence=0.85,
        owner=Owner.PLAN,
        read=_contract_with({"unreadable"}),
    ),
    Rule(
        id="contract-unresolved",
        because="The interface cannot be told by looking at the source.",
        category=Category.SPEC_MISMATCH,
        confidence=0.4,
        owner=Owner.UNKNOWN,
        runner_up=(Category.UNKNOWN, 0.3),
        read=_contract_with({"unresolved"}),
    ),
    Rule(
        id="answered-no",
        because="A person looked at the result and refused it.",
        category=Category.TEST_REGRESSION,
        confidence=0.7,
        runner_up=(Category.SPEC_MISMATCH, 0.3),
        read=_manual,
    ),
)
