"""Build runs with one to four faults in small projects, and determine which fault caused which failure.

Each fault is first applied alone; failures of that run belong to it. In a run with several faults, a
failure belongs to the one fault whose own run had it, too; if two faults may have caused it, it is left
out.
"""

from __future__ import annotations

import json
import random
import shutil
import socket
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml
from edits import Edit, EditError, Files, changed_files, commit_files, write_files
from recording import Recording, plan_of, record

from planner.model.base import Value
from planner.model.evidence import Evidence
from tools.corpus.case import FaultyRun, Label, RunFailure, is_test_kind

__all__ = ["KINDS", "PROJECTS", "build_runs"]

FOLDER = Path(__file__).with_name("faulty_projects")
"""One file for each project, with the keys of :class:`Project`."""

COMBINATIONS = 12
"""Number of runs with two to four faults of each project."""

MOST_PIECES = 5
"""Most failures of one fault in one todo that a run keeps, as more show nothing new."""

_SETTINGS = "[pytest]\npythonpath = . tests\n"
_HARMLESS_TEST = "def test_there_are_numbers():\n    assert 1 < 2\n"


class Turn(StrEnum):
    """Order in which an engineer repairs faults: those that hide others come first."""

    UNDERLYING = "underlying"
    """Nothing that depends on it can run: an import, a syntax error, a conftest, a fixture, a service."""
    ORDINARY = "ordinary"
    UNSTABLE = "unstable"
    """It is flaky, and comes after everything that fails each time."""


class Fault(Value):
    """One fault with its label."""

    kind: str
    label: Label
    edits: tuple[Edit, ...] = ()
    turn: Turn = Turn.ORDINARY
    without_service: bool = False
    """Whether the service that the tests use is stopped."""


class Project(Value):
    """A project whose tests pass."""

    name: str
    files: Mapping[str, str]
    todos: Mapping[str, Mapping[str, Any]]
    """Acceptance criteria by todo."""
    depends: Mapping[str, tuple[str, ...]] = {}
    faults: tuple[Fault, ...]
    service: bool = False
    """Whether the tests connect to the port that ``SERVICE_PORT`` names."""


KINDS: Mapping[str, str] = {
    "broken-shared-fixture": "A fixture that many tests use raises.",
    "broken-conftest": "A conftest cannot be imported.",
    "syntax-error": "A module that others import does not parse.",
    "missing-module": "A module of the project is gone.",
    "missing-dependency": "A module imports a package that is not installed.",
    "renamed-function": "A function that many tests and modules use has another name.",
    "changed-signature": "A function asks for another argument than its callers give.",
    "wrong-value": "A function gives a wrong value.",
    "wrong-value-below": "A function that other functions use gives a wrong value.",
    "raises-below": "A function that other functions use raises.",
    "refuses-below": "A check of values that others use refuses good ones.",
    "lost-attribute": "A class no longer sets an attribute that its methods use.",
    "none-below": "A function that other functions use gives None.",
    "absent-service": "A service that a session fixture connects to is not there.",
    "absent-tool": "A program that the product starts is not on this machine.",
    "flaky-test": "A test that fails every other time.",
    "type-and-tests": "What a type checker complains of, and tests fail by.",
    "typo-in-test": "A test uses a name that is not there.",
    "wrong-helper": "A function that tests share computes wrongly.",
    "unwritten-artifact": "A function that writes an artifact fails, and the artifact is not there.",
}


def read_projects() -> tuple[Project, ...]:
    """Return the projects in the order of their names."""
    return tuple(
        Project(**yaml.safe_load(file.read_text("utf-8"))) for file in sorted(FOLDER.glob("*.yaml"))
    )


PROJECTS = read_projects()

Key = tuple[str, str, str]
"""Todo, criterion, and the test or file that failed."""


class Unusable(Exception):
    """A run that fails a gate, which the message names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One failure of a run, with its todo."""

    todo: str
    evidence: Evidence

    @property
    def key(self) -> Key:
        shown = self.evidence.nodeid or " ".join(self.evidence.tests)
        return self.todo, self.evidence.check_id, shown


