"""Versions of revised plans: written beside or in place of the old ones, with undo.

A plan and the sub-plans revised with it are one version. The contents that the last revision replaced are
kept in ``.planverify/plans/{todo_list_id}/previous.json``, with digests of what was written; those of a
copy, in another file beside it.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.errors import PlannerError
from planner.planfile.discovery import PLAN_ENDINGS
from planner.planfile.file_writer import is_stream, replace_file, write_file
from planner.planfile.loader import file_error, load_plan, plan_id_of
from planner.planfile.plan_folder import PLANS, PlanFolder, make_home
from planner.planfile.project_files import read_regular
from planner.planfile.writer import Rewritten, rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planner.model.plan import Plan
    from planner.planfile.loader import LoadedPlan
    from planner.planfile.tree import PlanTree


def write_beside(tree: PlanTree, revised: Mapping[str, Plan], target: Path) -> tuple[Rewritten, ...]:
    """Write the revised plan to ``target``, and each changed sub-plan beside it, named by its parent.

    ``revised`` holds plans by qualified id of their parent, the top plan under ``""``. Nothing is
    written or returned if nothing differs. An existing copy of the same plan is replaced and kept as a
    version; ``-``, devices and pipes receive the top plan. Raises :class:`planner.errors.PlannerError`.
    """
    plans = _changed(tree, revised)
    if not plans:
        return ()
    if is_stream(target):
        if any(plans):
            parents = ", ".join(sorted(filter(None, plans)))
            problem = f"the sub-plans of {parents} are revised, too, and cannot be written there"
            raise file_error(target, f"{problem}; name a file")
        text = rewrite(tree.loaded, plans[""], target=tree.loaded.path)
        write_file(target, text.text)
        return (replace(text, path=target),)
    texts = plans_beside(tree, plans, target)
    ids = {part.plan.todo_list_id for part in _parts(tree).values()}
    for each in texts:
        refuse_other_plan(each.path, ids)
    previous = PlanFolder(tree.loaded.root, tree.loaded.plan.todo_list_id).previous
    # Of each copy apart, so that the version before the last revision of the plan itself stays.
    name = f"previous-{_digest(os.fsencode(os.path.realpath(target)))[-12:]}.json"
    _write(tree, texts, target, previous.with_name(name))
    return texts


def write_in_place(tree: PlanTree, revised: Mapping[str, Plan]) -> tuple[Rewritten, ...]:
    """Replace each plan file by its revision, keeping the previous version.

    Nothing is written or returned if nothing differs. Raises :class:`planner.errors.PlannerError`.
    """
    plans = _changed(tree, revised)
    parts = _parts(tree)
    texts = tuple(
        rewrite(parts[within], plan, target=parts[within].path) for within, plan in sorted(plans.items())
    )
    previous = PlanFolder(tree.loaded.root, tree.loaded.plan.todo_list_id).previous
    _write(tree, texts, tree.loaded.path, previous)
    return texts


def plans_beside(tree: PlanTree, revised: Mapping[str, Plan], target: Path) -> tuple[Rewritten, ...]:
    """Return the files that :func:`write_beside` writes, top plan first; writes nothing.

    Raises :class:`planner.errors.PlannerError`, also if the target is a file of the tree.
    """
    plans = _changed(tree, revised)
    parts, trees = _parts(tree), {"": tree, **tree.sub_plans()}
    texts: list[Rewritten] = []
    # The deepest first: with its file a plan above is changed, too, as that has to name the new file.
    while deepest := max(plans, key=lambda within: (within.count("/"), within), default=""):
        plan, part = plans.pop(deepest), parts[deepest]
        path = target.with_name(f"{target.stem}.{deepest.replace('/', '.')}{part.path.suffix}")
        texts.append(rewrite(part, _with_paths(plan, trees[deepest], path), target=path))
        above, _, todo_id = deepest.rpartition("/")
        held = plans.get(above) or parts[above].plan
        plans[above] = _pointing(held, todo_id, path, parts[above].root)
    top = _with_paths(plans.get("", tree.loaded.plan), tree, target)
    texts.append(rewrite(tree.loaded, top, target=target))
    own = {os.path.realpath(part.path) for part in parts.values()}
    if taken := next((each.path for each in texts if os.path.realpath(each.path) in own), None):
        raise file_error(taken, "this file belongs to the plan; name another")
    return tuple(reversed(texts))


# -- texts ---------------------------------------------------------------------------------------------


def _parts(tree: PlanTree) -> dict[str, LoadedPlan]:
    """Return the loaded plan and sub-plans by qualified id of their parent."""
    return {"": tree.loaded, **{name: sub.loaded for name, sub in tree.sub_plans().items()}}


def _changed(tree: PlanTree, revised: Mapping[str, Plan]) -> dict[str, Plan]:
    """Return the plans that differ from those of the tree; raise ``PlannerError`` if one is not in it."""
    parts = _parts(tree)
    if unknown := next((within for within in revised if within not in parts), None):
        problem = f"the sub-plan of '{unknown}' cannot be loaded from the file that the plan names"
        raise file_error(tree.loaded.path, f"{problem}; write it there")
    return {name: plan for name, plan in revised.items() if plan != parts[name].plan}


def _with_paths(plan: Plan, tree: PlanTree, target: Path) -> Plan:
    """Return the plan with paths for the sub-plans that ids name, which are searched beside the file."""
    if os.path.realpath(target.parent) != os.path.realpath(tree.loaded.path.parent):
        for todo in plan.items:
            if todo.sub_plan is None and todo.sub_project_id is not None:
                with suppress(PlannerError):  # not written yet
                    plan = _pointing(plan, todo.id, tree.child_of(todo).loaded.path, tree.loaded.root)
    return plan


def _pointing(plan: Plan, todo_id: str, path: Path, root: Path) -> Plan:
    """Return the plan with a parent's sub-plan set to another file."""
    name = os.path.normpath(os.path.join(os.path.relpath(os.path.realpath(path.parent), root), path.name))
    if name.startswith(os.pardir):
        problem = f"the revised sub-plan of '{todo_id}' would be outside of {root}"
        raise file_error(path, f"{problem}; name an output file inside it")
    todo = plan.todo(todo_id)
    moved = todo.model_copy(update={"sub_plan": Path(name).as_posix()})
    items = tuple(moved if each is todo else each for each in plan.items)
    return plan.model_copy(update={"items": items})


