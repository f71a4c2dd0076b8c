"""Recording of a baseline: results of the plan's checks and tests, and all files below the root.

:func:`look` reads the tree; :func:`make_baseline` runs the plan in a separate process and combines both.
:func:`baseline_at` does so for a git revision: it is checked out into a temporary work tree, and the
current plan files are copied into it.

The inventory of the sessions (hooks, patches, lost records) is part of the baseline, so that later runs can
detect manipulated sessions.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from planner.catalog.output import MAX_FINDINGS
from planner.errors import BaselineError, OutcomeFileError, PlannerError
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
from planner.model.journal import CheckJudged
from planner.model.plan import TodoStatus
from planner.model.taxonomy import Category
from planner.model.verdicts import TestOutcome
from planner.planfile.plan_folder import PlanFolder, make_home
from planner.planfile.record_files import read_outcomes
from planner.planfile.tree import load_tree
from planner.policy.outcomes import GREEN
from planner.text.redaction import redact
from planner.text.sanitizing import one_line
from pytest_planverify import verify_command
from pytest_planverify.baseline import below, record_command
from pytest_planverify.baseline.kept_baseline import KeptBaseline, now
from pytest_planverify.baseline.repository import Repository
from pytest_planverify.baseline.work_tree import WorkTree, judges_of
from pytest_planverify.baseline.worktrees import checkout, counterpart, environment_for
from pytest_planverify.checks.processes import run_process
from pytest_planverify.diagnosis.signatures import count_findings
from pytest_planverify.journal import read_journal

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from planner.model.outcome import OutcomeDocument
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.checks.processes import ProcessResult
    from pytest_planverify.journal import Record

LARGEST_COPY = 5 << 20
"""Limit in bytes of one uncommitted content that is copied."""
MOST_COPIED = 256 << 20
"""Total bytes of uncommitted contents that are copied; beyond it only SHA-256 is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTree:
    """The files of a tree, read before any code of it ran."""

    tree: WorkTree
    files: Mapping[str, BaselineFile]
    """By path; kinds are not determined yet."""
    contents: Mapping[str, bytes]
    """Uncommitted contents by SHA-256, within the size limits."""
    revision: str | None = None
    """Commit that is checked out; ``None`` without git or before the first commit."""


def look(root: Path) -> SeenTree:
    """Read the tree before the run, so that files left by tests are not included."""
    repository = Repository.around(root)
    tree = WorkTree(root, repository)
    commit = None if repository is None else repository.commit("HEAD")
    blobs: Mapping[str, str] = {}
    if repository is not None and commit is not None:
        # Configuration in folders above the root is listed only if it is named.
        blobs = repository.blobs(commit, *(path for path in tree.paths if path.startswith("../")))
    files: dict[str, BaselineFile] = {}
    contents: dict[str, bytes] = {}
    size = 0
    for path in tree.paths:
        content = tree.read(path)
        if content is not None:
            blob = blobs.get(path)
            # The length of its ids tells the hash function of the repository.
            committed = blob is not None and blob == object_id(content, len(blob))
            digest = hashlib.sha256(content).hexdigest()
            copied = not committed and len(content) <= LARGEST_COPY and size + len(content) <= MOST_COPIED
            if copied:
                size += len(content)
                contents[digest] = content
            files[path] = BaselineFile(sha256=digest, committed=committed)
    return SeenTree(tree=tree, files=files, contents=contents, revision=commit)


def make_baseline(
    flat: FlatPlan, seen: SeenTree, *, directory: Path, env: Mapping[str, str] | None = None
) -> tuple[Baseline, OutcomeDocument]:
    """Run the plan; return the baseline with the files in ``seen``, and the outcomes of the run.

    A file that could not be collected is recorded as a test with an error. Parameters and errors are those
    of :func:`verify_apart`.
    """
    document = verify_apart(flat, directory=directory, env=env)
    records = records_of(document, flat.loaded.root)
    tests = dict(tests_of(flat, document))
    # No test of a file that could not be collected has a result of its own.
    for record in records:
        nodeid: object = record.get("nodeid")
        if record.get("record") == "collection_failure" and isinstance(nodeid, str):
            tests.setdefault(nodeid.partition("::")[0], BaselineTest(outcome=TestOutcome.ERROR))
    judges = judges_of(flat, tests, seen.tree)
    baseline = Baseline(
        plan=flat.loaded.plan.todo_list_id,
        plan_digest=flat.loaded.digest,
        made_at=now("seconds"),
        revision=seen.revision,
        python=platform.python_version(),
        pytest=document.run.pytest,
        todos=dict(todos_of(flat, document, findings_in(records))),
        tests=dict(sorted(tests.items())),
        files={
            path: file.model_copy(update={"kind": judges.kind_of(path)})
            for path, file in sorted(seen.files.items())
        },
        inventory=inventory_of(records, flat.loaded.root),
        sub_plans={name: part.plan.todo_list_id for name, part in flat.files.items()},
    )
    return baseline, document


