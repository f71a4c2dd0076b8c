"""Finds the outcomes of a plan, and tells whether they are of this plan as it is now."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from planner.edges.outcome_file import read_any_outcomes
from planner.edges.outcome_fitting import refuse_misfits
from planner.errors import ForeignOutcomesError, NoOutcomesError, OutcomeFileError, StaleOutcomesError
from planner.model.outcome import Outcome, OutcomeDocument, PlanRef, RunInfo, Summary
from planner.planfile.plan_folder import PlanFolder
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from planner.planfile.loader import LoadedPlan

_DIGITS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestOutcomes:
    """The outcomes of one plan, without those of other plans of the same run."""

    document: OutcomeDocument
    path: Path
    stale: str | None = None
    """The sentence that says so, where the plan has changed since."""


def latest_outcomes(
    loaded: LoadedPlan, given: Path | None = None, subs: Mapping[str, LoadedPlan] | None = None
) -> LatestOutcomes:
    """The outcomes in ``given``, by default those that the plan's last run left in its folder.

    A file may also hold one outcome by itself, as a controller reports it; it is taken to be of the plan as
    it is now.
    Raises :class:`planner.errors.NoOutcomesError` where there are none yet,
    :class:`planner.errors.ForeignOutcomesError` for those of other plans, and
    :class:`planner.errors.OutcomeFileError` for what cannot be read. Of a plan that has changed since, or
    one of whose sub-plans has (``subs``, by the qualified id of their parent), they are ``stale``.
    """
    path = PlanFolder(loaded.root, loaded.plan.todo_list_id).outcomes if given is None else given
    if path.is_dir():
        raise OutcomeFileError(f"{shown(path)}: is a folder; name the outcome file in it")
    if not path.exists():
        missing = "there are no outcomes of the plan yet" if given is None else "there is no such file"
        raise NoOutcomesError(f"{shown(path)}: {missing}; run first: {verify_command(loaded)}")
    held = read_any_outcomes(path)
    document = _alone(held, loaded) if isinstance(held, Outcome) else held
    reference = _reference(loaded, document)
    if reference is None:
        names = ", ".join(f"'{ref.todo_list_id}' ({ref.path})" for ref in document.plans[:5]) or "no plan"
        raise ForeignOutcomesError(
            _line(
                f"{shown(path)}: the outcomes are of {names}, not of '{loaded.plan.todo_list_id}' "
                f"({shown(loaded.path)}); name the right ones with --outcomes, or run: "
                f"{verify_command(loaded)}"
            )
        )
    changed = next(_changes(loaded, subs or {}, reference), None)
    stale = None
    if changed is None:
        refuse_misfits(document, loaded, subs or {}, where=shown(path))
    else:
        stale = _line(
            f"{shown(path)}: the outcomes are of another version of the plan: {changed}; verify it: "
            f"{verify_command(loaded)}"
        )
    return LatestOutcomes(document=_only(document, reference), path=path, stale=stale)


def fresh_outcomes(
    loaded: LoadedPlan, given: Path | None = None, subs: Mapping[str, LoadedPlan] | None = None
) -> LatestOutcomes:
    """As :func:`latest_outcomes`; raises :class:`planner.errors.StaleOutcomesError` for stale ones, too."""
    found = latest_outcomes(loaded, given, subs)
    if found.stale is not None:
        raise StaleOutcomesError(found.stale)
    return found


def verify_command(loaded: LoadedPlan) -> str:
    """The command that makes new outcomes of the plan, for someone in the current folder."""
    return f"pytest --planverify {shlex.quote(shown(loaded.path))}"


def shown(path: Path) -> str:
    """The path as a person in the current folder would write it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def short_digest(digest: str) -> str:
    """Enough of a digest to tell it from another: ``sha256:`` and twelve digits."""
    kind, colon, digits = digest.partition(":")
    return f"{kind}{colon}{digits[:_DIGITS]}"


def _alone(outcome: Outcome, loaded: LoadedPlan) -> OutcomeDocument:
    """The document of one outcome by itself. Nobody knows when it was found: its times are empty."""
    name = loaded.plan.todo_list_id
    return OutcomeDocument(
        plans=(PlanRef(todo_list_id=outcome.plan or name, path=shown(loaded.path), digest=loaded.digest),),
        run=RunInfo(
            run_id="",
            started_at="",
            finished_at="",
            duration_ms=outcome.metrics.duration_ms or 0,
            exit_status=0 if outcome.success else 1,
            scope="all",
            python="",
            pytest="",
        ),
        summary=Summary(),
        outcomes=(outcome,),
    )


def _reference(loaded: LoadedPlan, document: OutcomeDocument) -> PlanRef | None:
    """What the outcomes say of this plan: the entry of its very bytes, else that of its name."""
    same = [ref for ref in document.plans if ref.todo_list_id == loaded.plan.todo_list_id]
    return next((ref for ref in same if ref.digest == loaded.digest), same[0] if same else None)


def _changes(loaded: LoadedPlan, subs: Mapping[str, LoadedPlan], reference: PlanRef) -> Iterator[str]:
    """Each file of the plan that is not as it was when it was verified."""
    files = [(reference.path, reference.digest, loaded)]
    files += [
        (sub.path, sub.digest, subs[sub.todo_id]) for sub in reference.sub_plans if sub.todo_id in subs
    ]
    for path, digest, now in files:
        if digest != now.digest:
            is_now = f"{shown(now.path)} has {short_digest(now.digest)}"
            yield f"of {path} with {short_digest(digest)}, and {is_now}"


def _only(document: OutcomeDocument, reference: PlanRef) -> OutcomeDocument:
    """The part of the document that is about one of its plans."""
    if len(document.plans) == 1:
        return document
    kept = tuple(entry for entry in document.outcomes if entry.plan in (None, reference.todo_list_id))
    return document.model_copy(update={"plans": (reference,), "outcomes": kept})


def _line(text: str) -> str:
    return " ".join(clean(text, limit=600).split())
