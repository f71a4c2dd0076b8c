"""Freshness of artifacts: made by the run's commands, or only found there."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from planner.model.evidence import HygieneSignal
from planner.model.verdicts import CheckKind, Hardness, Verdict
from planner.text.glob_patterns import is_glob

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from planner.model.baseline import SessionInventory
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.checks.result import CheckRun

_RAN = (Verdict.PASSED, Verdict.FAILED, Verdict.FLAKY)


class Artifacts:
    """The expected artifacts of a plan, and when they were written before the run began."""

    def __init__(self, flat: FlatPlan) -> None:
        self._root = flat.loaded.root
        self._todos: dict[str, list[str]] = {}
        """By path below the top root, the todos that expect it."""
        for todo in flat.loaded.plan.items:
            above = os.path.relpath(flat.owner(todo.id).root, self._root)
            for each in todo.acceptance_criteria.expected_artifacts:
                if not is_glob(each.path):
                    path = os.path.normpath(os.path.join(above, each.path)).replace(os.sep, "/")
                    self._todos.setdefault(path, []).append(todo.id)
        self._before = self._stamps()

    def written(self) -> dict[str, str]:
        """Return what has been ``made`` or ``rewritten`` since, by path."""
        return {
            path: "rewritten" if path in self._before else "made"
            for path, stamp in self._stamps().items()
            if stamp != self._before.get(path)
        }

    def signals(
        self, before: SessionInventory, checks: Mapping[str, Mapping[str, CheckRun]]
    ) -> Iterator[HygieneSignal]:
        """Yield artifacts that commands wrote over at the baseline, and that they find there by now.

        One that was not there at the baseline may be up to date.
        """
        written = self.written()
        for path, todo_ids in self._todos.items():
            runs = [run.check for todo_id in todo_ids for run in checks.get(todo_id, {}).values()]
            commands = [check for check in runs if check.kind in (CheckKind.COMMAND, CheckKind.TEST)]
            ran = commands and all(check.verdict in _RAN and not check.taken_from for check in commands)
            is_kept = path in self._before and path not in written
            if ran and is_kept and before.artifacts.get(path) == "rewritten":
                said = f"{path} lay there and was not written by the run, which wrote it at the baseline"
                yield HygieneSignal(
                    sign="artifact-not-made", hardness=Hardness.HARD, message=said, path=path
                )

    def _stamps(self) -> dict[str, tuple[int, int, int]]:
        found: dict[str, tuple[int, int, int]] = {}
        for path in self._todos:
            with suppress(OSError):
                facts = os.stat(self._root / path)
                found[path] = (facts.st_mtime_ns, facts.st_ino, facts.st_size)
        return found