# -- results of the run ---------------------------------------------------------------------------------


def records_of(document: OutcomeDocument, root: Path) -> Sequence[Record]:
    """Return the journal of the run that wrote the outcomes; empty if it cannot be read.

    Call it right after the run, as old journals are removed.
    """
    try:
        return read_journal(root / ".planverify" / "runs" / document.run.run_id / "journal.jsonl")
    except OSError:
        return ()


def findings_in(records: Iterable[Record]) -> dict[tuple[str, str], Counter[str]]:
    """Return the findings of each command that failed in a run, by todo and check."""
    found: dict[tuple[str, str], Counter[str]] = {}
    for record in records:
        if record.get("record") == "check_judged":
            judged = CheckJudged.model_validate(record)
            for command in (each.command for each in judged.evidence if each.command):
                # Of more, some were dropped: a finding that is not among these need not be new.
                if len(command.findings) < MAX_FINDINGS:
                    found[judged.todo_id, judged.check.id] = count_findings(command)
    return found


def todos_of(
    flat: FlatPlan, document: OutcomeDocument, findings: Mapping[tuple[str, str], Counter[str]]
) -> Iterator[tuple[str, BaselineTodo]]:
    """Yield each todo id with the todo's state and checks; ``findings`` are those of commands."""
    for outcome in document.outcomes:
        is_claimed = flat.loaded.plan.todo(outcome.todo_id).status is TodoStatus.CLAIMED
        checks: dict[str, BaselineCheck] = {}
        for check in outcome.checks:
            signatures = (each.signature for each in outcome.failures if each.check_id == check.id)
            checks[check.id] = BaselineCheck(
                verdict=check.verdict,
                signatures=tuple(dict.fromkeys(filter(None, signatures))),
                cmd=check.cmd,
                tests=tuple(dict.fromkeys(test.nodeid for test in check.tests)),
                findings=dict(findings.get((outcome.todo_id, check.id), {})),
            )
        yield outcome.todo_id, BaselineTodo(state=outcome.state, claimed=is_claimed, checks=checks)


def tests_of(flat: FlatPlan, document: OutcomeDocument) -> Iterator[tuple[str, BaselineTest]]:
    """Yield each test once, by node id relative to the top plan's root, without tests that did not run.

    A failure takes precedence over other results; mixed results in several checks make it flaky.
    """
    results: dict[str, list[TestOutcome]] = {}
    flaky: set[str] = set()
    for outcome in document.outcomes:
        for test in (each for check in outcome.checks for each in check.tests):
            results.setdefault(below(flat, outcome.todo_id, test.nodeid), []).append(test.outcome)
        for failure in outcome.failures:
            if failure.category is Category.FLAKY_TEST:
                flaky |= {below(flat, outcome.todo_id, test) for test in failure.tests}
    # Several checks may run one test, each in a process of its own.
    for nodeid, outcomes in results.items():
        ran = [result for result in outcomes if result is not TestOutcome.NOT_RUN]
        red = next((result for result in ran if result.is_red), None)
        both = red is not None and not GREEN.isdisjoint(ran)
        if ran:
            yield nodeid, BaselineTest(outcome=red or ran[0], flaky=both or nodeid in flaky)


def object_id(content: bytes, digits: int) -> str:
    """Return git's object id of a blob; ``digits`` is 40 for SHA-1 repositories, 64 for SHA-256."""
    digest = hashlib.sha256() if digits == 64 else hashlib.sha1(usedforsecurity=False)
    digest.update(b"blob %d\0" % len(content))
    digest.update(content)
    return digest.hexdigest()