def build_runs(work: Path, seed: int, only: Collection[str] = ()) -> Iterator[FaultyRun]:
    """Build the runs of every project, or of those in ``only``; ``work`` is a scratch folder."""
    dropped: Counter[str] = Counter()
    for project in PROJECTS:
        if not only or project.name in only:
            yield from _runs_of(project, work / project.name, seed, dropped)
    for reason, count in sorted(dropped.items()):
        print(f"dropped {count}: {reason}", file=sys.stderr)


def _runs_of(project: Project, work: Path, seed: int, dropped: Counter[str]) -> Iterator[FaultyRun]:
    chance = random.Random(f"{seed}:{project.name}")
    green = work / "green"
    shutil.rmtree(work, ignore_errors=True)
    write_files(green, {**project.files, "pytest.ini": _SETTINGS})
    commit_files(green, "green")
    try:
        is_green = not _seen(project, work, (), random.Random(0))
    except Unusable:
        is_green = False
    if not is_green:
        dropped[f"{project.name} is not green"] += 1
        return
    alone: dict[int, frozenset[Key]] = {}
    for number, fault in enumerate(project.faults):
        try:
            pieces = _seen(project, work, (fault,), chance)
            _require_every_time(pieces, fault)
        except Unusable as problem:
            dropped[f"{project.name} {fault.kind}: {problem}"] += 1
            continue
        alone[number] = frozenset(piece.key for piece in pieces)
        yield _run(project, (number,), pieces, alone, masked=False)
    for numbers in _chosen(project, sorted(alone), chance):
        try:
            pieces = _seen(project, work, tuple(project.faults[each] for each in numbers), chance)
            yield _run(project, numbers, pieces, alone, masked=chance.random() < 0.5)
        except Unusable as problem:
            dropped[f"{project.name}: {problem}"] += 1


