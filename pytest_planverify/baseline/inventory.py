"""Inventory of what could influence verdicts: hooks, and what stands in for a judge."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from planner.model.baseline import HookUse, JudgePatch, SessionInventory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_planverify.journal import Record


def inventory_of(records: Iterable[Record], root: Path) -> SessionInventory:
    """Return the inventory of a run's sessions; files below the root are relative."""
    hooks: set[tuple[str, str]] = set()
    patched: set[tuple[str, str]] = set()
    elsewhere = False
    every = list(records)
    for record in every:
        if record.get("record") == "session_inventory":
            hooks |= {(hook, _below(file, root)) for hook, file in _rows(record.get("hooks"))}
            patched |= {(name, _below(file, root)) for name, file in _rows(record.get("patched"))}
            elsewhere |= bool(record.get("without_body"))
    return SessionInventory(
        hooks=tuple(HookUse(hook=hook, file=file) for hook, file in sorted(hooks)),
        patched=tuple(JudgePatch(name=name, file=file) for name, file in sorted(patched)),
        bodies_elsewhere=elsewhere,
        status_overturned=_is_overturned(every),
        records_lost=_are_lost(every),
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


def _below(file: str, root: Path) -> str:
    """Relative to the root where it is below it, by whatever way, or in a folder above it."""
    for path, folder in ((Path(file), root), (Path(os.path.realpath(file)), Path(os.path.realpath(root)))):
        if file and path.is_relative_to(folder):
            return path.relative_to(folder).as_posix()
        if path.is_absolute() and folder.is_relative_to(path.parent):
            return Path(os.path.relpath(path, folder)).as_posix()
    return file


def _rows(value: object) -> Iterator[list[str]]:
    """Pairs of words; what is none is passed over."""
    for entry in map(_list, _list(value)):
        if len(entry) == 2 and all(isinstance(word, str) for word in entry):
            yield entry


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