# -- code that took part in the verdicts -------------------------------------------------------------


def inventory_of(records: Iterable[Record], root: Path) -> SessionInventory:
    """Return the inventory of a run's sessions: implemented hooks, patched functions, and inconsistencies.

    Files below the root are relative to it.
    """
    every = list(records)
    found = [record for record in every if record.get("record") == "session_inventory"]
    hooks, patched = (
        sorted({(name, _shown(file, root)) for record in found for name, file in _rows(record.get(key))})
        for key in ("hooks", "patched")
    )
    return SessionInventory(
        hooks=tuple(HookUse(hook=hook, file=file) for hook, file in hooks),
        patched=tuple(JudgePatch(name=name, file=file) for name, file in patched),
        bodies_elsewhere=any(record.get("without_body") for record in found),
        status_overturned=_is_overturned(every),
        records_lost=_are_lost(every),
    )


def _is_overturned(records: Iterable[Record]) -> bool:
    """Return whether a session with failed tests ended with exit status 0."""
    red: set[str] = set()
    green: set[str] = set()
    for record in records:
        if record.get("record") == "test_finished" and record.get("outcome") in ("failed", "error"):
            red.add(str(record.get("session")))
        elif record.get("record") == "session_ended" and record.get("exit_status") == 0:
            green.add(str(record.get("session")))
    return not red.isdisjoint(green)


def _are_lost(records: Iterable[Record]) -> bool:
    """Return whether records are missing, by the consecutive numbers of each writer (``pen``)."""
    last: dict[str, int] = {}
    for record in records:
        pen, number = str(record.get("pen")), record.get("number")
        if isinstance(number, int):
            if number > last.get(pen, 0) + 1:
                return True
            last[pen] = number
    return False


def _shown(file: str, root: Path) -> str:
    """Return a file relative to the root if it lies below the root or in a folder above it."""
    if not os.path.isabs(file) or "\0" in file:  # unknown, relative already, or forged
        return file
    # As named, then without symbolic links, which either path may contain.
    for path, folder in ((Path(file), root), (Path(os.path.realpath(file)), Path(os.path.realpath(root)))):
        if path.is_relative_to(folder):
            return path.relative_to(folder).as_posix()
        if folder.is_relative_to(path.parent):
            return Path(os.path.relpath(path, folder)).as_posix()
    return file


