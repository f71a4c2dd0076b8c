"""``planner history correct``: what a person says of a failure, kept with what the failure was like."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from planner.cli.ending import UsageMistake
from planner.cli.history_store import about_repository, fingerprint_here
from planner.errors import NoStoreError, OutcomeFileError
from planner.model.past import Correction
from planner.model.taxonomy import Category, Role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.edges.store import Store
    from planner.model.outcome import Failure
    from planner.model.taxonomy import Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What the person says."""

    role: Role | None = None
    category: Category | None = None
    owner: Owner | None = None
    because: str | None = None
    by: str | None = None
    was: Category | None = None
    """As what it was diagnosed, of a failure that nothing here knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """The failure, as the store or the last outcomes have it."""

    signature: str
    category: Category | None
    role: Role | None
    fingerprint: str | None
    features: tuple[str, ...]


def remember(signature: str, said: Said, store: str | None) -> Correction:
    """Keep a correction in the store, which is made where only the last outcomes know the failure yet.

    Raises ``UsageMistake`` where nothing is said, or the failure is known nowhere.
    """
    if said.role is None and said.category is None and said.owner is None:
        raise UsageMistake(
            "a correction has to correct something: tell with --category what kind of failure it was, with "
            "--owner whose it was, or with --role who should have acted"
        )
    place = about_repository(store).store
    of_outcomes = _told(signature, _outcomes_beside(place))
    with _opened(place, create=of_outcomes is not None) as opened:
        known, others = _seen(opened, signature)
        if known is not None and of_outcomes is not None and not known.features:
            known = replace(known, features=of_outcomes.features)  # seen by a planner that kept none
        correction = _correction(signature, said, known or of_outcomes, others)
        opened.record_correction(correction)
    return correction


def sentence(correction: Correction) -> str:
    """What is remembered, for the screen."""
    kind = "" if correction.right_category is None else f" {correction.right_category.value}"
    whose = "" if correction.right_owner is None else f" of the {correction.right_owner.value}"
    was = f" and was{kind}{whose}" if kind or whose else ""
    return (
        f"remembered: {correction.signature} ({correction.category.value}) is for the "
        f"{correction.role.value}{was}"
    )


def _correction(signature: str, said: Said, known: _Known | None, others: tuple[str, ...]) -> Correction:
    diagnosed = said.was or (known.category if known is not None else None)
    if diagnosed is None:
        from planner.cli.arguments import nearest

        near = nearest(signature, others, "it has seen")
        raise UsageMistake(
            f"the store has not seen a failure {signature}; {near}; "
            "of one that it has not seen, tell with --was as what it was diagnosed"
        )
    return Correction(
        at=datetime.now(UTC),
        fingerprint=(known.fingerprint if known is not None else None) or fingerprint_here() or "",
        signature=signature if known is None else known.signature,
        category=diagnosed,
        role=said.role or _role(said.category, diagnosed, known),
        right_category=said.category,
        right_owner=said.owner,
        features=() if known is None else known.features,
        by=said.by,
        because=said.because,
    )


def _role(category: Category | None, diagnosed: Category, known: _Known | None) -> Role:
    """Who should have acted where nobody says so: whoever acts on such failures."""
    if category is not None:
        return category.facts.default_role
    return (known.role if known is not None else None) or diagnosed.facts.default_role


def _opened(place: str, *, create: bool) -> Store:
    from planner.edges.store import Store

    try:
        return Store.open(place, create=False)
    except NoStoreError:
        if not create:
            raise
        return Store.open(place)


def _seen(store: Store, signature: str) -> tuple[_Known | None, tuple[str, ...]]:
    """The failure as the store has it, and the signatures that it has."""
    from planner.edges.store import telling

    with store.asking("reading what was seen") as connection:
        known = telling.signatures(connection)
        begin = [each for each in known if signature and each.startswith(signature)]
        whole = begin[0] if len(begin) == 1 and signature not in known else signature
        seen = telling.seen(connection, whole)
    if seen is None:
        return None, known
    return _Known(
        signature=seen.signature,
        category=None if seen.category is None else Category(seen.category),
        role=None if seen.role is None else Role(seen.role),
        fingerprint=seen.fingerprint,
        features=seen.features,
    ), known


def _outcomes_beside(place: str) -> Path:
    """The last outcomes of the project that the store belongs to, or of the one here."""
    from planner.planfile.plan_folder import LATEST

    beside = Path(place).parent / Path(LATEST).name
    return beside if "://" not in place and beside.exists() else Path(LATEST)


def _told(signature: str, path: Path) -> _Known | None:
    """The failure as the last run told it, if that told of exactly one whose signature begins so."""
    found = {failure.signature: failure for failure in _failures(path)}
    begin = [name for name in found if name is not None and signature and name.startswith(signature)]
    name = signature if signature in found else begin[0] if len(begin) == 1 else None
    if name is None:
        return None
    failure = found[name]
    return _Known(
        signature=name,
        category=failure.category,
        role=failure.target_agent,
        fingerprint=None,
        features=failure.features or (),
    )


def _failures(path: Path) -> Iterator[Failure]:
    from planner.edges.outcome_file import read_outcomes

    try:
        document = read_outcomes(path)
    except (OutcomeFileError, OSError):
        return  # there is none, or none that can be read: the store alone knows failures then
    for outcome in document.outcomes:
        yield from outcome.failures