def refuse_other_plan(path: Path, plan_ids: set[str]) -> None:
    """Raise :class:`planner.errors.PlannerError` if a file to be replaced contains none of these plans."""
    if not os.path.lexists(path) or is_stream(path):
        return
    if (path.is_file() and path.stat().st_size == 0) or plan_id_of(path) in plan_ids:
        return
    raise file_error(path, "the file is not this plan, and is not replaced; name a new file")


# -- versions ------------------------------------------------------------------------------------------


def undo_plan(path: Path, *, force: bool = False) -> list[Path]:
    """Restore the plan files from before the last revision, and return them.

    Raises :class:`planner.errors.PlannerError` if there is no previous version, and, unless forced, if a
    file was edited since.
    """
    real = Path(os.path.realpath(path))
    # A version is below the root of the top plan, unknown for a sub-plan, or if the plan is broken.
    roots: list[Path] = list(real.parents)
    with suppress(PlannerError):
        # With the root of the file system as boundary: the plan may have been revised from elsewhere.
        roots.insert(0, load_plan(real, boundary=real.parents[-1]).root)
    for root in dict.fromkeys(roots):
        # A sub-plan may have been revised with several plans. By lstat(), as code under test could have put
        # a link to nothing there.
        kept = sorted((root / PLANS).glob("*/previous*.json"), key=lambda each: -each.lstat().st_mtime)
        for version in kept:
            top, files = _read_version(version, root)
            if real not in (top, *files):
                continue
            held = {each: _bytes(each) for each in files}
            # If all are as before, its writing was interrupted, or they were restored by hand.
            if all(held[each] == before for each, (before, _) in files.items()):
                continue
            for each, (_, written) in files.items():
                # Code under test can forge a version, which must not replace a file that is no plan, nor
                # make one of another kind.
                is_gone = held[each] is None
                is_plan = each.suffix in PLAN_ENDINGS if is_gone else plan_id_of(each) is not None
                if each != real and not is_plan:
                    raise file_error(each, "is no plan, or no longer; undo its edits by hand, or name it")
                if (is_gone or _digest(held[each] or b"") != written) and not force:
                    problem = "was edited since it was revised"
                    remedy = "undo the edits by hand, or discard them with --force"
                    raise file_error(each, f"{problem}; {remedy}")
            _replace_all({each: before for each, (before, _) in files.items()})
            version.unlink(missing_ok=True)
            return list(files)
    remedy = "only planner next --in-place and --output keep one"
    raise file_error(path, f"there is no previous version; {remedy}")


def _write(tree: PlanTree, texts: Sequence[Rewritten], top: Path, previous: Path) -> None:
    """Write the plan ``top`` and its sub-plans, or none; what they replace is kept in ``previous``.

    Files that do not change are not written.
    """
    new = {Path(os.path.realpath(each.path)): each.text.encode() for each in texts}
    new = {path: text for path, text in new.items() if _bytes(path) != text}
    files = [
        {
            "path": os.path.relpath(path, tree.loaded.root),
            "before": before.decode("utf-8", "surrogateescape"),
            "written": _digest(text),
        }
        for path, text in new.items()
        if (before := _bytes(path))
    ]
    if files:
        # Stored before the files are written, so that an interruption cannot lose contents.
        try:
            make_home(tree.loaded.root)
            plan = os.path.relpath(os.path.realpath(top), tree.loaded.root)
            text = json.dumps({"version": 1, "plan": plan, "files": files}, indent=1)
            replace_file(previous, text + "\n", durable=True)
        except (OSError, PlannerError) as error:
            problem = f"the previous version cannot be kept: {error}; make the folder writable"
            raise file_error(previous, problem) from None
    _replace_all(new)


def _read_version(version: Path, root: Path) -> tuple[Path, dict[Path, tuple[bytes, str]]]:
    """Return the top plan, and replaced contents and digests of their replacements by path.

    There are no contents if the version is damaged.
    """
    try:
        held: Any = json.loads(read_regular(version))
        return Path(os.path.normpath(root / held["plan"])), {
            Path(os.path.normpath(root / each["path"])): (
                each["before"].encode("utf-8", "surrogateescape"),
                str(each["written"]),
            )
            for each in held["files"]
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return root, {}


def _replace_all(new: Mapping[Path, bytes]) -> None:
    """Write all files; if one fails, restore those written before."""
    done: list[tuple[Path, bytes | None]] = []
    try:
        for path, text in new.items():
            before = _bytes(path)
            # The plans are the user's files: a new one gets the permissions that the umask gives.
            write_file(path, text, mode=None, durable=True)
            done.append((path, before))
    except BaseException:
        for path, text in done:
            if text is None:
                path.unlink(missing_ok=True)
            else:
                write_file(path, text, mode=None)
        raise


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError as error:
        raise file_error(path, f"cannot be read: {error.strerror}") from None


def _digest(text: bytes) -> str:
    return f"sha256:{sha256(text).hexdigest()}"
