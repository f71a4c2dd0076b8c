"""Loading of a plan: nodes with positions, then values, then model, then checks.

:mod:`.document` composes the nodes within bounds, :mod:`.values` validates them with pydantic, and
:mod:`.checks` compares the values with each other. Each step adds its faults to the document, and the
file is refused with all of them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import PlannerError
from planner.model.plan import Plan
from planner.planfile.checks import judge_plan
from planner.planfile.discovery import plan_boundary
from planner.planfile.document import (
    Document,
    Loc,
    Refused,
    Source,
    compose,
    decode,
    plan_file_error,
    read_source,
)
from planner.planfile.project_files import is_below, unusual_fault
from planner.planfile.values import read_model
from planner.policy.limits import tools_under
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from planner.model.plan import ToolSpec
    from planner.policy.criteria import Criterion


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedPlan:
    """A valid plan, which may be run, with its file, its root and its criteria."""

    plan: Plan
    path: Path
    """Absolute path with resolved folder."""
    root: Path
    """Absolute root that contains every path of the plan."""
    digest: str
    """``sha256:`` and the digest of the file's bytes."""
    criteria: Mapping[str, tuple[Criterion, ...]]
    """Criteria by todo id, including conventional ones."""
    tools: tuple[ToolSpec, ...] = ()
    """Tools for its commands besides the catalog: its own, else those of the plan above."""
    document: Document = field(repr=False, compare=False)
    """Nodes of the file, with positions."""


def load_plan(
    path: Path,
    *,
    text: str | None = None,
    boundary: Path | None = None,
    tools_above: tuple[ToolSpec, ...] | None = None,
) -> LoadedPlan:
    """Load a plan file, or a ``text`` as if ``path`` contained it: then no such file is read.

    The plan's ``root`` must lie in the file's folder or in ``boundary`` (default:
    :func:`.discovery.plan_boundary`). ``tools_above`` are the tools of the plan above a sub-plan. Raises
    :class:`planner.errors.PlanFileError` with every fault of the file.
    """
    try:
        # With lone surrogates, which decode() refuses with their position.
        source = read_source(path) if text is None else decode(text.encode("utf-8", "surrogatepass"))
        document = _document_of(source, path)
        plan, is_valid = read_model(document, Plan)
        # The last part may stay a link: the paths of the plan start at the folder of the link.
        real = Path(os.path.realpath(path.parent)) / path.name
        root = _root(plan, real, boundary, document)
        tools = tools_under(plan.metadata, tools_above)
        faults, criteria = judge_plan(plan, root, tools, tools_above)
        _report(document, faults)
        # Only now, so that one error has the faults of all steps.
        if document.faults or not is_valid or root is None:
            raise Refused("", document.faults)
    except Refused as refused:
        raise plan_file_error(shown_path(path), refused.faults) from None
    return LoadedPlan(
        plan=plan,
        path=real,
        root=root,
        digest=source.digest,
        criteria=criteria,
        tools=tools,
        document=document,
    )


def load_plan_text(text: str, path: Path, *, boundary: Path | None = None) -> LoadedPlan:
    """Load a plan from text, like :func:`load_plan`."""
    return load_plan(path, text=text, boundary=boundary)


def plan_as_it_stands(content: bytes, name: str) -> Plan | None:
    """Load a plan from bytes, valid to run or not; ``None`` if they are no plan.

    ``name`` decides between JSON and YAML. No other file is read.
    """
    try:
        plan, is_valid = read_model(_document_of(decode(content), Path(name)), Plan)
    except Refused:
        return None
    return plan if is_valid else None


def plan_id_of(path: Path) -> str | None:
    """Return the ``todo_list_id`` of a file without loading it; ``None`` if it has none."""
    try:
        document = _document_of(read_source(path), path)
    except Refused:
        return None
    place = document.find(("todo_list_id",))
    return place.node.value if place.is_there and isinstance(place.node.value, str) else None


def shown_path(path: Path) -> str:
    """Return the path relative to the current folder, as a person would write it."""
    try:
        return str(path.relative_to(Path.cwd())) if path.is_absolute() else str(path)
    except (ValueError, OSError):  # another folder; or the current one was removed
        return str(path)


def file_error(path: Path, problem: str) -> PlannerError:
    """Return the one-line error about a file of a plan as a whole."""
    return PlannerError(one_line(f"{shown_path(path)}: {problem}", limit=1_000))


def _document_of(source: Source, path: Path) -> Document:
    return compose(source, is_json=path.suffix.lower() == ".json")


def _report(document: Document, found: Iterable[tuple[Loc, str]]) -> None:
    """Add faults by location."""
    for loc, problem in found:
        place = document.find(loc)
        # Values that could not be read were replaced by blanks, whose emptiness is no further fault.
        if not document.is_faulty(place.path, below=loc[-1:] == ("acceptance_criteria",)):
            document.mark(place.start, place.path, problem)


def _root(plan: Plan, path: Path, boundary: Path | None, document: Document) -> Path | None:
    """Return the plan's root folder; ``None`` after adding a fault."""
    folder = path.parent
    problem = unusual_fault(plan.root, "the plan file's folder")
    if problem is None:
        root = os.path.realpath(folder / plan.root)
        allowed = str(folder)
        # Only now, as the boundary is found by a search of the folders above.
        if not is_below(root, allowed):
            allowed = os.path.realpath(boundary or plan_boundary(path))
        if not is_below(root, allowed):
            problem = f"the root '{plan.root}' is outside of {allowed}; name a folder inside it"
        elif not Path(root).is_dir():
            problem = (
                f"the root '{plan.root}' is not a folder; name the folder that the paths of the "
                "plan are relative to"
            )
        else:
            return Path(root)
    _report(document, [(("root",), problem)])
    return None
