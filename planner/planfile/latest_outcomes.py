"""Find the outcomes of a plan, and say whether they are of the plan and the files as they are now."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING

from planner.errors import ForeignOutcomesError, OutcomeFileError
from planner.model.outcome import Outcome, OutcomeDocument, PlanRef, RunInfo, Summary
from planner.planfile.kept_runs import ChangedFiles, UnfinishedRun, changed_files, unfinished_run
from planner.planfile.loader import shown_path
from planner.planfile.plan_folder import PlanFolder
from planner.planfile.record_files import read_any_outcomes
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from planner.planfile.loader import LoadedPlan

_DIGITS = 12
_MAX_LINE = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundOutcomes:
    """The outcomes of one plan, without those of other plans of the same run, and what became of them."""

    path: Path
    """Where they are, or would be."""
    verify: str
    """The command that makes new ones, for someone in the current folder."""
    document: OutcomeDocument | None = None
    """``None`` before the first run."""
    plan_change: str | None = None
    """The sentence that says so, where they are of another version of the plan or of a sub-plan."""
    files: ChangedFiles = field(default_factory=ChangedFiles)
    """The files that have changed since they were found, and the todos whose verdicts are old for that."""
    unfinished: UnfinishedRun | None = None
    """The newest run of the plan, where that was killed or interrupted, or is still going on."""


def find_outcomes(
    loaded: LoadedPlan, given: Path | None = None, subs: Mapping[str, LoadedPlan] | None = None
) -> FoundOutcomes:
    """Find the outcomes in ``given``, by default those that the plan's last run left in its folder.

    ``subs`` are the loaded sub-plans by the qualified id of their parent. A file may also hold one outcome
    by itself, as a controller reports it; it is taken to be of the plan as it is now.
    Raises :class:`planner.errors.OutcomeFileError` for what is not there, cannot be read or does not fit
    the plan, and of its kind :class:`planner.errors.ForeignOutcomesError` for outcomes of other plans.
    """
    path = PlanFolder(loaded.root, loaded.plan.todo_list_id).outcomes if given is None else given
    verify = verify_command(loaded)
    if path.is_dir():
        raise OutcomeFileError(f"{shown_path(path)}: is a folder; name the outcome file in it")
    unfinished = unfinished_run(loaded.root, loaded.plan.todo_list_id) if given is None else None
    if not path.exists():
        if given is not None:
            raise OutcomeFileError(f"{shown_path(path)}: there is no such file; run first: {verify}")
        return FoundOutcomes(path=path, verify=verify, unfinished=unfinished)
    held = read_any_outcomes(path)
    document = _alone(held, loaded) if isinstance(held, Outcome) else held
    reference = _reference(loaded, document)
    if reference is None:
        names = ", ".join(f"'{ref.todo_list_id}' ({ref.path})" for ref in document.plans[:5]) or "no plan"
        raise ForeignOutcomesError(
            one_line(
                f"{shown_path(path)}: the outcomes are of {names}, not of '{loaded.plan.todo_list_id}' "
                f"({shown_path(loaded.path)}); name the right ones with --outcomes, or run: {verify}",
                limit=_MAX_LINE,
            )
        )
    subs = subs or {}
    changed = next(_changes(loaded, subs, reference), None)
    plan_change = None
    if changed is None:
        problem = next(_misfits(document, loaded, subs), None)
        if problem is not None:
            line = f"{shown_path(path)}: the outcome file cannot be used: {problem}"
            raise OutcomeFileError(one_line(line, limit=_MAX_LINE))
    else:
        plan_change = one_line(
            f"{shown_path(path)}: the outcomes are of another version of the plan: {changed}; "
            f"verify it: {verify}",
            limit=_MAX_LINE,
        )
    files = None
    if document.run.run_id:
        plans = [loaded.path, *(sub.path for sub in subs.values())]
        files = changed_files(loaded.root, loaded.plan.todo_list_id, document.run.run_id, plans)
    return FoundOutcomes(
        path=path,
        verify=verify,
        document=_only(document, reference),
        plan_change=plan_change,
        files=files or ChangedFiles(),
        unfinished=unfinished,
    )


def verify_command(loaded: LoadedPlan) -> str:
    """Return the command that makes new outcomes of the plan, for someone in the current folder."""
    return f"pytest --planverify {shlex.quote(shown_path(loaded.path))}"


def short_digest(digest: str) -> str:
    """Return enough of a digest to tell it from another: ``sha256:`` and twelve digits."""
    kind, colon, digits = digest.partition(":")
    return f"{kind}{colon}{digits[:_DIGITS]}"


def _alone(outcome: Outcome, loaded: LoadedPlan) -> OutcomeDocument:
    """Return the document of one outcome by itself. Nobody knows when it was found: its times are empty."""
    name = loaded.plan.todo_list_id
    return OutcomeDocument(
        plans=(
            PlanRef(todo_list_id=outcome.plan or name, path=shown_path(loaded.path), digest=loaded.digest),
        ),
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
    """Return what the outcomes say of this plan: the entry of its very bytes, else that of its name."""
    same = [ref for ref in document.plans if ref.todo_list_id == loaded.plan.todo_list_id]
    return next((ref for ref in same if ref.digest == loaded.digest), same[0] if same else None)


def _changes(loaded: LoadedPlan, subs: Mapping[str, LoadedPlan], reference: PlanRef) -> Iterator[str]:
    """Yield each file of the plan that is not as it was when it was verified."""
    files = [(reference.path, reference.digest, loaded)]
    files += [
        (sub.path, sub.digest, subs[sub.todo_id]) for sub in reference.sub_plans if sub.todo_id in subs
    ]
    for path, digest, now in files:
        if digest != now.digest:
            is_now = f"{shown_path(now.path)} has {short_digest(now.digest)}"
            yield f"of {path} with {short_digest(digest)}, and {is_now}"


def _only(document: OutcomeDocument, reference: PlanRef) -> OutcomeDocument:
    """Return the part of the document that is about one of its plans."""
    if len(document.plans) == 1:
        return document
    kept = tuple(entry for entry in document.outcomes if entry.plan in (None, reference.todo_list_id))
    return document.model_copy(update={"plans": (reference,), "outcomes": kept})


def _misfits(
    document: OutcomeDocument, loaded: LoadedPlan, subs: Mapping[str, LoadedPlan]
) -> Iterator[str]:
    """Yield what fits no todo of the plan: it would be passed over, and a failure with it."""
    name = loaded.plan.todo_list_id
    plans = {ref.todo_list_id for ref in document.plans}
    known = {todo.id for todo in loaded.plan.items}
    unloaded = {todo.id for todo in loaded.plan.items if todo.has_sub_plan}
    for within, sub in subs.items():
        known.update(f"{within}/{todo.id}" for todo in sub.plan.items)
        unloaded.update(f"{within}/{todo.id}" for todo in sub.plan.items if todo.has_sub_plan)
    below_unloaded = tuple(f"{each}/" for each in unloaded - subs.keys())
    seen: set[str] = set()
    for index, outcome in enumerate(document.outcomes):
        todo_id = outcome.todo_id
        if outcome.plan is not None and outcome.plan not in plans:
            yield (
                f"outcomes[{index}] is of the plan '{outcome.plan}', which is not among its plans; "
                "add it to plans, or correct the name"
            )
        if outcome.plan not in (None, name):
            continue
        if todo_id in seen:
            yield f"outcomes[{index}] is the second of todo '{todo_id}'; leave one of them"
        seen.add(todo_id)
        if todo_id not in known and not todo_id.startswith(below_unloaded):
            near = get_close_matches(todo_id, sorted(known), n=1)
            remedy = f"did you mean '{near[0]}'?" if near else "name the id of a todo of this plan"
            yield f"the plan '{name}' has no todo '{todo_id}'; {remedy}"
