"""The reports that are asked for.

It is read before any test is, in the process of the tests, and imports nothing that a project may shadow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from planner.planfile.file_writer import STANDARD_OUTPUT
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FORMATS: Mapping[str, str] = {
    "junit": "junit.xml",
    "ctrf": "ctrf.json",
    "sarif": "planverify.sarif",
    "gitlab": "gl-code-quality-report.json",
    "markdown": "report.md",
    "html": "report.html",
    "prometheus": "planverify.prom",
}
"""Each format, which is a module with ``render``, and the usual name of its file."""


class Report(NamedTuple):
    """A report that somebody asked for."""

    format: str
    path: Path | None
    """``None`` is the usual place."""


def parse_report(text: str, folder: Path) -> Report:
    """Read ``FORMAT[=PATH]``. Raises ``ValueError`` with one line."""
    name, equals, path = text.partition("=")
    if name not in FORMATS:
        raise ValueError(
            f"'{one_line(name, limit=60)}' is no format of reports; they are {', '.join(FORMATS)}"
        )
    if equals and not path:
        raise ValueError(f"{text} names no file; leave out the = for the usual place")
    if not equals:
        return Report(name, None)
    return Report(name, STANDARD_OUTPUT if path == str(STANDARD_OUTPUT) else folder / path)
