"""Latest outcomes of a plan, and whether they apply to the current plan and files.

Runs are known by their journals below ``.planverify/runs``. Code under test can write there, so
journals are untrusted: torn, foreign, irregular or contradictory records are ignored.
"""

from __future__ import annotations

import os
import re
import shlex
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Literal

from pydantic import ValidationError

from planner.errors import OutcomeFileError
from planner.model.base import qualified
from planner.model.journal import (
    CheckJudged,
    JournalRecord,
    JournalRunStarted,
    RunFinished,
    RunUnexplained,
)
from planner.model.outcome import Outcome, OutcomeDocument, PlanRef, RunInfo, Summary
from planner.model.verdicts import CheckKind, Verdict
from planner.planfile.discovery import PLAN_ENDINGS
from planner.planfile.left_files import left_by_runs
from planner.planfile.loader import plan_id_of, shown_path
from planner.planfile.locks import is_running
from planner.planfile.plan_folder import HOME, PlanFolder
from planner.planfile.project_files import digest_of, is_code, open_regular, walk
from planner.planfile.record_files import read_any_outcomes
from planner.planfile.tree import todo_digests
from planner.text.display import did_you_mean
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from planner.planfile.loader import LoadedPlan


JOURNAL = "journal.jsonl"
JOURNAL_VERSION = 1
"""Version of the record format; journals of a later version are ignored."""

PARENT = "parent"
"""Session name of the parent, the only one whose verdicts count."""

# The head of a record, matched without parsing the JSON of the line: most records are not needed, and to
# parse all records of a large run takes seconds.
_HEAD = re.compile(rb'\{"record": "(\w+)", "session": "((?:[^"\\]|\\.)*)", "at": ([0-9.]+)[,}]')
_RECORDS: Mapping[str, type[JournalRecord]] = {
    "run_started": JournalRunStarted,
    "check_judged": CheckJudged,
    "run_unexplained": RunUnexplained,
    "run_finished": RunFinished,
}


@dataclass(slots=True)
class PastRun:
    """One plan of one run, from its journal."""

    folder: Path
    started: JournalRunStarted
    checks: dict[tuple[str, str], CheckJudged] = field(default_factory=dict[tuple[str, str], CheckJudged])
    """Verdicts by todo id and check id."""
    finished: RunFinished | None = None
    unexplained: str | None = None
    last_at: float = 0.0
    """Time of the last record, epoch seconds."""

    @property
    def run_id(self) -> str:
        """Id of the run, which may include further plans."""
        return self.started.run_id

    @property
    def has_finished(self) -> bool:
        """Return whether the run finished, neither killed nor stopped."""
        return self.finished is not None and not self.finished.interrupted

    def is_alive(self) -> bool:
        """Return whether the run's parent process is alive, and is not another process with the same id."""
        pid = self.started.pid
        return (
            self.finished is None and pid not in (None, 0, os.getpid()) and is_running(pid, self.started.at)
        )

    @property
    def state(self) -> Literal["finished", "interrupted", "running", "killed"]:
        """End of the run, or whether it is alive."""
        if self.finished is not None:
            return "interrupted" if self.finished.interrupted else "finished"
        return "running" if self.is_alive() else "killed"

    def add_verdict(self, judged: CheckJudged) -> None:
        """Add a verdict. The parent judges each criterion once, so a differing second one is forged.

        The contradictory verdicts are marked as not final; a failed first one is kept.
        """
        key = judged.todo_id, judged.check.id
        known = self.checks.get(key)
        if known is not None and known.check.verdict is not judged.check.verdict:
            judged = judged.model_copy(update={"final": False})
            if known.check.verdict.is_red:
                judged = judged.model_copy(update={"check": known.check, "evidence": known.evidence})
        self.checks[key] = judged


def past_runs(root: Path, plan_id: str, *kinds: str) -> Iterator[PastRun]:
    """Yield the plan's runs that are kept below the root, newest first. Never raises.

    ``kinds`` restricts the records that are parsed: all records of a large run take seconds.
    """
    try:
        entries = [each for each in (root / HOME / "runs").iterdir() if each.is_dir()]
        # Names start with the time of the run, in seconds; within a second, the folders' own times decide.
        entries.sort(key=lambda each: (each.name.partition("-")[0], each.stat().st_mtime_ns, each.name))
    except OSError:
        return
    for folder in reversed(entries):
        run = _read(folder, plan_id, frozenset(kinds))
        if run is not None:
            yield run


