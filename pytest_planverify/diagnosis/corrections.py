"""Sharpen an unsure diagnosis by what people corrected: a vote of the corrections of failures like it.

It speaks only below :data:`SURE`, never against a rule of :data:`HARD`, never for what the facts exclude,
and never by the word of one person on one day alone. A verdict does not depend on it."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from planner.model.outcome import Diagnosis, RunnerUp
from planner.model.taxonomy import Category
from planner.model.verdicts import EvidenceKind
from pytest_planverify.diagnosis.case import PROJECT_SIDES, Case
from pytest_planverify.diagnosis.rules.criteria import CHECK_RULES, GUARD_RULES, SELECTION_RULES
from pytest_planverify.diagnosis.rules.processes import PROCESS_RULES, REPETITION_RULES, TIMEOUT_RULES
from pytest_planverify.diagnosis.signatures import complaints, first_line, mask, stem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from planner.model.evidence import Evidence
    from planner.model.past import Correction
    from planner.model.taxonomy import Owner, Role


def is_possible(category: Category, evidence: Evidence) -> bool:
    """Return whether nothing that was observed stands against the category.

    What takes proof is never possible by somebody's word: flakiness takes both answers, a violation or a
    budget a guard that saw it, a fault of the harness one that it knows of itself.
    """
    case = Case.of(evidence)
    command, process = evidence.command, case.process
    purpose = command.purpose if command is not None else ""
    errors = (case.error, *(each.error for each in case.deeper))
    names = {name for error in errors for name in (error.qualified, *error.bases)}
    is_missing = not names.isdisjoint(("builtins.FileNotFoundError", "builtins.ModuleNotFoundError"))
    is_kind = not names.isdisjoint(("builtins.TypeError", "builtins.AttributeError"))
    runs_code = purpose in ("test", "validate", "build")
    possible: dict[Category, object] = {
        Category.TEST_REGRESSION: case.has_error or runs_code or evidence.kind is EvidenceKind.MANUAL,
        Category.TEST_TIMEOUT: case.timed_out or evidence.swallowed_timeout,
        Category.TEST_CRASH: process.signal or (process.exit_code is not None and not process.complete),
        Category.TEST_NOT_FOUND: evidence.selectors or evidence.vacuous,
        Category.COMPILATION_ERROR: "builtins.SyntaxError" in names or runs_code,
        Category.TYPE_ERROR: is_kind or purpose in ("type_check", "build"),
        Category.LINT_ERROR: purpose in ("lint", "format"),
        Category.IMPORT_ERROR: "builtins.ImportError" in names or command,
        Category.SPEC_MISMATCH: case.has_error or evidence.contract or command,
        Category.ARTIFACT_MISSING: evidence.artifact or is_missing,
        Category.METRIC_UNMET: evidence.metric,
        Category.ENVIRONMENT_ERROR: True,
    }
    return bool(possible.get(category))


FRAMES = 3
"""So many of the project's frames nearest to the raise are compared."""

CHAIN = 4
WORDS = 24
"""So many words of the message."""

FINDINGS = 3
LONGEST = 80
"""Characters of one feature."""

_WORD = re.compile(r"[\w.]+|[=!<>]+|[+*/%-]")


def features(evidence: Evidence) -> tuple[str, ...]:
    """Return what of a failure is compared with others, in order: no line numbers, no values, no paths.

    The kind of the check and its phase, the chain of exceptions, whose code raised, the functions of the
    project on the way there, the tool, and the words of the message with its literals masked.
    """
    case = Case.of(evidence)
    command = evidence.command
    if command is not None and command.findings:
        message = " ".join(complaints(command)[:FINDINGS])
    else:
        message = first_line(
            case.error.message if case.has_error else evidence.headline or evidence.longrepr
        )
    words = _WORD.findall(mask(message))[:WORDS]
    return (*dict.fromkeys(each[:LONGEST] for each in _named(case)), *(word[:LONGEST] for word in words))


