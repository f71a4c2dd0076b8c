"""Recording of a baseline: results of the plan's checks and tests, and all files below the root."""

from __future__ import annotations

import getpass
import hashlib
import math
import os
import platform
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from planner.errors import BaselineError, OutcomeFileError
from planner.model.baseline import (
    Baseline,
    BaselineCheck,
    BaselineFile,
    BaselineTest,
    BaselineTodo,
    HookUse,
    JudgePatch,
    SessionInventory,
)
from planner.model.plan import TodoStatus
from planner.model.taxonomy import Category
from planner.model.verdicts import TestOutcome, TodoState, Verdict
from planner.planfile.record_files import read_outcomes
from planner.policy.since import GREEN
from pytest_planverify.baseline import below
from pytest_planverify.baseline.kinds import judges_of
from pytest_planverify.baseline.repository import Repository
from pytest_planverify.baseline.work_tree import WorkTree
from pytest_planverify.checks.processes import run_process
from pytest_planverify.journal import read_journal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from planner.model.outcome import Outcome, OutcomeDocument
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.journal import Record

LARGEST_COPY = 5 << 20
MOST_COPIED = 256 << 20
"""Total bytes of uncommitted contents that are copied; beyond it only SHA-256 is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTree:
    """The files of a tree before anything of it ran."""

    tree: WorkTree
    files: Mapping[str, BaselineFile]
    contents: Mapping[str, bytes]
    """Uncommitted contents by SHA-256, within the size limit."""
    revision: str | None = None
    dirty: bool = False


def look(root: Path) -> SeenTree:
    """Read the tree before the run, so that files left by tests are not included."""
    repository = Repository.around(root)
    tree = WorkTree(root, repository)
    commit = None if repository is None else repository.commit("HEAD")
    blobs: Mapping[str, str] = {}
    if repository is not None and commit is not None:
        blobs = repository.blobs(commit, *(path for path in tree.paths() if path.startswith("../")))
    files: dict[str, BaselineFile] = {}
    contents: dict[str, bytes] = {}
    held = 0
    for path in tree.paths():
        content = tree.read(path)
        if content is not None:
            blob = blobs.get(path)
            committed = blob is not None and blob == object_id(content, len(blob))
            digest = hashlib.sha256(content).hexdigest()
            copied = not committed and len(content) <= LARGEST_COPY and held + len(content) <= MOST_COPIED
            if copied:
                held += len(content)
                contents[digest] = content
            files[path] = BaselineFile(sha256=digest, size=len(content), committed=committed)
    dirty = any(not file.committed and not tree.is_nested(path) for path, file in files.items()) or any(
        path not in files and not path.startswith("../") for path in blobs
    )
    return SeenTree(
        tree=tree, files=files, contents=contents, revision=commit, dirty=commit is not None and dirty
    )


def make_baseline(flat: FlatPlan, seen: SeenTree, runs: Sequence[BaselineRun]) -> Baseline:
    """Return the baseline from one or several runs of the plan."""
    tests = dict(tests_of(flat, runs))
    records = all_records(runs)
    for record in records:
        nodeid: object = record.get("nodeid")
        if record.get("record") == "collection_failure" and isinstance(nodeid, str):
            tests.setdefault(nodeid.partition("::")[0], BaselineTest(outcome=TestOutcome.ERROR))
    judges = judges_of(flat, {nodeid.partition("::")[0] for nodeid in tests}, seen.tree)
    return Baseline(
        plan=flat.loaded.plan.todo_list_id,
        plan_digest=flat.loaded.digest,
        made_at=now(),
        revision=seen.revision,
        dirty=seen.dirty,
        python=platform.python_version(),
        pytest=runs[0].document.run.pytest,
        runs=len(runs),
        run_id=runs[0].document.run.run_id,
        todos=dict(todos_of(flat, runs)),
        tests=dict(sorted(tests.items())),
        files={
            path: file.model_copy(update={"kind": judges.kind_of(path)})
            for path, file in sorted(seen.files.items())
        },
        inventory=inventory_of(records, flat.loaded.root),
        sub_plans={name: part.plan.todo_list_id for name, part in flat.files.items()},
    )


# -- what runs said ------------------------------------------------------------------------------------


class BaselineRun(NamedTuple):
    """One run of the whole plan."""

    document: OutcomeDocument
    records: Sequence[Record]
    """Its journal, with collection errors and plugins."""


def run_of(document: OutcomeDocument, root: Path) -> BaselineRun:
    """Return the run that wrote a document, with its journal. Call at once, as old journals are removed."""
    journal = root / ".planverify" / "runs" / document.run.run_id / "journal.jsonl"
    try:
        return BaselineRun(document, read_journal(journal))
    except OSError:
        return BaselineRun(document, ())


def all_records(runs: Sequence[BaselineRun]) -> list[Record]:
    """Return the records of all runs, the first run's last: only that one saw the original tree.

    Sessions of different runs are renamed, as their names would collide.
    """
    found: list[Record] = []
    for number, run in reversed(list(enumerate(runs))):
        for record in run.records:
            own = {name: f"{number}/{record[name]}" for name in ("session", "pen") if name in record}
            found.append({**record, **own} if number else record)
    return found


def todos_of(flat: FlatPlan, runs: Sequence[BaselineRun]) -> Iterator[tuple[str, BaselineTodo]]:
    """Yield each todo with its state and its checks; done only if done in every run."""
    told: dict[str, list[Outcome]] = {}
    for outcome in (each for run in runs for each in run.document.outcomes):
        told.setdefault(outcome.todo_id, []).append(outcome)
    for todo_id, outcomes in told.items():
        states = [outcome.state for outcome in outcomes]
        undone = next((state for state in states if state is not TodoState.DONE), TodoState.DONE)
        is_claimed = flat.loaded.plan.todo(todo_id).status is TodoStatus.CLAIMED
        yield todo_id, BaselineTodo(
            state=TodoState.TEST_FAILED if TodoState.TEST_FAILED in states else undone,
            claimed=is_claimed,
            checks=_checks(outcomes),
        )  # fmt: skip


def _checks(outcomes: Sequence[Outcome]) -> dict[str, BaselineCheck]:
    found: dict[str, BaselineCheck] = {}
    for check_id in dict.fromkeys(check.id for outcome in outcomes for check in outcome.checks):
        told = [check for outcome in outcomes for check in outcome.checks if check.id == check_id]
        failures = [each for outcome in outcomes for each in outcome.failures if each.check_id == check_id]
        found[check_id] = BaselineCheck(
            verdict=_verdict([check.verdict for check in told]),
            signatures=tuple(dict.fromkeys(each.signature for each in failures if each.signature)),
            cmd=told[0].cmd,
            tests=tuple(dict.fromkeys(test.nodeid for check in told for test in check.tests)),
        )
    return found


def _verdict(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the combined verdict: flaky for mixed results, else any that is not a pass."""
    if Verdict.FLAKY in verdicts or {Verdict.PASSED, Verdict.FAILED} <= set(verdicts):
        return Verdict.FLAKY
    if Verdict.FAILED in verdicts:
        return Verdict.FAILED
    return next((verdict for verdict in verdicts if verdict is not Verdict.PASSED), Verdict.PASSED)