def _chosen(project: Project, usable: Sequence[int], chance: random.Random) -> Iterator[tuple[int, ...]]:
    """Yield combinations of faults that can be applied to one tree.

    In half of them all faults have kinds of one part, so that both parts get such runs.
    """
    possible = [
        numbers
        for size in (2, 3, 4)
        for numbers in combinations(usable, size)
        if _fits(project, [project.faults[each] for each in numbers])
    ]
    alike = [
        numbers
        for numbers in possible
        if not any(is_test_kind(project.faults[each].kind) for each in numbers)
    ]
    chosen = chance.sample(alike, min(len(alike), COMBINATIONS // 2))
    rest = [numbers for numbers in possible if numbers not in chosen]
    yield from sorted(chosen + chance.sample(rest, min(len(rest), COMBINATIONS - len(chosen))))


def _fits(project: Project, faults: Sequence[Fault]) -> bool:
    try:
        _changed(project, faults)
    except Unusable:
        return False
    return True


def _changed(project: Project, faults: Sequence[Fault]) -> Files:
    try:
        return changed_files(project.files, (edit for fault in faults for edit in fault.edits))
    except EditError as error:
        raise Unusable("two faults change one place") from error


def _seen(
    project: Project, work: Path, faults: Sequence[Fault], chance: random.Random
) -> tuple[Piece, ...]:
    """Return the failures of a run with these faults, with all todos independent so that none is hidden."""
    folder = work / "project"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(work / "green", folder)
    files = _changed(project, faults)
    write_files(folder, files, project.files)
    if faults and chance.random() < 0.5:
        _edit_harmlessly(project, folder, faults, chance)
    present = not any(fault.without_service for fault in faults)
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:
        port = server.getsockname()[1]
        if not present:
            server.close()
        variables = {"SERVICE_PORT": str(port)} if project.service else {}
        try:
            recording = record(folder, plan_of(project.todos), environment=variables)
        except RuntimeError as error:
            raise Unusable("the run wrote no outcomes") from error
    return _pieces(folder, recording, project)


def _edit_harmlessly(
    project: Project, folder: Path, faults: Sequence[Fault], chance: random.Random
) -> None:
    concerned = {edit.path for fault in faults for edit in fault.edits}
    others = [
        path
        for path in sorted(project.files)
        if path not in concerned and path.endswith(".py") and not path.startswith("tests/")
    ]
    if chance.random() < 0.5 and others:
        path = folder / chance.choice(others)
        path.write_text(path.read_text(encoding="utf-8") + "\n# Reviewed.\n", encoding="utf-8")
    else:
        (folder / "tests" / "test_numbers.py").write_text(_HARMLESS_TEST, encoding="utf-8")


def _pieces(folder: Path, recording: Recording, project: Project) -> tuple[Piece, ...]:
    """Return each failure with its todo; todos are diagnosed one by one, the last todo first."""
    judged: dict[tuple[str, str], int] = {}
    for journal in folder.glob(".planverify/runs/*/journal.jsonl"):
        for line in journal.read_text(encoding="utf-8").splitlines():
            found = json.loads(line)
            if found["record"] == "check_judged":
                judged[found["todo_id"], found["check"]["id"]] = len(found["evidence"])
    left = list(recording.evidence)
    pieces: list[Piece] = []
    for todo in reversed(project.todos):
        checks = [each["id"] for each in recording.outcomes[todo]["checks"]]
        for check_id in checks:
            taken, left = left[: judged.get((todo, check_id), 0)], left[judged.get((todo, check_id), 0) :]
            if any(each.check_id != check_id for each in taken):
                raise Unusable("failures that are not in the order of the todos")
            pieces.extend(Piece(todo=todo, evidence=each) for each in taken)
    if left:
        raise Unusable("failures of no todo")
    order = list(project.todos)
    return tuple(sorted(pieces, key=lambda piece: order.index(piece.todo)))


def _require_every_time(pieces: Sequence[Piece], fault: Fault) -> None:
    if not pieces:
        raise Unusable("nothing is red")
    answers = [each.passed for piece in pieces for each in piece.evidence.confirmations]
    if (fault.turn is Turn.UNSTABLE) != any(answers):
        raise Unusable("it is not red as often as it should be")


def _run(
    project: Project,
    numbers: tuple[int, ...],
    pieces: Sequence[Piece],
    alone: Mapping[int, frozenset[Key]],
    *,
    masked: bool,
) -> FaultyRun:
    """Return the run with the failures that belong to one fault.

    ``masked`` leaves out what a failed todo blocks.
    """
    blocked = _blocked(project, {piece.todo for piece in pieces}) if masked else frozenset[str]()
    failures: list[RunFailure] = []
    kept: Counter[tuple[str, int]] = Counter()
    for piece in pieces:
        owners = [place for place, number in enumerate(numbers) if piece.key in alone[number]]
        if piece.todo in blocked or len(owners) != 1:
            continue
        kept[piece.todo, owners[0]] += 1
        if kept[piece.todo, owners[0]] <= MOST_PIECES:
            failures.append(RunFailure(todo=piece.todo, evidence=piece.evidence, fault=owners[0]))
    if not failures:
        raise Unusable("no failure belongs to one fault alone")
    faults = [project.faults[number] for number in numbers]
    return FaultyRun(
        id=f"faulty-{project.name}-{'-'.join(map(str, numbers))}",
        package=project.name,
        kinds=tuple(fault.kind for fault in faults),
        labels=tuple(fault.label for fault in faults),
        todos=tuple(project.todos),
        depends=dict(project.depends),
        failures=tuple(failures),
        first=_first(project, faults, failures),
    )


def _blocked(project: Project, failed: Collection[str]) -> frozenset[str]:
    """Return the todos that depend on a failed one."""
    found: set[str] = set()
    for todo in project.todos:  # each stands after those that it depends on
        if any(each in failed or each in found for each in project.depends.get(todo, ())):
            found.add(todo)
    return frozenset(found)


def _first(project: Project, faults: Sequence[Fault], failures: Sequence[RunFailure]) -> tuple[int, ...]:
    """Return the faults to repair first: by the number of dependent ones, then in the order of todos."""
    todos: dict[int, set[str]] = {}
    for failure in failures:
        todos.setdefault(failure.fault, set()).add(failure.todo)
    turn = min((faults[number].turn for number in todos), key=list(Turn).index)
    able = [number for number in sorted(todos) if faults[number].turn is turn]

    def goes_before(one: int, other: int) -> bool:
        def later(early: int, late: int) -> bool:
            return all(
                todo not in todos[early] and _blocked(project, todos[early]) >= {todo}
                for todo in todos[late]
            )

        return later(one, other)

    return tuple(number for number in able if not any(goes_before(other, number) for other in able))
