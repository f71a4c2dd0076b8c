"""Loads a plan, and writes one: bytes -> bounded events -> nodes -> plain values -> model -> checks.

Each step is a module of its own: :mod:`.source` reads the bytes, :mod:`.nodes.of_yaml` and
:mod:`.nodes.of_json` build the tree of nodes with positions, :mod:`.nodes.shapes` turns it into plain
values by what the models want (:mod:`.nodes.model_shapes`), the models check each value, and
:mod:`.plan_checks` what the values are to each other. Every step adds what it finds to the same list of
faults, and the file is refused with all of them.
"""

from __future__ import annotations

import gc
import os
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from pydantic import ValidationError

from planner.edges import plan_text
from planner.edges.faults import Fault, Refused, plan_file_error
from planner.edges.nodes import MAX_FAULTS, Loc, MappingNode, Scalar, Tree, follow
from planner.edges.nodes.model_shapes import all_spellings, record_of
from planner.edges.nodes.of_json import read_json
from planner.edges.nodes.of_yaml import read_yaml
from planner.edges.plan_checks import Judgement, judge_plan, judge_todo
from planner.edges.project.confinement import Confinement, is_below, unusual_fault
from planner.edges.project.conventions import Conventions
from planner.edges.source import Source, decode, read_source
from planner.edges.wording import ALREADY_SAID, worded
from planner.model.base import Value
from planner.model.plan import Plan, Todo

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

    from planner.errors import PlanFileError
    from planner.rules.criteria import Criterion

_Model = TypeVar("_Model", bound=Value)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedPlan:
    """A plan that may be run, and where it came from."""

    plan: Plan
    path: Path
    """Absolute, its folder resolved."""
    root: Path
    """Absolute; every path of the plan is relative to it and stays below it."""
    digest: str
    """``sha256:`` and the digest of the file's bytes."""
    criteria: Mapping[str, tuple[Criterion, ...]]
    """By the id of the todo, those found by convention included."""


def load_plan(path: Path, *, boundary: Path | None = None) -> LoadedPlan:
    """Load a plan file. Raises :class:`planner.errors.PlanFileError` with every fault of the file.

    The plan's ``root`` must lie in the folder of the file, or in ``boundary`` (the current directory).
    """
    with collector_paused(), _faults_of(path):
        return _loaded(read_source(path), path, boundary)[0]


def load_with_tree(path: Path, *, boundary: Path | None = None) -> tuple[LoadedPlan, Tree]:
    """Load a plan as :func:`load_plan` does, and keep the nodes of the file: they know where all stands."""
    with collector_paused(), _faults_of(path):
        return _loaded(read_source(path), path, boundary)


def load_plan_text(text: str, path: Path, *, boundary: Path | None = None) -> LoadedPlan:
    """Load a plan that is not written yet, as if ``path`` held the text. Looks at no file of that name.

    Raises :class:`planner.errors.PlanFileError` with every fault of the text.
    """
    with collector_paused(), _faults_of(path):
        return _loaded(decode(text.encode("utf-8", "surrogatepass")), path, boundary)[0]


def load_todo(path: Path) -> Todo:
    """Load a branch todo or a step spec that stands alone in a file; its paths are relative to its folder.

    Raises :class:`planner.errors.PlanFileError` with every fault of the file.
    """
    with _faults_of(path):
        _, tree = _read(path)
        todo, sound = _read_model(tree, Todo)
        folder = Path(os.path.realpath(path.parent))
        _report(tree, judge_todo(todo, Confinement(folder)))
        faults = tree.all_faults()
        if faults or not sound:
            raise Refused("", tuple(faults))
        return todo


def plan_as_it_stands(content: bytes, name: str) -> Plan | None:
    """What the bytes of a plan say, whether or not it may be run; ``None`` where they are no plan.

    ``name`` tells JSON from YAML. Looks at no other file.
    """
    try:
        plan, sound = _read_model(_tree_of(decode(content), Path(name)), Plan)
    except Refused:
        return None
    return plan if sound else None


def faults_at(path: Path, found: Iterable[tuple[Loc, str]]) -> PlanFileError:
    """The error for faults of a plan file that show only when other files are looked at.

    Each is a place by the names of the model, ``("items", 2, "sub_plan")``, and what is wrong there.
    """
    try:
        _, tree = _read(path)
    except Refused:  # the file has changed since it was loaded
        return plan_file_error(shown_path(path), [Fault(problem=problem) for _, problem in found])
    _report(tree, found)
    return plan_file_error(shown_path(path), tree.all_faults())