def _named(case: Case) -> Iterator[str]:
    evidence = case.evidence
    yield f"kind:{evidence.kind.value}"
    if evidence.phase is not None:
        yield f"phase:{evidence.phase.value}"
    chain = evidence.exceptions or ((case.error,) if case.has_error else ())
    for error in (*chain[:CHAIN], *evidence.exceptions_in_group[:CHAIN]):
        yield f"error:{error.qualified}"
    if case.innermost is not None:
        yield f"raised:{case.innermost.side.value}"
    mine = [frame for frame in case.frames if frame.side in PROJECT_SIDES]
    if mine:
        yield f"side:{mine[-1].side.value}"
    for frame in reversed(mine[-FRAMES:]):
        yield f"at:{stem(frame.path)}.{frame.function}"
    if evidence.command is not None:
        yield f"tool:{evidence.command.tool}"
    process = evidence.process
    if process is not None and (process.signal or process.exit_code is not None):
        yield f"end:{process.signal or process.exit_code}"


def likeness(one: Sequence[str], other: Sequence[str]) -> float:
    """Return the share of features in common, and that of pairs of neighbours: from 0 to 1."""
    if not one or not other:
        return 0.0
    ones, one_pairs = _sets(tuple(one))
    others, other_pairs = _sets(tuple(other))
    return (_jaccard(ones, others) + _jaccard(one_pairs, other_pairs)) / 2


@lru_cache(maxsize=4_096)
def _sets(one: tuple[str, ...]) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    return frozenset(one), frozenset(zip(("", *one), (*one, ""), strict=True))


def _jaccard(one: frozenset[object], other: frozenset[object]) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)


RULE = "learned"

SURE = 0.7
"""A diagnosis that is as confident as this is left as it is."""

NEIGHBOURS = 5
"""So many corrections have a vote: those that weigh most."""

ALIKE = 0.5
"""Failures that have less in common say nothing about each other."""

NEARLY = 0.85
"""At most so much counts the likeness of failures whose signatures differ."""

KEPT_A_DAY = 0.95
"""What is left of a correction's weight after a day, as of everything that is remembered."""

WITNESSES = 2
"""So many corrections have to agree that are independent: of other people, or of other days."""

SHRINKAGE = 0.25
"""The weight of not knowing, which keeps a few votes from being sure. Fitted on streams of corrections, of
honest people and of some who err, over the part of the corpus to develop on."""

HARD = frozenset(
    rule.id
    for rules in (
        GUARD_RULES,
        CHECK_RULES,
        SELECTION_RULES,
        REPETITION_RULES,
        TIMEOUT_RULES,
        PROCESS_RULES,
    )
    for rule in rules
) - {"contract-unresolved", "answered-no"}
"""Rules that rest on hard evidence: what a guard saw, artifacts and metrics, what a selector matched, both
answers of the same code, a limit that was passed, a signal."""


_Word = TypeVar("_Word")


@dataclass(frozen=True, slots=True)
class _Vote:
    """The vote of one correction on this failure, and its weight."""

    category: Category
    owner: Owner
    role: Role
    weight: float
    likeness: float
    witness: tuple[str, str]
    """Who said so on which day."""


def may_learn(diagnosis: Diagnosis) -> bool:
    """Return whether corrections can change a diagnosis. Cheap: ask before they are read."""
    return diagnosis.confidence < SURE and diagnosis.rule not in HARD


def learned(
    diagnosis: Diagnosis, evidence: Evidence, corrections: Sequence[Correction], now: datetime
) -> Diagnosis:
    """The diagnosis as the corrections of failures like this one have it; the same where they say nothing.

    Its signature stays: the cause is the same, whatever it is called.
    """
    if not corrections or not may_learn(diagnosis):
        return diagnosis
    votes = _votes(diagnosis, evidence, corrections, now)
    category = _winner(votes, lambda vote: vote.category, diagnosis.category, diagnosis.confidence)
    agreeing = [vote for vote in votes if vote.category is category]
    if category is diagnosis.category:
        owner = _winner(agreeing, lambda vote: vote.owner, diagnosis.owner, diagnosis.confidence)
        agreeing = [vote for vote in agreeing if vote.owner is owner]
    else:
        owner = _heaviest(agreeing, lambda vote: vote.owner)
    if (category, owner) == (diagnosis.category, diagnosis.owner):
        return diagnosis
    return _changed(diagnosis, category, owner, agreeing, sum(vote.weight for vote in votes))


