"""Inventory of everything that could influence verdicts: plugins, hooks, entry points, start-up files."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import site
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from planner.model.baseline import Agreement, HookUse, JudgePatch, SessionInventory
from pytest_planverify.baseline.work_tree import START_UP

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_planverify.journal import Record


def inventory_of(records: Iterable[Record], root: Path) -> SessionInventory:
    """Return the inventory of a run's sessions and environment; files below the root are relative."""
    plugins: set[str] = set()
    hooks: set[tuple[str, str]] = set()
    patched: set[tuple[str, str]] = set()
    agreeing: set[tuple[str, str]] = set()
    artifacts: dict[str, Any] = {}
    elsewhere = False
    every = list(records)
    for record in every:
        if record.get("record") == "artifacts_written":
            artifacts |= _writings(record.get("artifacts"))
        if record.get("record") == "session_inventory":
            plugins |= {name for name in _list(record.get("plugins")) if isinstance(name, str)}
            hooks |= {(hook, _below(file, root)) for hook, file in _rows(record.get("hooks"), 2)}
            patched |= {(name, _below(file, root)) for name, file in _rows(record.get("patched"), 2)}
            agreeing |= {
                (_below(file, root), f"{kind}.{method}")
                for file, kind, method in _rows(record.get("agreeing"), 3)
            }
            elsewhere |= bool(record.get("without_body"))
    return SessionInventory(
        plugins=tuple(sorted(plugins)),
        hooks=tuple(HookUse(hook=hook, file=file) for hook, file in sorted(hooks)),
        entry_points=tuple(sorted(_entry_points())),
        start_up=dict(sorted(_start_up())),
        patched=tuple(JudgePatch(name=name, file=file) for name, file in sorted(patched)),
        agreeing=tuple(Agreement(file=file, name=name) for file, name in sorted(agreeing)),
        bodies_elsewhere=elsewhere,
        status_overturned=_is_overturned(every),
        records_lost=_are_lost(every),
        artifacts=artifacts,
    )


def _is_overturned(records: Iterable[Record]) -> bool:
    """Return whether a session returned 0 in which tests had failed."""
    red: set[object] = set()
    green: set[object] = set()
    for record in records:
        if record.get("record") == "test_finished" and record.get("outcome") in ("failed", "error"):
            red.add(record.get("session"))
        elif record.get("record") == "session_ended" and record.get("exit_status") == 0:
            green.add(record.get("session"))
    return not red.isdisjoint(green)


def _are_lost(records: Iterable[Record]) -> bool:
    """Return whether records that were numbered are missing."""
    last: dict[object, int] = {}
    for record in records:
        pen, number = record.get("pen"), record.get("number")
        if isinstance(number, int):
            if number > last.get(pen, 0) + 1:
                return True
            last[pen] = number
    return False


def _entry_points() -> Iterator[str]:
    for each in importlib.metadata.entry_points(group="pytest11"):
        yield f"{each.name} = {each.value}"


def _start_up() -> Iterator[tuple[str, str]]:
    """Yield what the environment's interpreter runs before anything else, with its sha256."""
    folders = dict.fromkeys([*site.getsitepackages(), site.getusersitepackages(), *sys.path])
    for folder in folders:
        installed = folder.endswith(("site-packages", "dist-packages"))
        with suppress(OSError):
            for name in sorted(os.listdir(folder)) if folder else ():
                if name in START_UP or (installed and name.endswith(".pth")):
                    place = Path(folder, name)
                    yield str(place), hashlib.sha256(place.read_bytes()).hexdigest()


def _below(file: str, root: Path) -> str:
    """Relative to the root where it is below it, by whatever way, or in a folder above it."""
    for path, folder in ((Path(file), root), (Path(os.path.realpath(file)), Path(os.path.realpath(root)))):
        if file and path.is_relative_to(folder):
            return path.relative_to(folder).as_posix()
        if path.is_absolute() and folder.is_relative_to(path.parent):
            return Path(os.path.relpath(path, folder)).as_posix()
    return file


def _writings(value: object) -> dict[str, Any]:
    held = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return {path: how for path, how in held.items() if how in ("made", "rewritten")}


def _rows(value: object, length: int) -> Iterator[list[str]]:
    """Lists of so many words; what is none is passed over."""
    for entry in map(_list, _list(value)):
        if len(entry) == length and all(isinstance(word, str) for word in entry):
            yield entry


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
