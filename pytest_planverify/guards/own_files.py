"""Our own files before the first session and after the last: what is verified must not write them."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from planner.model.evidence import HygieneSignal
from planner.model.verdicts import Hardness

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

SIGN = "records-touched"

_FILES = ("answers.json", "outcomes.json")
_OF_PLANS = ("plans/*/*", "plans/*/baselines/*")
_CONTENTS = "baseline/objects"
"""Their names are their digests, which are checked when they are read."""
_OUTCOMES = "outcomes.json"
_KNOWN = frozenset(
    {
        *_FILES, "plans", "baseline", "runs", "briefs", "reports", ".gitignore",
        "left_by_runs.json", "planverify.db", "corrections.jsonl", "logs", "decision.json",
    }
)  # fmt: skip
_LIKE_RECORDS = ("journal", "outcome", "baseline", "qualification", "answers")
_LARGEST = 64 << 20
_GONE = ""


class OwnFiles:
    """The plans and the files of ``.planverify`` as they were when the run began."""

    def __init__(self, root: Path, plans: Iterable[Path]) -> None:
        self._root = root
        self._home = root / ".planverify"
        self._plans = tuple(plans)
        self._before = self._digests()
        self._strangers = tuple(self._unknown())

    def signals(self) -> Iterator[HygieneSignal]:
        """What has changed since, and what never was ours."""
        after = self._digests()
        for path in sorted({*self._before, *after}):
            before, now = self._before.get(path, _GONE), after.get(path, _GONE)
            if before == now or (path.endswith(f"/{_OUTCOMES}") and self._is_of_another_run(path)):
                continue
            how = "was removed" if now == _GONE else "was made" if before == _GONE else "was changed"
            yield _signal(f"{path} {how} while the run was on", path)
        for path in self._strangers:
            yield _signal(f"{path} looks like a record of ours, and none of ours has that name", path)

    def _digests(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for path in self._all():
            name = os.path.relpath(path, self._root).replace(os.sep, "/")
            found[name] = _digest(path)
        found |= dict(self._contents())
        return {name: digest for name, digest in found.items() if digest != _GONE}

    def _all(self) -> Iterator[Path]:
        yield from self._plans
        yield from (self._home / name for name in _FILES)
        for names in _OF_PLANS:
            # Another run of another plan may be writing at this moment.
            yield from (path for path in self._home.glob(names) if path.suffix != ".tmp")

    def _contents(self) -> Iterator[tuple[str, str]]:
        with suppress(OSError), os.scandir(self._home / _CONTENTS) as entries:
            for entry in entries:
                facts = entry.stat(follow_symlinks=False)
                yield f".planverify/{_CONTENTS}/{entry.name}", f"{facts.st_size} {facts.st_mtime_ns}"

    def _unknown(self) -> Iterator[str]:
        try:
            names = sorted(os.listdir(self._home))
        except OSError:
            return
        for name in names:
            if name not in _KNOWN and name.lower().startswith(_LIKE_RECORDS):
                yield f".planverify/{name}"

    def _is_of_another_run(self, path: str) -> bool:
        """Two runs may be on at once; each has a folder of its own and writes the outcomes at its end."""
        try:
            data: Any = json.loads((self._root / path).read_bytes())
            run = str(data["run"]["run_id"])
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return "/" not in run and (self._home / "runs" / run / "journal.jsonl").is_file()


def _signal(message: str, path: str) -> HygieneSignal:
    return HygieneSignal(sign=SIGN, hardness=Hardness.HARD, message=message, path=path)


def _digest(path: Path) -> str:
    try:
        if path.is_symlink():
            return f"-> {os.readlink(path)}"
        if not path.is_file():
            return _GONE
        if path.stat().st_size > _LARGEST:
            return f"{path.stat().st_size} {path.stat().st_mtime_ns}"
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return _GONE
