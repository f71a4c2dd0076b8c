"""Folders of records: ``.planverify`` below a plan's root, and in it one for each plan."""

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
"""The outcomes of the latest run, of all its plans that have this root."""

IGNORED = """\
# Written by pytest-planverify, which makes all of this again, but not what held before the work began
# (plans/*/baseline.json) and what people said (corrections.jsonl). What they answered is left to git:
*
!/answers.json
"""

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]|^[.-]|\.(?=\.|lock$|$)")
_LONGEST_NAME = 80
_DIGITS = 16


class PlanFolder:
    """The folder of one plan. Its files say which plan they are of."""

    def __init__(self, root: Path, todo_list_id: str) -> None:
        self.path = root / PLANS / file_name(todo_list_id)
        self.outcomes = self.path / "outcomes.json"
        """Of its latest run, without those of other plans."""
        self.baseline = self.path / "baseline.json"
        self.baselines = self.path / "baselines"
        """Those of revisions."""
        self.green = self.path / "green.json"
        """At which commit each todo was green last."""
        self.qualification = self.path / "qualification.json"
        self.versions = self.path / "versions"
        """What stood in the place of revised plans."""


def make_home(root: Path) -> Path:
    """Make ``.planverify``, which only its owner reads and git ignores. Raises ``OSError``."""
    home = root / HOME
    home.mkdir(parents=True, mode=0o700, exist_ok=True)
    ignore = home / ".gitignore"
    if not ignore.exists():
        with suppress(FileWriteError):  # another process has made it meanwhile
            create_file(ignore, IGNORED, mode=0o600)
    return home


def file_name(name: str) -> str:
    """Return a name of files, folders and git references for any text; two texts never share one.

    What stands for itself stays: ``shop-2.x``. Other bytes are written as ``%2F``. What is too long is cut;
    it and what has capital letters, which some file systems do not tell from small ones, end with ``+`` and
    a digest.
    """
    quoted = _UNSAFE.sub(_quoted, name)
    if name and len(quoted) <= _LONGEST_NAME and name == name.lower():
        return quoted
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{quoted[:_LONGEST_NAME]}+{digest}"


def _quoted(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass"))