def plan_id_of(path: Path) -> str | None:
    """The ``todo_list_id`` of a file without loading it as a plan; ``None`` where it is none."""
    try:
        _, tree = _read(path)
    except Refused:
        return None
    node, _, is_there = follow(tree.root, ("todo_list_id",), all_spellings())
    return node.text if is_there and isinstance(node, Scalar) else None


def dump_plan(plan: Plan, *, format: Literal["yaml", "json"]) -> str:
    """A plan as the text of a file: what was set, without the defaults. Loading it gives an equal plan."""
    return plan_text.render(plan, format=format)


def shown_path(path: Path) -> str:
    """The path as a person in this directory would write it."""
    try:
        return str(path.relative_to(Path.cwd())) if path.is_absolute() else str(path)
    except (ValueError, OSError):
        return str(path)


@contextmanager
def collector_paused() -> Generator[None]:
    """Loading makes many values and no garbage in circles: collecting it would take most of the time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _loaded(source: Source, path: Path, boundary: Path | None) -> tuple[LoadedPlan, Tree]:
    tree = _tree_of(source, path)
    plan, sound = _read_model(tree, Plan)
    folder = Path(os.path.realpath(path.parent))
    root = _root(plan, folder, Path.cwd() if boundary is None else boundary, tree)
    judgement = _judged(plan, root)
    _report(tree, judgement.faults)
    faults = tree.all_faults()
    if faults or not sound or root is None:
        raise Refused("", tuple(faults))
    loaded = LoadedPlan(
        plan=plan,
        path=folder / path.name,
        root=root,
        digest=source.digest,
        criteria=judgement.criteria,
    )
    return loaded, tree


def _read(path: Path) -> tuple[Source, Tree]:
    source = read_source(path)
    return source, _tree_of(source, path)


def _tree_of(source: Source, path: Path) -> Tree:
    return (read_json if path.suffix.lower() == ".json" else read_yaml)(source)


def _read_model(tree: Tree, model: type[_Model]) -> tuple[_Model, bool]:
    """The model that the tree holds, and whether it is sound; if not, what of it could be read."""
    record = record_of(model)
    if not isinstance(tree.root, MappingNode):
        tree.mark(tree.root, f"the file is no mapping; write keys, such as '{record.example()}: …'")
        raise Refused("", tuple(tree.all_faults()))
    values = cast("dict[str, Any]", record.read(tree.root, tree))
    try:
        return model.model_validate(values, by_alias=False, by_name=True), True
    except ValidationError as error:
        details = error.errors(include_url=False)
    said = [(detail["loc"], worded(detail)) for detail in details if detail["type"] not in ALREADY_SAID]
    if not said and not tree.all_faults():
        # The shapes should have found it; that they did not must not leave the user without a word.
        said = [(detail["loc"], worded(detail)) for detail in details]
    _report(tree, said, unless_marked=True)
    return cast("_Model", record.construct(values)), False


def _report(tree: Tree, found: Iterable[tuple[Loc, str]], *, unless_marked: bool = False) -> None:
    """Add faults that are known by their place in the model."""
    spellings = all_spellings()
    for loc, problem in islice(found, MAX_FAULTS):
        node, path, _ = follow(tree.root, loc, spellings)
        # Emptiness of what could not be read is no news, nor is a blank that stands for it.
        if tree.holds_faults(node, below=not unless_marked and loc[-1:] == ("acceptance_criteria",)):
            continue
        line, column = tree.source.position(node.at)
        fault = Fault(line=line, column=column, path=path.removeprefix("."), problem=problem)
        tree.faults.append(fault)


def _root(plan: Plan, folder: Path, boundary: Path, tree: Tree) -> Path | None:
    """The folder that the plan's paths start from, or ``None`` after reporting what is wrong with it."""
    problem = unusual_fault(plan.root, "the plan file's folder")
    if problem is None:
        root = os.path.realpath(folder / plan.root)
        allowed = [os.path.realpath(folder), os.path.realpath(boundary)]
        if not any(is_below(root, each) for each in allowed):
            problem = f"the root '{plan.root}' leaves {allowed[-1]}; name a folder inside it"
        elif not Path(root).is_dir():
            problem = f"the root '{plan.root}' is no folder; name the one that the plan's paths start from"
        else:
            return Path(root)
    _report(tree, [(("root",), problem)])
    return None


def _judged(plan: Plan, root: Path | None) -> Judgement:
    if root is None:
        return judge_plan(plan, None, None)
    return judge_plan(plan, Confinement(root), Conventions(root, {todo.id: todo for todo in plan.items}))


@contextmanager
def _faults_of(path: Path) -> Generator[None]:
    """Turns a refusal into the error that the user sees."""
    try:
        yield
    except Refused as refused:
        error = plan_file_error(shown_path(path), refused.faults)
    else:
        return
    raise error
