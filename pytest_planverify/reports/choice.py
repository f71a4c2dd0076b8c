"""The available report formats, and parsing of the requested reports.

Imported while options are parsed, in the process that runs the tests. It therefore imports no module whose
name the project under test could shadow.
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
"""Default file name by format. Each format is a module of this package with a function ``render``."""


class Report(NamedTuple):
    """A report that the user requested."""

    format: str
    path: Path | None
    """Output file; ``None`` for the default place, ``-`` for standard output."""


def parse_report(text: str, folder: Path) -> Report:
    """Parse ``FORMAT[=PATH]``, the path relative to ``folder``. Raises ``ValueError`` with one line."""
    name, equals, path = text.partition("=")
    if name not in FORMATS:
        raise ValueError(
            f"'{one_line(name, limit=60)}' is not a report format; the formats are {', '.join(FORMATS)}"
        )
    if equals and not path:
        raise ValueError(f"{text} names no file; remove the = for the default file")
    if not equals:
        return Report(name, None)
    return Report(name, STANDARD_OUTPUT if path == str(STANDARD_OUTPUT) else folder / path)
