"""Our own files before the first session and after the last: what is verified must not write them."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from planner.model.evidence import HygieneSignal
from planner.model.verdicts import Hardness

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_FILES = ("answers.json", "outcomes.json")
_OF_PLANS = ("plans/*/*", "plans/*/baselines/*")
_LIKE_RECORDS = ("journal", "outcome", "baseline", "qualification", "answers")
_LARGEST = 64 << 20


class OwnFiles:
    """The plans and the files of ``.planverify`` as they were when the run began."""

    def __init__(self, root: Path, plans: Iterable[Path]) -> None:
        self._root = root
        self._home = root / ".planverify"
        self._plans = tuple(plans)
        self._before = self._stamps()
        names = sorted(os.listdir(self._home)) if self._home.is_dir() else []
        self._strangers = [
            f".planverify/{name}"
            for name in names
            if name not in (*_FILES, "baseline") and name.lower().startswith(_LIKE_RECORDS)
        ]

    def signals(self) -> Iterator[HygieneSignal]:
        """Yield what has changed since, and what never was ours."""
        after = self._stamps()
        for path in sorted({*self._before, *after}):
            before, now = self._before.get(path), after.get(path)
            if before != now and not (path.endswith("/outcomes.json") and self._is_of_another_run(path)):
                how = "was removed" if now is None else "was made" if before is None else "was changed"
                yield _signal(f"{path} {how} while the run was on", path)
        for path in self._strangers:
            yield _signal(f"{path} looks like a record of ours, and none of ours has that name", path)

    def _stamps(self) -> dict[str, str]:
        files = [*self._plans, *(self._home / name for name in _FILES)]
        # Another run of another plan may be writing at this moment.
        files += [path for names in _OF_PLANS for path in self._home.glob(names) if path.suffix != ".tmp"]
        found = {path: _digest(path) for path in files}
        # The names of contents are their digests, which are checked when they are read.
        found |= {path: _facts(path) for path in self._home.glob("baseline/objects/*")}
        return {
            os.path.relpath(path, self._root).replace(os.sep, "/"): each
            for path, each in found.items()
            if each
        }

    def _is_of_another_run(self, path: str) -> bool:
        """Two runs may be on at once; each has a folder of its own and writes the outcomes at its end."""
        try:
            run = str(json.loads((self._root / path).read_bytes())["run"]["run_id"])
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return "/" not in run and (self._home / "runs" / run / "journal.jsonl").is_file()


def _signal(message: str, path: str) -> HygieneSignal:
    return HygieneSignal(sign="records-touched", hardness=Hardness.HARD, message=message, path=path)


def _digest(path: Path) -> str | None:
    with suppress(OSError):
        if path.is_symlink():
            return f"-> {os.readlink(path)}"
        if path.is_file():
            return _facts(path) if path.stat().st_size > _LARGEST else sha256(path.read_bytes()).hexdigest()
    return None


def _facts(path: Path) -> str | None:
    with suppress(OSError):
        return f"{path.lstat().st_size} {path.lstat().st_mtime_ns}"
    return None
