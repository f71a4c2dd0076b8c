"""Write revised plans beside the old ones or in their place, keep the version before, and put it back.

A plan and those of its sub-plans that were revised with it are one version. What stood in their place is
kept in ``.planverify/plans/{todo_list_id}/versions/{nnnn}/``: ``files.json`` names the files and the
digests of what was written, beside it stand the old files.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from planner.errors import PlannerError
from planner.planfile.file_writer import STANDARD_OUTPUT, is_stream, write_file
from planner.planfile.loader import load_plan, plan_id_of, shown_path
from planner.planfile.plan_folder import HOME, PLANS, PlanFolder, make_home
from planner.planfile.writer import dump_plan, format_of, rewrite

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from planner.model.plan import Plan
    from planner.planfile.loader import LoadedPlan
    from planner.planfile.tree import PlanTree

MOST_VERSIONS = 20
"""Older versions of a plan are removed."""

_FILES = "files.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPlan:
    """One file of a revised plan."""

    path: Path
    within: str
    """The qualified id of the parent whose sub-plan it is; empty for the plan itself."""
    text: str
    faithful: bool
    """Whether it is the user's text with changes; if not, their comments are lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What :func:`undo_plan` has put back."""

    files: tuple[Path, ...]
    left: int
    """How many versions of the plan there are still."""


def write_beside(tree: PlanTree, revised: Mapping[str, Plan], target: Path) -> tuple[NewPlan, ...]:
    """Write the revised plan to ``target``, and each changed sub-plan beside it, named by its parent.

    ``revised`` holds the plans by the qualified id of their parent, the top plan under the empty text.
    Where none differs from that of the tree nothing is written, and nothing returned. A copy that holds the
    same plan is replaced and kept as a version; ``-``, a device or a pipe gets the text of the top plan.
    Raises :class:`planner.errors.PlannerError`.
    """
    plans = _changed(tree, revised)
    if not plans:
        return ()
    if target == STANDARD_OUTPUT or is_stream(target):
        if any(plans):
            parents = ", ".join(sorted(filter(None, plans)))
            raise PlannerError(
                f"{target}: the sub-plans of {parents} are revised, too, and have no place there; "
                "name a file"
            )
        text = rewrite(tree.loaded, plans[""], target=tree.loaded.path)
        write_file(target, text.text)
        return (NewPlan(path=target, within="", text=text.text, faithful=text.faithful),)
    texts = plans_beside(tree, plans, target)
    parts = _parts(tree).values()
    own, ids = {os.path.realpath(part.path) for part in parts}, {part.plan.todo_list_id for part in parts}
    for each in texts:
        if os.path.realpath(each.path) in own:
            raise PlannerError(f"{shown_path(each.path)}: is a file of the plan itself; name another")
        refuse_other_plan(each.path, ids)
    _write(tree, texts)
    return texts


def write_in_place(tree: PlanTree, revised: Mapping[str, Plan]) -> tuple[NewPlan, ...]:
    """Write each revised plan to its own file, and keep the version before.

    Where no plan differs nothing is written, and nothing returned. Raises
    :class:`planner.errors.PlannerError`.
    """
    plans = _changed(tree, revised)
    parts = _parts(tree)
    unknown = next((within for within in plans if within not in parts), None)
    if unknown is not None:
        raise PlannerError(f"{shown_path(tree.loaded.path)}: no file holds the sub-plan of '{unknown}'")
    texts = tuple(
        _text(parts[within], plan, parts[within].path, within) for within, plan in sorted(plans.items())
    )
    _write(tree, texts)
    return texts


