"""Keeps, for all sessions of a run, what the metadata of the installed distributions says.

pytest and its plugins read it anew at the start of every session, which is a good part of what starting
takes. A file that is another one by now is read again.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

_known: dict[str, importlib.metadata.Distribution] = {}


def remember() -> None:
    """Read what sessions will ask for; to be called in the process that they are forked from."""
    for found in importlib.metadata.distributions():
        place = _place_of(found)
        # Those of a source tree are made of other files, which may change under the project's hands.
        if type(found) is importlib.metadata.PathDistribution and place.endswith(".dist-info"):
            known = _Remembered.of(found._path)
            if any(each.group == "pytest11" for each in known.entry_points):
                _ = known.files, known.metadata
            _known[place] = known


@contextlib.contextmanager
def remembered_distributions() -> Generator[None]:
    """While pytest looks for its plugins, give it distributions that know what their metadata says."""
    find = importlib.metadata.distributions
    if not _known:
        yield
        return

    def distributions(**wanted: Any) -> Iterator[importlib.metadata.Distribution]:
        return (_known.get(_place_of(found), found) for found in find(**wanted))

    importlib.metadata.distributions = distributions  # type: ignore[assignment]
    try:
        yield
    finally:
        if importlib.metadata.distributions is distributions:
            importlib.metadata.distributions = find


class _Remembered(importlib.metadata.PathDistribution):
    """Reads a file of its metadata again only when it is another one by now."""

    _read: dict[str, tuple[tuple[int, ...], Any]]

    @classmethod
    def of(cls, path: Any) -> _Remembered:
        """The distribution whose metadata lies in that folder."""
        made = cls(path)
        made._read = {}
        return made

    @property
    def metadata(self) -> Any:
        return self._once("METADATA", lambda: super(_Remembered, self).metadata)

    @property
    def entry_points(self) -> Any:
        return self._once("entry_points.txt", lambda: super(_Remembered, self).entry_points)

    @property
    def files(self) -> Any:
        found = self._once("RECORD", lambda: super(_Remembered, self).files)
        return None if found is None else list(found)

    def _once(self, name: str, read: Callable[[], Any]) -> Any:
        try:
            now = os.stat(f"{self._path}/{name}")
            state = (now.st_mtime_ns, now.st_size, now.st_ino)
        except OSError:
            state = ()
        known = self._read.get(name)
        if known is None or known[0] != state:
            known = self._read[name] = (state, read())
        return known[1]


def _place_of(distribution: importlib.metadata.Distribution) -> str:
    return str(getattr(distribution, "_path", ""))