def _changed(
    diagnosis: Diagnosis, category: Category, owner: Owner, agreeing: Sequence[_Vote], total: float
) -> Diagnosis:
    support = sum(vote.weight for vote in agreeing)
    confidence = round(support / (total + SHRINKAGE), 3)
    other = RunnerUp(category=diagnosis.category, confidence=min(diagnosis.confidence, confidence))
    role = _winner(agreeing, lambda vote: vote.role, category.facts.default_role, 0.0)
    return diagnosis.model_copy(
        update={
            "category": category,
            "owner": owner,
            "confidence": confidence,
            "rule": RULE,
            "because": _because(diagnosis, category, owner, agreeing),
            "runner_up": diagnosis.runner_up if category is diagnosis.category else other,
            "target_agent": None if role is category.facts.default_role else role,
        }
    )


def _because(diagnosis: Diagnosis, category: Category, owner: Owner, agreeing: Sequence[_Vote]) -> str:
    same = sum(vote.likeness == 1 for vote in agreeing)
    others = [vote.likeness for vote in agreeing if vote.likeness < 1]
    parts = [f"{same} of this very failure"] if same else []
    if others:
        parts.append(f"{len(others)} of failures that are {max(others):.0%} like it or less")
    corrections = "corrections say" if len(agreeing) > 1 else "correction says"
    return (
        f"{len(agreeing)} {corrections} {category.value} of the {owner.value} ({', '.join(parts)}); the "
        f"rule {diagnosis.rule} alone would say {diagnosis.category.value} of the {diagnosis.owner.value}."
    )


def _votes(
    diagnosis: Diagnosis, evidence: Evidence, corrections: Iterable[Correction], now: datetime
) -> list[_Vote]:
    """The corrections that say most of this failure, at most :data:`NEIGHBOURS` and one of a person a day.

    Those that the facts exclude have no vote.
    """
    mine = features(evidence)
    found: dict[tuple[str, str], _Vote] = {}
    for correction in _latest_words(corrections):
        is_same = correction.signature == diagnosis.signature
        alike = 1.0 if is_same else min(likeness(mine, correction.features), NEARLY)
        category = correction.right_category or correction.category
        if alike < ALIKE or not is_possible(category, evidence):
            continue
        if category is correction.category is not diagnosis.category and not is_same:
            continue  # it confirms how another failure was read, which is no reason to read this one so
        age_days = max((now - correction.at).total_seconds() / 86_400, 0.0)
        witness = (correction.by or "", correction.at.date().isoformat())
        vote = _Vote(
            category=category,
            owner=correction.right_owner or _owner_of(category, diagnosis),
            role=correction.role,
            weight=alike**2 * KEPT_A_DAY**age_days,
            likeness=alike,
            witness=witness,
        )
        if witness not in found or vote.weight >= found[witness].weight:
            found[witness] = vote
    heaviest = sorted(found.values(), key=lambda vote: (-vote.weight, vote.witness))
    return heaviest[:NEIGHBOURS]


def _latest_words(corrections: Iterable[Correction]) -> list[Correction]:
    """Return the corrections of a failure, oldest first; only the last of each person."""
    telling = sorted(
        (each for each in corrections if each.right_category or each.right_owner), key=lambda each: each.at
    )
    last = {(each.by, each.signature): each for each in telling}
    return [each for each in telling if _reading(each) == _reading(last[each.by, each.signature])]


def _reading(correction: Correction) -> tuple[Category, Owner | None]:
    return correction.right_category or correction.category, correction.right_owner


def _owner_of(category: Category, diagnosis: Diagnosis) -> Owner:
    """Return whose it is where the correction does not say: as the rules have it, or as it mostly is."""
    return diagnosis.owner if category is diagnosis.category else category.facts.usual_owner


def _winner(
    votes: Sequence[_Vote], word_of: Callable[[_Vote], _Word], default: _Word, prior: float
) -> _Word:
    """Return the majority of independent votes; conflicts cancel each other."""
    weights: dict[_Word, float] = defaultdict(float)
    witnesses: dict[_Word, set[tuple[str, str]]] = defaultdict(set)
    for vote in votes:
        weights[word_of(vote)] += vote.weight
        witnesses[word_of(vote)].add(vote.witness)
    best = max(weights, key=lambda word: weights[word], default=default)
    against = sum(weights.values()) - weights[best]
    if len(witnesses[best]) < WITNESSES or weights[best] - against <= prior:
        return default
    return best


def _heaviest(votes: Sequence[_Vote], word_of: Callable[[_Vote], Owner]) -> Owner:
    weights: dict[Owner, float] = defaultdict(float)
    for vote in votes:
        weights[word_of(vote)] += vote.weight
    return max(weights, key=lambda word: weights[word])
