"""Commands whose success proves nothing, recognized by the files that they were given.

Many tools succeed without a word if there is nothing for them to check. Others say so in their output,
which :mod:`planner.catalog.output` reads.
"""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING

from planner.planfile.project_files import RootedFiles
from planner.text.python_text import uncalled_tests

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from planner.catalog import Command

MAX_NAMES = 20_000
"""Limit of names that are searched below the given folders; with more, one of them is taken to fit."""


def judges_no_file(command: Command, root: Path) -> str | None:
    """Return in a few words why the success of a command in the root proves nothing; ``None`` in doubt.

    So for a script that only defines tests, for a folder without a file of the tool's kind, and for files
    without a text that the tool looks for, such as examples in docstrings.
    """
    if command.script is not None:
        return _runs_no_test(command.script, root)
    tool, words = command.tool, command.arguments
    paths = [word for word in words if not word.startswith("-")]
    present = [path for path in paths if os.path.exists(root / path)]
    if not present:
        # Only the first word is certainly a path: one behind an option may be the value of that.
        is_missing = tool.lenient and bool(paths) and words[0] == paths[0]
        return f"{paths[0]} does not exist" if is_missing else None
    if tool.holds:
        files = RootedFiles(root)
        read = [file for path in present if (file := files.read(path)) is not None]
        holds = any(tool.holds.encode() in file.data for file in read)
        return None if holds or not read else f"{present[0]} contains no {tool.holds}"
    if not tool.files or any(os.path.isfile(root / path) for path in present):
        return None
    names = [name for path in present for name in islice(_names_below(root / path), MAX_NAMES)]
    if len(names) >= MAX_NAMES or any(name.endswith(tool.files) for name in names):
        return None
    return f"{present[0]} contains no file that {tool.name} reads"


def _runs_no_test(script: str, root: Path) -> str | None:
    """Return that a script only defines tests, which Python does not call; ``None`` if it may do more."""
    file = RootedFiles(root).read(script)
    tests = uncalled_tests(file.data.decode("utf-8-sig", "replace")) if file is not None else ()
    if not tests:
        return None
    shown = tests[0] if len(tests) == 1 else f"{tests[0]} and {len(tests) - 1} more"
    return f"python runs no test of {script}, which defines {shown}; write pytest {script}"


def _names_below(folder: Path) -> Iterator[str]:
    """Yield the names of the files below a folder; hidden folders are left out, as the tools do."""
    for _, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from names
