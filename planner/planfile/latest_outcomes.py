"""Find the outcomes of a plan, and say whether they are of the plan and the files as they are now.

The journals of the kept runs stand below ``.planverify/runs``. The code under test can write there, so
nothing in them is believed to be in order: a journal that is torn, foreign or no plain file is passed over.
"""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from planner.errors import ForeignOutcomesError, OutcomeFileError
from planner.model.base import ReadValue
from planner.model.outcome import Outcome, OutcomeDocument, PlanRef, RunInfo, Summary
from planner.model.verdicts import TodoState
from planner.planfile.loader import shown_path
from planner.planfile.plan_folder import HOME, PlanFolder
from planner.planfile.project_files import digest_of, is_code, open_regular, walk
from planner.planfile.record_files import read_any_outcomes
from planner.planfile.tree import todo_digests
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence, Set
    from pathlib import Path

    from planner.planfile.loader import LoadedPlan

LARGEST_JOURNAL = 256 * 1024 * 1024
MOST_FILES = 20_000
"""Of a project with more files nobody is told which have changed: looking would take too long."""

_LATEST = datetime(9999, 12, 31, tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedRun:
    """The newest run of a plan, which has not come to its end."""

    run_id: str
    started_at: str
    """RFC 3339, UTC."""
    state: Literal["running", "killed", "interrupted"]
    judged: int
    """How many criteria had their verdict by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFiles:
    """Files that are not as they were when a run judged; paths are relative to the plan's root."""

    paths: tuple[str, ...] = ()
    by_todo: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    """Of each todo whose verdict is old for that, those of the files that it rests on."""


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
    """The sentence that says so, where they are of another version of the plan or of a sub-plan, and no
    verdict holds for what the plan says now."""
    changed_todos: tuple[str, ...] = ()
    """Where others hold, the todos that are new or say something else now; ``document`` is without them."""
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
    subs, plan_id, verify = subs or {}, loaded.plan.todo_list_id, verify_command(loaded)
    path = PlanFolder(loaded.root, plan_id).outcomes if given is None else given
    shown = shown_path(path)
    if path.is_dir():
        raise OutcomeFileError(f"{shown}: is a folder; name the outcome file in it")
    unfinished = unfinished_run(loaded.root, plan_id) if given is None else None
    if not path.exists():
        if given is not None:
            raise OutcomeFileError(f"{shown}: there is no such file; run first: {verify}")
        return FoundOutcomes(path=path, verify=verify, unfinished=unfinished)
    held = read_any_outcomes(path)
    document = _alone(held, loaded) if isinstance(held, Outcome) else held
    # The entry of the plan's very bytes, else that of its name.
    same = [ref for ref in document.plans if ref.todo_list_id == plan_id]
    reference = next((ref for ref in same if ref.digest == loaded.digest), same[0] if same else None)
    if reference is None:
        names = ", ".join(f"'{ref.todo_list_id}' ({ref.path})" for ref in document.plans[:5]) or "no plan"
        problem = (
            f"the outcomes are of {names}, not of '{plan_id}' ({shown_path(loaded.path)}); name the right "
            f"ones with --outcomes, or run: {verify}"
        )
        raise ForeignOutcomesError(one_line(f"{shown}: {problem}", limit=600))
    plan_change, changed_todos = None, ()
    changed = _plan_change(loaded, subs, reference)
    if changed is not None:
        now = todo_digests(loaded, subs)
        changed_todos = tuple(each for each, digest in now.items() if reference.todos.get(each) != digest)
        document = _without_changed(document, plan_id, now.keys() - set(changed_todos))
        if len(changed_todos) == len(now):
            problem = f"the outcomes are of another version of the plan: {changed}; verify it: {verify}"
            plan_change = one_line(f"{shown}: {problem}", limit=600)
    elif (problem := next(_misfits(document, loaded, subs), None)) is not None:
        raise OutcomeFileError(one_line(f"{shown}: the outcome file cannot be used: {problem}", limit=600))
    files = None
    if document.run.run_id:
        plans = [loaded.path, *(sub.path for sub in subs.values())]
        files = changed_files(loaded.root, plan_id, document.run.run_id, plans)
    if len(document.plans) > 1:
        own = tuple(each for each in document.outcomes if each.plan in (None, plan_id))
        document = document.model_copy(update={"plans": (reference,), "outcomes": own})
    return FoundOutcomes(
        path=path,
        verify=verify,
        document=document,
        plan_change=plan_change,
        changed_todos=changed_todos,
        files=files or ChangedFiles(),
        unfinished=unfinished,
    )


def _without_changed(document: OutcomeDocument, plan_id: str, same: Set[str]) -> OutcomeDocument:
    """Return the outcomes of the plan whose todos say the ``same``, and were not blocked by another."""
    kept = [
        each
        for each in document.outcomes
        if each.plan not in (None, plan_id) or (each.todo_id in same and same.issuperset(each.blocked_by))
    ]
    return document.model_copy(update={"outcomes": tuple(kept)})


def verify_command(loaded: LoadedPlan) -> str:
    """Return the command that makes new outcomes of the plan, for someone in the current folder."""
    return f"pytest --planverify {shlex.quote(shown_path(loaded.path))}"


def short_digest(digest: str) -> str:
    """Return enough of a digest to tell it from another: ``sha256:`` and twelve digits."""
    return digest[: len("sha256:") + 12]


def _alone(outcome: Outcome, loaded: LoadedPlan) -> OutcomeDocument:
    """Return the document of one outcome by itself. Nobody knows when it was found: its times are empty."""
    plan_id = outcome.plan or loaded.plan.todo_list_id
    unknown = dict.fromkeys(("run_id", "started_at", "finished_at", "python", "pytest"), "")
    return OutcomeDocument(
        plans=(PlanRef(todo_list_id=plan_id, path=shown_path(loaded.path), digest=loaded.digest),),
        run=RunInfo(
            duration_ms=outcome.metrics.duration_ms or 0,
            exit_status=0 if outcome.success else 1,
            scope="all",
            **unknown,
        ),
        summary=Summary(),
        outcomes=(outcome,),
    )


def _plan_change(loaded: LoadedPlan, subs: Mapping[str, LoadedPlan], reference: PlanRef) -> str | None:
    """Name the first file of the plan that is not as it was when it was verified."""
    files = [(reference.path, reference.digest, loaded)]
    files += [
        (sub.path, sub.digest, subs[sub.todo_id]) for sub in reference.sub_plans if sub.todo_id in subs
    ]
    for path, digest, now in files:
        if digest != now.digest:
            is_now = f"{shown_path(now.path)} has {short_digest(now.digest)}"
            return f"of {path} with {short_digest(digest)}, and {is_now}"
    return None


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


# -- kept runs -----------------------------------------------------------------------------------------


class _Reference(ReadValue):
    todo_list_id: str


class _Check(ReadValue):
    id: str
    kind: str
    verdict: str
    title: str | None = None
    """Of an artifact its path."""


class _Basis(ReadValue):
    files: dict[str, str] = Field(default_factory=dict)


class _Record(ReadValue):
    """Fields that are read of a journal's records, whatever their kind."""

    model_config = ConfigDict(strict=True)

    record: str
    at: Annotated[float, Field(ge=0, le=_LATEST)]
    plan: str | None = None
    todo_id: str = ""
    run_id: str = ""
    pid: int = 0
    reference: _Reference | None = None
    verifies: bool = True
    interrupted: Any = None
    state: str = ""
    check: _Check | None = None
    rests_on: _Basis | None = None

    @property
    def moment(self) -> str:
        """Return when it was written, RFC 3339 in UTC."""
        moment = datetime.fromtimestamp(self.at, UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    @property
    def basis(self) -> dict[str, str]:
        """Return the digests of the files that the verdict was seen to rest on."""
        return self.rests_on.files if self.rests_on else {}

    @property
    def rests_on_all(self) -> bool:
        """Return whether nobody knows which files the verdict rests on."""
        return self.rests_on is None and self.check is not None and self.check.kind in ("test", "command")

    def begins(self, plan_id: str) -> bool:
        """Return whether it begins a verification of the plan."""
        of = None if self.reference is None else self.reference.todo_list_id
        return self.record == "run_started" and of == plan_id and self.verifies


def unfinished_run(root: Path, plan_id: str) -> UnfinishedRun | None:
    """Return the newest run of the plan, unless it came to its end. Never raises."""
    for _, records in _kept_runs(root, "run_started", "run_finished", "check_judged"):
        if not records or not records[0].begins(plan_id):
            continue
        ends = (each for each in records if each.record == "run_finished")
        end = next((each for each in ends if each.plan in (None, plan_id)), None)
        if end is not None and not end.interrupted:
            return None
        started = records[0]
        return UnfinishedRun(
            run_id=started.run_id,
            started_at=started.moment,
            state="interrupted" if end is not None else "running" if _is_alive(started) else "killed",
            judged=len({(each.todo_id, each.check.id) for each in records if each.check is not None}),
        )
    return None


def blocked_since(root: Path, plan_id: str) -> dict[str, str]:
    """Return since which run each todo of the plan has been blocked without interruption. Never raises.

    Only runs count that came to their end; one that left a todo out interrupts nothing.
    """
    since: dict[str, str] = {}
    free: set[str] = set()
    for _, records in _kept_runs(root, "todo_judged", "run_finished"):
        mine = [each for each in records if each.plan == plan_id]
        if not any(each.record == "run_finished" for each in mine):
            continue
        for each in mine:
            if each.state == TodoState.BLOCKED and each.todo_id not in free:
                since[each.todo_id] = each.moment
            elif each.state not in ("", TodoState.PENDING):
                free.add(each.todo_id)
    return since


def changed_files(root: Path, plan_id: str, run_id: str, apart: Sequence[Path] = ()) -> ChangedFiles | None:
    """Return which files have changed since the run; what lies ``apart``, as the plan's files, is left out.

    A file counts that a verdict was seen to rest on, and further ones where they are code or a verdict's
    basis is unknown. ``None`` where nobody knows: the run is not kept, or there are too many files.
    """
    runs = _kept_runs(root, "run_started", "check_judged", "run_finished")
    records = next((held for name, held in runs if name.partition(".")[0] == run_id), None)
    names = set(islice(walk(root), MOST_FILES + 1))
    if not records or not records[0].begins(plan_id) or len(names) > MOST_FILES:
        return None
    ended = max(each.at for each in records)
    # Of a check that was confirmed, the last verdict counts.
    last = {(each.todo_id, each.check.id): (each, each.check) for each in records if each.check is not None}
    known = {name: digest for each, _ in last.values() for name, digest in each.basis.items()}
    changed = {name for name, digest in known.items() if digest_of(root / name, follow=True) != digest}
    titles = {check.title for _, check in last.values()}
    counts_all = any(each.rests_on_all for each, _ in last.values())
    for name in names - known.keys():
        if counts_all or is_code(name) or name in titles:
            with suppress(OSError):
                if (root / name).lstat().st_mtime > ended:
                    changed.add(name)
    changed -= {os.path.relpath(each, root) for each in apart}
    by_todo: dict[str, set[str]] = {}
    for each, check in last.values():
        old = changed if each.rests_on_all else changed & {check.title, *each.basis}
        if check.verdict != "passed":
            # What it lacked may be in a file that nothing had read, as in one that was not there.
            old = old | (changed - known.keys())
        if old:
            by_todo.setdefault(each.todo_id, set()).update(old)
    return ChangedFiles(
        paths=tuple(sorted(changed)),
        by_todo={todo_id: tuple(sorted(names)) for todo_id, names in by_todo.items()},
    )


def _kept_runs(root: Path, *kinds: str) -> Iterator[tuple[str, list[_Record]]]:
    """Yield the runs of any plan of the root, the newest first: the name, and records of these kinds."""
    folder = root / HOME / "runs"
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
            # A name begins with the second in which the run began.
            newest = sorted(
                (each.name.partition("-")[0], each.stat().st_mtime_ns, each.name) for each in found
            )
    except OSError:
        return
    for _, _, name in reversed(newest):
        yield name, list(_parent_records(folder / name / "journal.jsonl", kinds))


def _parent_records(path: Path, kinds: Sequence[str]) -> Iterator[_Record]:
    """Yield those of the supervising process's records that are of these kinds, in their order."""
    heads = tuple(f'{{"record": "{kind}", "session": "parent", '.encode() for kind in kinds)
    with suppress(OSError), open_regular(path, follow=False) as stream:
        if os.fstat(stream.fileno()).st_size > LARGEST_JOURNAL:
            return
        for line in stream:
            if line.startswith(heads) and line.endswith(b"\n"):
                with suppress(ValidationError):
                    yield _Record.model_validate_json(line)


def _is_alive(started: _Record) -> bool:
    """Return whether the process that supervises the run is alive, and is not another of its number."""
    import psutil

    try:
        process = psutil.Process(started.pid or None)
        is_same = started.pid > 0 and process.create_time() <= started.at
        return is_same and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, OverflowError, ValueError):
        return False
