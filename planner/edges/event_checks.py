"""Holds the parts of plans that stand in events to what a plan file may say: commands of the catalog, paths
below the root."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.errors import RefusedEvent
from planner.model.edits import AddCheck, AddContract, Isolate, NameArtifact, NarrowFiles, RetargetCheck
from planner.model.plan import AcceptanceCriteria, ArtifactSpec, CommandSpec, Todo
from planner.planfile.checks import judge_todo
from planner.planfile.confinement import Confinement
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from planner.model.edits import Edit
    from planner.model.plan import Plan

_LONGEST = 500


def faults_of_plan(plan: Plan, root: Path) -> tuple[str, ...]:
    """What is wrong with the todos of a plan that stands in an event; its root is taken for ``root``."""
    return tuple(fault for todo in plan.items for fault in _faults(todo, root))


def refuse_unfit_edits(edits: Iterable[Edit], root: Path) -> None:
    """Refuse edits that say what no plan may. Raises :class:`planner.errors.RefusedEvent`."""
    for edit in edits:
        for todo in _todos_of(edit):
            _refuse_unfit(todo, root, f"{edit.edit}")


def refuse_unfit_files(patterns: Iterable[str], root: Path) -> None:
    """Refuse globs that lead out of the root. Raises :class:`planner.errors.RefusedEvent`."""
    _refuse_unfit(_standing_for(allowed_files=tuple(patterns)), root, "allowed_files")


def _refuse_unfit(todo: Todo, root: Path, where: str) -> None:
    fault = next(_faults(todo, root), None)
    if fault is not None:
        raise RefusedEvent(
            "unfit-edit", f"{where} says what no plan may: {fault}", "say what a plan file may say, too"
        )


def _faults(todo: Todo, root: Path) -> Iterator[str]:
    for place, said in judge_todo(todo, Confinement(root)):
        where = ".".join(map(str, place))
        yield " ".join(clean(f"{todo.id}.{where}: {said}", limit=_LONGEST).split())


def _todos_of(edit: Edit) -> Iterator[Todo]:
    """The todos that an edit holds, and one that stands for whatever else it would put into a plan."""
    held = getattr(edit, "todo", None)
    if held is not None:
        yield held
    yield from getattr(edit, "parts", ())
    match edit:
        case NarrowFiles(allowed_files=patterns):
            yield _standing_for(allowed_files=patterns)
        case AddContract(contract_path=path):
            yield _standing_for(contract_path=path)
        case NameArtifact(path=path):
            yield _standing_for(artifacts=(path,))
        case AddCheck(check=check):
            yield _standing_for(tests=(check,))
        case Isolate(tests=tests):
            yield _standing_for(tests=tests)
        case RetargetCheck(to_cmd=cmd):
            yield _standing_for(tests=(CommandSpec.model_construct(cmd=cmd),))
        case _:
            pass


def _standing_for(
    *,
    allowed_files: tuple[str, ...] | None = None,
    contract_path: str | None = None,
    artifacts: tuple[str, ...] = (),
    tests: tuple[CommandSpec, ...] = (),
) -> Todo:
    expected = tuple(ArtifactSpec(path=path) for path in artifacts)
    criteria = AcceptanceCriteria(tests=tests, expected_artifacts=expected)
    return Todo(
        id="edit",
        title="what an edit says",
        allowed_files=allowed_files,
        contract_path=contract_path,
        acceptance_criteria=criteria,
        requires_testing=False,  # so that it may be without criteria
    )
