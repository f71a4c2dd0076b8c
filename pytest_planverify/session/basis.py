"""The basis of a verdict: the files that it rests on, and whether they are still what they were.

A worker tells which files it read. Of a verdict without a basis nobody knows that: it rests on all files.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pytest_planverify.observe.audit import MOST_EVENTS
from pytest_planverify.session.tree_state import digest_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from planner.model.journal import RestsOn
    from pytest_planverify.session.records import WorkerRecord
    from pytest_planverify.session.tree_state import Difference

_OF_EVERYBODY = frozenset({"pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg", ".env"})
"""Files that say how pytest and its plugins start; which of them it is depends on what is in the others."""

_LIBRARIES = (".so", ".dylib", ".dll", ".pyd")
_PYTHON = (".py", ".pyi")
_CLOCK_TICK = 0.01
"""Seconds by which the time of a file's change may lie before the moment at which it was changed."""


class FileDigests:
    """Digests of files, each computed once as long as nobody has written the file."""

    def __init__(self, root: Path) -> None:
        """Paths are relative to the ``root`` of the plan."""
        self._root = root
        self._known: dict[str, tuple[tuple[int, ...], str]] = {}
        self._names: dict[str, str] = {}

    def of(self, name: str) -> str:
        """Return the digest of a file."""
        return self._look_at(name)[0]

    def _look_at(self, name: str) -> tuple[str, float]:
        """Return the digest of a file, and when it was last written, moved or made."""
        path = f"{self._root}/{name}"
        try:
            facts = os.stat(path)
        except OSError:
            return digest_of(self._root / name, follow=True), 0
        stamp = (facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
        known = self._known.get(name)
        if known is None or known[0] != stamp:
            known = self._known[name] = stamp, digest_of(self._root / name, follow=True)
        return known[1], facts.st_ctime

    def _name_of(self, path: str) -> str:
        name = self._names.get(path)
        if name is None:
            name = self._names[path] = os.path.relpath(path, self._root)
        return name

    def basis(self, record: WorkerRecord, more: Iterable[str | None]) -> tuple[RestsOn | None, bool]:
        """Return what the verdict on a worker rests on, and whether that stayed the same while it ran.

        ``more`` are files that it depends on and did not read itself.
        """
        from planner.model.journal import RestsOn

        facts = record.files_read
        if facts is None or facts.get("unknown") or not _is_whole(record):
            return None, True
        read = (*map(str, facts.get("files", ())), *(path for path in more if path is not None))
        seen = {name: self._look_at(name) for name in sorted(map(self._name_of, read))}
        rests_on = RestsOn(
            files={name: digest for name, (digest, _) in seen.items()}, native=bool(facts.get("native"))
        )
        began = record.launched_at - _CLOCK_TICK
        return rests_on, all(changed <= began for _, changed in seen.values())

    def why_stale(self, basis: RestsOn | None, difference: Difference) -> str | None:
        """Return what has changed of that which a verdict rests on; ``None`` where the verdict holds."""
        if difference.unknown is not None:
            return f"nobody knows which files have changed: {difference.unknown}"
        # No event tells of a test that only asks whether a file is there; a new one may also be collected,
        # or take the place of another.
        for name in difference.gone:
            return f"{name} is gone"
        for name in difference.added:
            return f"{name} is new"
        if basis is None:
            return next((f"{name} has changed" for name in difference.changed), None)
        return next(self._stale(basis, difference), None)

    def _stale(self, basis: RestsOn, difference: Difference) -> Iterator[str]:
        for name in difference.changed:
            if name.rpartition("/")[2] in _OF_EVERYBODY or name.endswith(_LIBRARIES):
                yield f"{name} has changed"
        for name, digest in basis.files.items():
            if self.of(name) != digest:
                yield f"{name} has changed"
        if basis.native:
            for name in difference.changed:
                if not name.endswith(_PYTHON):
                    yield f"{name} has changed"


def _is_whole(record: WorkerRecord) -> bool:
    """Return whether the worker came to its end, and nothing took part that cannot tell what it read."""
    reached = {each["event"] for each in record.audit.values()}
    return not (
        record.death is not None
        or record.cut_short
        or record.journal_lost
        or record.xdist_workers
        or reached & {"process", "connect"}
        or len(record.audit) >= MOST_EVENTS
    )