def _rows(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the pairs of strings in a list; anything else is skipped, as journals may be manipulated."""
    entries: list[Any] = cast("list[Any]", value) if isinstance(value, list) else []
    for entry in entries:
        match entry:
            case [str(name), str(file)]:
                yield name, file
            case _:
                pass


# -- runs of a plan in a process of its own --------------------------------------------------------------

LIMIT_SECONDS = 86_400.0
"""Limit for a hanging verifier; criteria have their own limits."""
_GRACE_SECONDS = 20.0
"""Seconds that an interrupted run has to end its sessions."""

_INTERRUPTED, _INTERNAL_ERROR, _USAGE_ERROR = 2, 3, 4


def run_verifier(
    words: Sequence[str], outcomes: Path, *, directory: Path, env: Mapping[str, str] | None = None
) -> tuple[OutcomeDocument | None, ProcessResult]:
    """Run ``pytest --planverify WORDS`` in a process of its own, so that the caller survives any test.

    Returns the ``outcomes`` that it wrote, if any, and how it ended. ``directory`` is the working
    directory, ``env`` is added to the environment.
    """
    # A verifier that crashes must not leave the outcomes of a previous run in place.
    outcomes.unlink(missing_ok=True)
    ended = run_process(
        verify_command(*words, "--color=no", "--planverify-outcomes", str(outcomes)),
        cwd=directory,
        env={**os.environ, **(env or {})},
        timeout_seconds=LIMIT_SECONDS,
        grace_seconds=_GRACE_SECONDS,
    )
    with suppress(OutcomeFileError):
        return read_outcomes(outcomes), ended
    return None, ended


def failure_reason(ended: ProcessResult) -> str:
    """Return how a verifier ended, and the line of its output with the reason."""
    lines = [line.strip() for line in f"{ended.stdout}\n{ended.stderr}".splitlines() if line.strip()]
    # Without pytest's surrounding output, if it names an error.
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    reason = one_line(redact((errors or lines or ["it said nothing"])[-1]), limit=300)
    return f"({ended.signal or f'status {ended.exit_code}'}): {reason}"


def verify_apart(
    flat: FlatPlan, *, directory: Path, env: Mapping[str, str] | None = None
) -> OutcomeDocument:
    """Verify every todo of a plan, ignoring dependencies and baseline, in a process of its own.

    ``directory`` and ``env`` are those of :func:`run_verifier`. The outcomes go to a temporary file among
    our own, where one that a killed process leaves does no harm. Raises
    :class:`planner.errors.BaselineError` if the run does not finish, and ``KeyboardInterrupt`` if it was
    interrupted.
    """
    root = flat.loaded.root
    try:
        outcomes = make_home(root) / f"recording-{os.getpid()}.json"
    except OSError as error:
        raise BaselineError(f"{root}: it is not writable ({error.strerror}); make it writable") from None
    words = (os.path.relpath(flat.loaded.path, directory), "--planverify-recording")
    try:
        document, ended = run_verifier(
            (*words, "--planverify-keep-going"), outcomes, directory=directory, env=env
        )
    finally:
        outcomes.unlink(missing_ok=True)
    if ended.exit_code == _INTERRUPTED or ended.signal == "SIGINT":
        raise KeyboardInterrupt
    # Any other status is a result: failed tests and violations are recorded as they are.
    if document is None or ended.signal or ended.exit_code in (_INTERNAL_ERROR, _USAGE_ERROR):
        raise BaselineError(f"the plan could not be verified {failure_reason(ended)}")
    return document


# -- baselines of git revisions ------------------------------------------------------------------------


def baseline_at(revision: str, flat: FlatPlan, directory: Path) -> KeptBaseline:
    """Return the baseline of a revision, recorded now and not stored.

    ``directory`` is where the run was started. Raises :class:`planner.errors.BaselineError` without git,
    for an unknown revision, or if the plan cannot be verified there.
    """
    asked = f"--planverify-baseline {revision}"
    root = flat.loaded.root
    repository = Repository.around(root)
    if repository is None:
        raise BaselineError(
            f"{asked}: {root} is not in a git repository; record a baseline instead: {record_command(flat)}"
        )
    commit = repository.commit(revision)
    if commit is None:
        raise BaselineError(
            f"{asked}: unknown revision in {repository.top}; name a commit, a tag or a branch"
        )
    try:
        document, contents = _record_at(repository, commit, flat, directory)
    except PlannerError as error:
        raise BaselineError(f"{asked}: {error}") from None
    path = PlanFolder(root, flat.loaded.plan.todo_list_id).path / f"{commit}.json"  # which is never written
    # The commit has the other contents.
    known = {name: contents.get(each.sha256) for name, each in document.files.items() if not each.committed}
    return KeptBaseline(root, document, path=path, contents=known)


def _record_at(
    repository: Repository, commit: str, flat: FlatPlan, directory: Path
) -> tuple[Baseline, Mapping[str, bytes]]:
    """Record the baseline of a commit; return it with its uncommitted contents by SHA-256."""
    root = flat.loaded.root
    with checkout(repository, commit) as tree:
        places = {part.path: counterpart(part.path, tree, root) for part in flat.parts}
        for path, place in places.items():
            if place is None:
                raise BaselineError(f"{path} is outside of the repository; keep the plan with the code")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, place)
        plan = places[flat.loaded.path]
        assert plan is not None
        inside = counterpart(directory, tree, root)
        # The revision may lack the folder in which the run was started.
        working = inside if inside is not None and inside.is_dir() else tree
        # As for the original, the plan's root may lie anywhere below the folder where the run was started.
        copy = load_tree(plan, boundary=working if working in plan.parents else None).load_all().flat()
        seen = look(copy.loaded.root)
        document, _ = make_baseline(copy, seen, directory=working, env=environment_for(tree, root))
    # Of uncommitted files only the plans belong to it, which are the current ones.
    plans = {os.path.relpath(part.path, root) for part in flat.parts}
    kept = {name: file for name, file in document.files.items() if file.committed or name in plans}
    document = document.model_copy(update={"revision": commit, "files": kept})
    return document, seen.contents