def plans_beside(tree: PlanTree, revised: Mapping[str, Plan], target: Path) -> tuple[NewPlan, ...]:
    """Return what :func:`write_beside` writes, the top plan first. Raises
    :class:`planner.errors.PlannerError`.

    A sub-plan that no file of the tree holds is written whole.
    """
    plans = _changed(tree, revised)
    parts = _parts(tree)
    texts: list[NewPlan] = []
    while deepest := max(plans, key=_depth, default=""):
        plan, part = plans.pop(deepest), parts.get(deepest)
        suffix = target.suffix if part is None else part.path.suffix
        path = target.with_name(f"{target.stem}.{deepest.replace('/', '.')}{suffix}")
        texts.append(_text(part, plan, path, deepest))
        above, _, todo_id = deepest.rpartition("/")
        root = parts[above].root if above in parts else tree.loaded.root
        plans[above] = _pointing(plans.get(above) or parts[above].plan, todo_id, path, root)
    texts.append(_text(tree.loaded, plans.get("", tree.loaded.plan), target, ""))
    return tuple(sorted(texts, key=lambda each: each.within))


def undo_plan(path: Path, *, force: bool = False) -> Undone:
    """Put back what stood in the place of a plan, and of its sub-plans, before it was revised last.

    Raises :class:`planner.errors.PlannerError` where there is no such version, and, unless it is forced,
    where a file was edited since.
    """
    real = Path(os.path.realpath(path))
    for folder in _versions_of(real):
        root, files = _read_version(folder)
        paths = [Path(os.path.normpath(root / each["path"])) for each in files]
        if real not in paths:
            continue
        held = [_bytes(each) for each in paths]
        before = [_bytes(folder / each["before"]) for each in files]
        if held == before:  # its writing was interrupted, or the files were put back by hand
            shutil.rmtree(folder, ignore_errors=True)
            continue
        for each, file, now in zip(paths, files, held, strict=True):
            if not force and (now is None or _digest(now) != file["written"]):
                raise PlannerError(
                    f"{shown_path(each)}: was edited since it was revised; undo it by hand, or lose the "
                    "edits with --force"
                )
        _replace_all([(each, text) for each, text in zip(paths, before, strict=True) if text is not None])
        shutil.rmtree(folder, ignore_errors=True)
        left = [each for each in folder.parent.iterdir() if (each / _FILES).is_file()]
        return Undone(files=tuple(paths), left=len(left))
    raise PlannerError(
        f"{shown_path(path)}: no version before is kept; only planner next --in-place and --output keep one"
    )


# -- texts ---------------------------------------------------------------------------------------------


def _parts(tree: PlanTree) -> dict[str, LoadedPlan]:
    """Return the plan and the sub-plans that were loaded, by the qualified id of their parent."""
    return {"": tree.loaded, **{name: sub.loaded for name, sub in tree.sub_plans().items()}}


def _changed(tree: PlanTree, revised: Mapping[str, Plan]) -> dict[str, Plan]:
    """Return the plans that differ from those of the tree; the sub-plans are loaded for it."""
    for within in revised:
        part = tree
        with suppress(KeyError, PlannerError):
            for parent in filter(None, within.split("/")):
                part = part.child(parent)
    parts = _parts(tree)
    return {name: plan for name, plan in revised.items() if name not in parts or plan != parts[name].plan}


def _text(part: LoadedPlan | None, plan: Plan, path: Path, within: str) -> NewPlan:
    if part is None:
        text = dump_plan(plan, format=format_of(path))
        return NewPlan(path=path, within=within, text=text, faithful=True)
    written = rewrite(part, plan, target=path)
    return NewPlan(path=path, within=within, text=written.text, faithful=written.faithful)


def _depth(within: str) -> tuple[int, str]:
    """Sort a sub-plan after the plans that it is part of."""
    return within.count("/") + bool(within), within


def _pointing(plan: Plan, todo_id: str, path: Path, root: Path) -> Plan:
    """Return the plan, with a parent that names another file as its sub-plan."""
    name = os.path.normpath(os.path.join(os.path.relpath(os.path.realpath(path.parent), root), path.name))
    if name.startswith(os.pardir):
        raise PlannerError(
            f"{shown_path(path)}: the revised sub-plan of '{todo_id}' would lie outside {root}; "
            f"name an output file below it"
        )
    items = tuple(
        todo.model_copy(update={"sub_plan": Path(name).as_posix()}) if todo.id == todo_id else todo
        for todo in plan.items
    )
    return plan.model_copy(update={"items": items})