def _read(folder: Path, plan_id: str, kinds: frozenset[str]) -> PastRun | None:
    """Read the journal in a run's folder; ``None`` if there is no readable one of that plan."""
    run: PastRun | None = None
    with suppress(OSError), open_regular(folder / JOURNAL, follow=False) as stream:
        for line in stream:
            head = _HEAD.match(line)
            if head is None or not line.endswith(b"\n"):  # foreign, or torn
                continue
            kind, session = head[1].decode(), head[2].decode("utf-8", "replace")
            record = None
            # The code under test runs in the other sessions, and could report verdicts of its own.
            if run is None or (session == PARENT and (not kinds or kind in kinds)):
                with suppress(KeyError, ValidationError):
                    record = _RECORDS[kind].model_validate_json(line)
            if run is None:
                if not isinstance(record, JournalRunStarted) or record.version > JOURNAL_VERSION:
                    return None
                if not record.verifies or not record.reference or record.reference.todo_list_id != plan_id:
                    return None
                run = PastRun(folder, record)
            with suppress(ValueError):  # two dots, in a forged line
                run.last_at = max(run.last_at, float(head[3]))
            if isinstance(record, CheckJudged):
                run.add_verdict(record)
            elif isinstance(record, RunFinished):
                run.finished = record
            elif isinstance(record, RunUnexplained):
                run.unexplained = record.reason
    return run


