"""The corrections of a project's store, read when the first unsure diagnosis asks for them."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from planner.model.past import Correction

MOST = 500
"""So many corrections are read, the newest."""

FILE = "planverify.db"
"""The planner's store, in the folder ``.planverify``."""


class Corrections:
    """What people corrected in the project whose ``.planverify`` folder it is.

    A store that cannot be read says nothing, and why is a note: no run fails for it.
    """

    def __init__(self, home: Path) -> None:
        self.notes: list[str] = []
        self.now = datetime.now(UTC)
        self._file = home / FILE
        self._read: tuple[Correction, ...] | None = None

    def all(self) -> tuple[Correction, ...]:
        """The newest first. Read once a run; where there is no store nothing is imported for it."""
        if self._read is None:
            self._read = self._found() if os.path.lexists(self._file) else ()
        return self._read

    def _found(self) -> tuple[Correction, ...]:
        from planner.edges.correction_reader import read_corrections
        from planner.errors import StoreError

        try:
            return read_corrections(self._file, self.now, MOST)
        except StoreError as error:
            self.notes.append(f"nothing was learned from corrections: {error}")
            return ()