def tests_of(flat: FlatPlan, runs: Sequence[BaselineRun]) -> Iterator[tuple[str, BaselineTest]]:
    """Yield each test once; mixed results in checks or runs are flaky."""
    answers: dict[str, list[TestOutcome]] = {}
    signatures: dict[str, str] = {}
    flaky: set[str] = set()
    for outcome in (each for run in runs for each in run.document.outcomes):
        for test in (each for check in outcome.checks for each in check.tests):
            answers.setdefault(below(flat, outcome.todo_id, test.nodeid), []).append(test.outcome)
        for failure in outcome.failures:
            names = [below(flat, outcome.todo_id, test) for test in failure.tests]
            flaky |= set(names) if failure.category is Category.FLAKY_TEST else set()
            if failure.signature is not None:
                signatures = dict.fromkeys(names, failure.signature) | signatures
    for nodeid, given in answers.items():
        ran = [answer for answer in given if answer is not TestOutcome.NOT_RUN]
        red = next((answer for answer in ran if answer.is_red), None)
        both = red is not None and not GREEN.isdisjoint(ran)
        if ran:
            is_flaky = both or nodeid in flaky
            signature = signatures.get(nodeid)
            yield nodeid, BaselineTest(outcome=red or ran[0], flaky=is_flaky, signature=signature)


def now() -> str:
    """Return the current time in RFC 3339, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def user() -> str | None:
    """Return the name of the current user, if the system knows it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # the user id has no name
        return None


def object_id(content: bytes, digits: int = 40) -> str:
    """Return git's object id of a blob, in a repository with ids of that many digits."""
    digest = hashlib.sha256() if digits == 64 else hashlib.sha1(usedforsecurity=False)
    digest.update(b"blob %d\0" % len(content))
    digest.update(content)
    return digest.hexdigest()


# -- who had a say in the verdicts -------------------------------------------------------------------