MOST_FILES = 20_000
"""Limit of files; changes of larger projects are not determined, as it would take too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFiles:
    """Files changed since a run, relative to the plan's root."""

    paths: tuple[str, ...] = ()
    by_todo: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    """By todo with an outdated verdict, the changed files that the verdict depends on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundOutcomes:
    """The outcomes of one plan, without those of other plans in the run, and what makes them outdated."""

    path: Path
    """Path of the outcomes, existing or not."""
    verify: str
    """Command that verifies the plan, from the current folder."""
    document: OutcomeDocument | None = None
    """``None`` before the first run."""
    plan_change: str | None = None
    """Sentence that names the changed plan file, if no verdict applies to the current plan."""
    changed_todos: tuple[str, ...] = ()
    """Todos that are new or changed since; ``document`` excludes them."""
    files: ChangedFiles = field(default_factory=ChangedFiles)
    """Files changed since the run, and the todos whose verdicts are outdated by that."""
    unfinished: PastRun | None = None
    """The newest run, if it was killed, interrupted, or is still running."""


def find_outcomes(
    loaded: LoadedPlan, given: Path | None = None, subs: Mapping[str, LoadedPlan] | None = None
) -> FoundOutcomes:
    """Return the outcomes in ``given``, by default those of the plan's last run.

    ``subs`` are loaded sub-plans by qualified id of their parent. A file may also contain a single
    outcome, as a controller reports it, which is taken to be of the current plan. Raises
    :class:`planner.errors.OutcomeFileError` if the file is missing, unreadable or does not fit the plan.
    """
    subs, plan_id = subs or {}, loaded.plan.todo_list_id
    verify = f"pytest --planverify {shlex.quote(shown_path(loaded.path))}"
    path = PlanFolder(loaded.root, plan_id).outcomes if given is None else given

    def message(problem: str) -> str:
        return one_line(f"{shown_path(path)}: {problem}", limit=600)

    runs = past_runs(loaded.root, plan_id, "run_finished", "check_judged")
    newest = next(runs, None)
    unfinished = newest if given is None and newest is not None and not newest.has_finished else None
    if not path.exists():
        if given is not None:
            raise OutcomeFileError(message(f"the file does not exist; run first: {verify}"))
        return FoundOutcomes(path=path, verify=verify, unfinished=unfinished)
    held = read_any_outcomes(path)
    document = _alone(held, loaded) if isinstance(held, Outcome) else held
    reference = next((ref for ref in document.plans if ref.todo_list_id == plan_id), None)
    if reference is None:
        names = ", ".join(f"'{ref.todo_list_id}' ({ref.path})" for ref in document.plans[:5]) or "no plan"
        problem = f"the outcomes are of {names}, not of '{plan_id}' ({shown_path(loaded.path)})"
        remedy = f"name the right file with --outcomes, or run: {verify}"
        raise OutcomeFileError(message(f"{problem}; {remedy}"))
    outcomes = [each for each in document.outcomes if each.plan in (None, plan_id)]
    plan_change, changed_todos = None, ()
    changed = reference.path if reference.digest != loaded.digest else None
    for sub in reference.sub_plans:
        if changed is None and sub.todo_id in subs and sub.digest != subs[sub.todo_id].digest:
            changed = sub.path
    if changed is not None:
        now = todo_digests(loaded, subs)
        changed_todos = tuple(each for each, digest in now.items() if reference.todos.get(each) != digest)
        same = now.keys() - set(changed_todos)
        # A todo that a changed one blocked may be free now.
        outcomes = [each for each in outcomes if each.todo_id in same and same >= {*each.blocked_by}]
        if not same:
            problem = f"the outcomes are of another version of the plan: {changed} has changed"
            plan_change = message(f"{problem}; verify it: {verify}")
    elif (problem := next(_misfits(document, loaded, subs), None)) is not None:
        raise OutcomeFileError(message(f"the outcome file cannot be used: {problem}"))
    # A single outcome, as a controller reports it, names no run.
    run = newest if document.run.run_id else None
    while run is not None and run.run_id != document.run.run_id:
        run = next(runs, None)
    plans = [loaded.path, *(sub.path for sub in subs.values())]
    return FoundOutcomes(
        path=path,
        verify=verify,
        document=document.model_copy(update={"plans": (reference,), "outcomes": tuple(outcomes)}),
        plan_change=plan_change,
        changed_todos=changed_todos,
        files=changed_files(loaded.root, run, plans),
        unfinished=unfinished,
    )


def _alone(outcome: Outcome, loaded: LoadedPlan) -> OutcomeDocument:
    """Return the document of a single outcome; its times are unknown and empty."""
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


def _misfits(
    document: OutcomeDocument, loaded: LoadedPlan, subs: Mapping[str, LoadedPlan]
) -> Iterator[str]:
    """Yield what fits no todo of the plan: ignoring it would lose a failure."""
    name = loaded.plan.todo_list_id
    plans = {ref.todo_list_id for ref in document.plans}
    todos = {
        qualified(within, todo.id): todo
        for within, part in {"": loaded, **subs}.items()
        for todo in part.plan.items
    }
    unloaded = (todo_id for todo_id, todo in todos.items() if todo.has_sub_plan and todo_id not in subs)
    below_unloaded = tuple(f"{each}/" for each in unloaded)
    seen: set[str] = set()
    for index, outcome in enumerate(document.outcomes):
        todo_id = outcome.todo_id
        if outcome.plan is not None and outcome.plan not in plans:
            yield (
                f"outcomes[{index}] names the plan '{outcome.plan}', which is not among its plans; "
                "add it to plans, or correct the name"
            )
        if outcome.plan not in (None, name):
            continue
        if todo_id in seen:
            yield f"outcomes[{index}] is the second of todo '{todo_id}'; keep one"
        seen.add(todo_id)
        if todo_id not in todos and not todo_id.startswith(below_unloaded):
            remedy = did_you_mean(todo_id, sorted(todos), "name the id of a todo of this plan")
            yield f"the plan '{name}' has no todo '{todo_id}'; {remedy}"


def changed_files(root: Path, run: PastRun | None, apart: Sequence[Path] = ()) -> ChangedFiles:
    """Return the files changed since a run, without ``apart``; none if the run is not kept.

    A file counts if a verdict depends on it; further files count if they are code, or if a verdict's
    dependencies are unknown. None are known of a project with too many files.
    """
    names = set(islice(walk(root), MOST_FILES + 1)) if run else set[str]()
    if run is None or len(names) > MOST_FILES:
        return ChangedFiles()
    bases = {key: {} if each.rests_on is None else each.rests_on.files for key, each in run.checks.items()}
    unsure = {
        key
        for key, each in run.checks.items()
        if each.rests_on is None and each.check.kind in (CheckKind.TEST, CheckKind.COMMAND)
    }
    known = {name: digest for files in bases.values() for name, digest in files.items()}
    changed = {name for name, digest in known.items() if digest_of(root / name, follow=True) != digest}
    titles = {each.check.title for each in run.checks.values()}  # the path of an artifact
    # No verdict recorded a digest of these, so their time has to do.
    for name in names - known.keys():
        if unsure or is_code(name) or name in titles:
            with suppress(OSError):
                if (root / name).lstat().st_mtime > run.last_at:
                    changed.add(name)
    changed -= {os.path.relpath(each, root) for each in apart}
    # Nor does what the run wrote itself at its end, such as reports.
    changed -= left_by_runs(root / HOME, root, changed - known.keys())
    # Plans written since, for example by planner iterate, do not affect this plan's todos.
    changed -= {
        name
        for name in changed - known.keys()
        if name.endswith(PLAN_ENDINGS) and plan_id_of(root / name) is not None
    }
    by_todo: dict[str, set[str]] = {}
    for key, each in run.checks.items():
        old = changed if key in unsure else changed & {each.check.title, *bases[key]}
        if each.check.verdict is not Verdict.PASSED:
            # A missing thing may now be in a file that nothing had read, such as a new one.
            old = old | (changed - known.keys())
        if old:
            by_todo.setdefault(each.todo_id, set()).update(old)
    return ChangedFiles(
        paths=tuple(sorted(changed)),
        by_todo={todo_id: tuple(sorted(names)) for todo_id, names in by_todo.items()},
    )