def refuse_other_plan(path: Path, plan_ids: set[str]) -> None:
    """Refuse to replace a file that holds none of these plans. Raises
    :class:`planner.errors.PlannerError`.
    """
    if not os.path.lexists(path) or is_stream(path):
        return
    if (path.is_file() and path.stat().st_size == 0) or plan_id_of(path) in plan_ids:
        return
    raise PlannerError(
        f"{shown_path(path)}: holds something else than this plan, and is not replaced; name a new file"
    )


# -- versions ------------------------------------------------------------------------------------------


def _write(tree: PlanTree, texts: Sequence[NewPlan]) -> None:
    """Write all files or none, and keep what they replace."""
    new = [(Path(os.path.realpath(each.path)), each.text.encode()) for each in texts]
    new = [(path, text) for path, text in new if _bytes(path) != text]
    old = [(path, text) for path, _ in new if (text := _bytes(path))]
    if old:
        _keep(tree, old, dict(new))
    _replace_all(new)


def _keep(tree: PlanTree, old: Sequence[tuple[Path, bytes]], new: Mapping[Path, bytes]) -> None:
    root = tree.loaded.root
    try:
        make_home(root)
        folder = PlanFolder(root, tree.loaded.plan.todo_list_id).versions
        folder.mkdir(parents=True, exist_ok=True)
        kept = sorted(folder.glob("[0-9]*"))
        version = folder / f"{int(kept[-1].name) + 1 if kept else 1:04d}"
        beside = folder / f".{version.name}.{os.getpid()}.tmp"
        beside.mkdir()
    except (OSError, ValueError) as error:
        raise PlannerError(
            f"{shown_path(root / HOME)}: the version before cannot be kept: {error}; make it writable"
        ) from None
    files: list[dict[str, str]] = []
    for number, (path, text) in enumerate(old):
        name = f"{number}{path.suffix}"
        write_file(beside / name, text)
        files.append({"path": os.path.relpath(path, root), "before": name, "written": _digest(new[path])})
    write_file(beside / _FILES, json.dumps({"version": 1, "files": files}, indent=1) + "\n")
    os.rename(beside, version)
    for each in kept[: max(len(kept) + 1 - MOST_VERSIONS, 0)]:
        shutil.rmtree(each, ignore_errors=True)


def _versions_of(path: Path) -> Iterator[Path]:
    """Yield the folders of versions of which one may hold a file, the newest first of each plan."""
    roots: list[Path] = list(path.parents)
    with suppress(PlannerError):
        roots.insert(0, load_plan(path, boundary=path.parents[-1]).root)
    for root in dict.fromkeys(roots):
        for folder in sorted((root / PLANS).glob("*/versions/[0-9]*"), reverse=True):
            if (folder / _FILES).is_file():
                yield folder


def _read_version(folder: Path) -> tuple[Path, list[dict[str, str]]]:
    """Return the root of a version's plan and its files; none of what is damaged."""
    root = folder.parents[len(Path(PLANS).parts) + 2]
    try:
        held: Any = json.loads((folder / _FILES).read_text("utf-8"))
        files = cast("list[dict[str, str]]", held["files"])
        return root, [{name: str(each[name]) for name in ("path", "before", "written")} for each in files]
    except (OSError, ValueError, KeyError, TypeError):
        return root, []


def _replace_all(new: Sequence[tuple[Path, bytes]]) -> None:
    """Write all files; where one cannot be written, put back those that were."""
    done: list[tuple[Path, bytes | None]] = []
    try:
        for path, text in new:
            done.append((path, _bytes(path)))
            write_file(path, text, mode=None, durable=True)
    except BaseException:
        for path, text in done[:-1]:
            if text is None:
                path.unlink(missing_ok=True)
            else:
                write_file(path, text, mode=None)
        raise


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError as error:
        raise PlannerError(f"{shown_path(path)}: cannot be read: {error.strerror}") from None


def _digest(text: bytes) -> str:
    return f"sha256:{sha256(text).hexdigest()}"