def inventory_of(records: Iterable[Record], root: Path) -> SessionInventory:
    """Return the inventory of a run's sessions; files below the root are relative."""
    hooks: set[tuple[str, str]] = set()
    patched: set[tuple[str, str]] = set()
    elsewhere = False
    every = list(records)
    for record in every:
        if record.get("record") == "session_inventory":
            hooks |= {(hook, _shown(file, root)) for hook, file in _rows(record.get("hooks"))}
            patched |= {(name, _shown(file, root)) for name, file in _rows(record.get("patched"))}
            elsewhere |= bool(record.get("without_body"))
    return SessionInventory(
        hooks=tuple(HookUse(hook=hook, file=file) for hook, file in sorted(hooks)),
        patched=tuple(JudgePatch(name=name, file=file) for name, file in sorted(patched)),
        bodies_elsewhere=elsewhere,
        status_overturned=_is_overturned(every),
        records_lost=_are_lost(every),
    )


def _is_overturned(records: Iterable[Record]) -> bool:
    """Return whether a session with failed tests returned 0."""
    red: set[object] = set()
    green: set[object] = set()
    for record in records:
        if record.get("record") == "test_finished" and record.get("outcome") in ("failed", "error"):
            red.add(record.get("session"))
        elif record.get("record") == "session_ended" and record.get("exit_status") == 0:
            green.add(record.get("session"))
    return not red.isdisjoint(green)


def _are_lost(records: Iterable[Record]) -> bool:
    """Return whether numbered records are missing."""
    last: dict[object, int] = {}
    for record in records:
        pen, number = record.get("pen"), record.get("number")
        if isinstance(number, int):
            if number > last.get(pen, 0) + 1:
                return True
            last[pen] = number
    return False


def _shown(file: str, root: Path) -> str:
    """Return a file relative to the root, or to a folder above it, if it lies there."""
    for path, folder in ((Path(file), root), (Path(os.path.realpath(file)), Path(os.path.realpath(root)))):
        if file and path.is_relative_to(folder):
            return path.relative_to(folder).as_posix()
        if path.is_absolute() and folder.is_relative_to(path.parent):
            return Path(os.path.relpath(path, folder)).as_posix()
    return file


def _rows(value: object) -> Iterator[list[str]]:
    """Yield rows of strings; anything else is skipped."""
    for entry in map(_list, _list(value)):
        if len(entry) == 2 and all(isinstance(word, str) for word in entry):
            yield entry


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


# -- runs of a plan that leave no trace in the outcomes of the user -----------------------------------

_GRACE_SECONDS = 20.0
"""Seconds for an interrupted run to end its sessions."""

_INTERRUPTED, _INTERNAL_ERROR, _USAGE_ERROR = 2, 3, 4


def verify_apart(
    plan: Path,
    *,
    directory: Path,
    env: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
) -> OutcomeDocument:
    """Verify every todo of a plan, ignoring dependencies and baseline, in a process of its own.

    Outcomes go to a temporary file. Raises :class:`planner.errors.BaselineError` if the run does not
    finish.
    """
    with tempfile.TemporaryDirectory(prefix="planverify-") as folder:
        outcomes = Path(folder) / "outcomes.json"
        # -P: a pytest.py in the project must not shadow the real one.
        argv = [sys.executable, "-P", "-m", "pytest", "--planverify", os.path.relpath(plan, directory)]
        argv += ["--planverify-recording", "--planverify-keep-going", "--color=no"]
        argv += ["--planverify-outcomes", str(outcomes), *options]
        whole = {**os.environ, **(env or {})}
        if whole.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):  # then the plugin has to be loaded explicitly
            argv += ["-p", "pytest_planverify.plugin"]
        ended = run_process(
            argv, cwd=directory, env=whole, timeout_seconds=math.inf, grace_seconds=_GRACE_SECONDS
        )
        if ended.exit_code == _INTERRUPTED or ended.signal == "SIGINT":
            raise KeyboardInterrupt
        how = ended.signal or f"status {ended.exit_code}"
        if ended.signal or ended.exit_code in (_INTERNAL_ERROR, _USAGE_ERROR) or not outcomes.exists():
            # Only the line with the reason, without pytest's surrounding output.
            lines = [
                line.strip() for line in f"{ended.stdout}\n{ended.stderr}".splitlines() if line.strip()
            ]
            errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
            said = (errors or lines or ["it said nothing"])[-1]
            raise BaselineError(f"the plan could not be verified ({how}): {said}")
        try:
            return read_outcomes(outcomes)
        except OutcomeFileError as error:
            raise BaselineError(str(error)) from None


def verify_often(
    plan: Path,
    root: Path,
    *,
    directory: Path,
    runs: int,
    env: Mapping[str, str] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> list[BaselineRun]:
    """Verify a plan ``runs`` times. Raises :class:`planner.errors.BaselineError`."""
    found: list[BaselineRun] = []
    for number in range(1, runs + 1):
        if runs > 1:
            say(f"verifying it, {number} of {runs}")
        found.append(run_of(verify_apart(plan, directory=directory, env=env), root))
    return found
