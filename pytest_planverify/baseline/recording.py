"""Makes a baseline: what the plan's checks and tests say, and what every file below the root holds."""

from __future__ import annotations

import getpass
import hashlib
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from planner.model.baseline import (
    Baseline,
    BaselineCheck,
    BaselineFile,
    BaselineTest,
    BaselineTodo,
)
from planner.model.outcome import TestOutcome
from planner.model.plan import TodoStatus
from planner.model.taxonomy import Category
from pytest_planverify.baseline.inventory import inventory_of
from pytest_planverify.baseline.kinds import judges_of
from pytest_planverify.baseline.nodeids import below
from pytest_planverify.journal import read_journal
from pytest_planverify.repository import Repository
from pytest_planverify.work_tree import WorkTree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from planner.edges.plan_tree import FlatPlan
    from planner.model.outcome import Outcome, OutcomeDocument
    from pytest_planverify.journal import Record

LARGEST_COPY = 5 << 20
MOST_COPIED = 256 << 20
"""Of a larger file that no commit holds, and of what goes beyond this, only the sha256 is kept."""


class SeenFile(NamedTuple):
    """One file; its content is held where no commit holds it and it is not too large."""

    sha256: str
    size: int
    committed: bool
    content: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The files of a tree before anything of it ran."""

    tree: WorkTree
    files: Mapping[str, SeenFile]
    revision: str | None = None
    dirty: bool = False


def look(root: Path) -> Seen:
    """See what the files are, so that what tests leave behind does not count among them."""
    repository = Repository.around(root)
    tree = WorkTree(root, repository)
    commit = None if repository is None else repository.commit("HEAD")
    blobs: Mapping[str, str] = {}
    if repository is not None and commit is not None:
        blobs = repository.blobs(commit, *(path for path in tree.paths() if path.startswith("../")))
    files: dict[str, SeenFile] = {}
    held = 0
    for path in tree.paths():
        content = tree.read(path)
        if content is not None:
            blob = blobs.get(path)
            committed = blob is not None and blob == object_id(content, len(blob))
            digest = hashlib.sha256(content).hexdigest()
            copied = not committed and len(content) <= LARGEST_COPY and held + len(content) <= MOST_COPIED
            held += len(content) if copied else 0
            files[path] = SeenFile(digest, len(content), committed, content if copied else None)
    dirty = any(not file.committed for file in files.values()) or any(
        path not in files and not path.startswith("../") for path in blobs
    )
    return Seen(tree=tree, files=files, revision=commit, dirty=commit is not None and dirty)


def make_baseline(
    flat: FlatPlan, seen: Seen, outcomes: OutcomeDocument, records: Path
) -> tuple[Baseline, dict[str, bytes]]:
    """The baseline, and by sha256 the contents that no commit holds.

    ``records`` is the journal of the run: it knows of files that could not be imported, and of plugins.
    """
    told = _told(records)
    tests = dict(_tests(flat, outcomes))
    for path in _broken_files(told):
        tests.setdefault(path, BaselineTest(outcome=TestOutcome.ERROR))
    judges = judges_of(flat, {nodeid.partition("::")[0] for nodeid in tests}, seen.tree)
    files: dict[str, BaselineFile] = {}
    contents: dict[str, bytes] = {}
    for path, file in seen.files.items():
        kind = judges.kind_of(path)
        if file.content is not None:
            contents[file.sha256] = file.content
        files[path] = BaselineFile(sha256=file.sha256, size=file.size, kind=kind, committed=file.committed)
    document = Baseline(
        plan=flat.loaded.plan.todo_list_id,
        plan_digest=flat.loaded.digest,
        made_at=now(),
        revision=seen.revision,
        dirty=seen.dirty,
        python=platform.python_version(),
        pytest=outcomes.run.pytest,
        todos=dict(_todos(flat, outcomes)),
        tests=dict(sorted(tests.items())),
        files=dict(sorted(files.items())),
        inventory=inventory_of(told, flat.loaded.root),
        sub_plans={name: part.plan.todo_list_id for name, part in flat.files.items()},
    )
    return document, contents


def now() -> str:
    """The time, as RFC 3339 has it."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def user() -> str | None:
    """Who is at work, as far as the system tells."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a user without a name
        return None


def _todos(flat: FlatPlan, outcomes: OutcomeDocument) -> Iterator[tuple[str, BaselineTodo]]:
    for outcome in outcomes.outcomes:
        todo = flat.loaded.plan.todo(outcome.todo_id)
        signatures: dict[str, dict[str, None]] = {}
        for failure in outcome.failures:
            if failure.check_id is not None and failure.signature is not None:
                signatures.setdefault(failure.check_id, {})[failure.signature] = None
        yield (
            outcome.todo_id,
            BaselineTodo(
                state=outcome.state,
                claimed=todo.status is TodoStatus.CLAIMED,
                checks={
                    check.id: BaselineCheck(
                        verdict=check.verdict,
                        signatures=tuple(signatures.get(check.id, ())),
                        cmd=check.cmd,
                        tests=tuple(test.nodeid for test in check.tests),
                    )
                    for check in outcome.checks
                },
            ),
        )


def _tests(flat: FlatPlan, outcomes: OutcomeDocument) -> Iterator[tuple[str, BaselineTest]]:
    """Each test once: what is red in one check and green in another has given both answers."""
    answers: dict[str, list[TestOutcome]] = {}
    signatures: dict[str, str] = {}
    flaky: set[str] = set()
    for outcome in outcomes.outcomes:
        for check in outcome.checks:
            for test in check.tests:
                nodeid = below(flat, outcome.todo_id, test.nodeid)
                answers.setdefault(nodeid, []).append(test.outcome)
        _read_failures(flat, outcome, signatures, flaky)
    for nodeid, given in answers.items():
        ran = [answer for answer in given if answer is not TestOutcome.NOT_RUN]
        red = next((answer for answer in ran if answer.is_red), None)
        both = red is not None and any(answer in GREEN for answer in ran)
        if ran:
            yield (
                nodeid,
                BaselineTest(
                    outcome=red or ran[0],
                    flaky=both or nodeid in flaky,
                    signature=signatures.get(nodeid),
                ),
            )


GREEN = (TestOutcome.PASSED, TestOutcome.XPASSED)
"""What a test says that ran and held."""


def _read_failures(flat: FlatPlan, outcome: Outcome, signatures: dict[str, str], flaky: set[str]) -> None:
    for failure in outcome.failures:
        names = [below(flat, outcome.todo_id, test) for test in failure.tests]
        if failure.category is Category.FLAKY_TEST:
            flaky.update(names)
        if failure.signature is not None:
            for name in names:
                signatures.setdefault(name, failure.signature)


def _told(records: Path) -> list[Record]:
    try:
        return read_journal(records)
    except OSError:
        return []


def _broken_files(records: Iterable[Record]) -> Iterator[str]:
    """Test files that could not be imported, by their paths below the root."""
    for record in records:
        if record.get("record") == "collection_failure" and isinstance(record.get("nodeid"), str):
            yield record["nodeid"].partition("::")[0]


def object_id(content: bytes, digits: int = 40) -> str:
    """The name that git gives a content, in a repository whose names have that many digits."""
    digest = hashlib.sha256() if digits == 64 else hashlib.sha1(usedforsecurity=False)
    digest.update(b"blob %d\0" % len(content))
    digest.update(content)
    return digest.hexdigest()
