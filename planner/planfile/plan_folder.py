"""Folders of records: ``.planverify`` below a plan's root, with one folder per plan.

This module defines where records are and creates ``.planverify``; the records are written by others.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from planner.errors import FileWriteError
from planner.planfile.file_writer import create_file

if TYPE_CHECKING:
    from pathlib import Path

HOME = ".planverify"
PLANS = f"{HOME}/plans"
LATEST = f"{HOME}/outcomes.json"
"""Outcomes of the latest run, for all its plans with this root."""

IGNORED = """\
# Written by pytest-planverify, which can recreate everything except the baseline (plans/*/baseline.json)
# and people's corrections (corrections.jsonl). Their answers are kept under version control:
*
!/answers.json
"""

# Also a leading dot or dash, and what git forbids in the name of a ref ("..", ".lock", a final dot).
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]|^[.-]|\.(?=\.|lock$|$)")
_LONGEST_NAME = 80
_DIGITS = 16


class PlanFolder:
    """The folder of one plan; its files state the plan that they belong to."""

    def __init__(self, root: Path, todo_list_id: str) -> None:
        self.path = root / PLANS / file_name(todo_list_id)
        self.outcomes = self.path / "outcomes.json"
        """Outcomes of its latest run, without other plans."""
        self.baseline = self.path / "baseline.json"
        self.green = self.path / "green.json"
        """Commit at which each todo last passed."""
        self.qualification = self.path / "qualification.json"
        self.previous = self.path / "previous.json"
        """The version before the last revision of the plan."""


def make_home(root: Path) -> Path:
    """Create ``.planverify``, private to its owner and ignored by git. Raises ``OSError``."""
    home = root / HOME
    home.mkdir(parents=True, mode=0o700, exist_ok=True)
    ignore = home / ".gitignore"
    if not ignore.exists():
        with suppress(FileWriteError):  # another process has made it meanwhile
            create_file(ignore, IGNORED, mode=0o600)
    return home


def file_name(name: str) -> str:
    """Return an unambiguous name for files, folders and git refs, for any text.

    Safe characters stay (``shop-2.x``), others become ``%2F``. Truncated names, and those with capital
    letters (which some file systems do not distinguish), end in ``+`` and a digest.
    """
    quoted = _UNSAFE.sub(
        lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass")), name
    )
    if name and len(quoted) <= _LONGEST_NAME and name == name.lower():
        return quoted
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{quoted[:_LONGEST_NAME]}+{digest}"
