"""Messages of CPython, and diff lines that define a name."""

from __future__ import annotations

import pytest

from planner.text.python_text import removed_definition


@pytest.mark.parametrize(
    ("name", "diff", "line"),
    [
        ("io", "-import io\n import json", "import io"),
        ("Path", "-from pathlib import PurePath, Path", "from pathlib import PurePath, Path"),
        ("np", "-import numpy as np", "import numpy as np"),
        ("total", "-    async def total(self):\n-        pass", "async def total(self):"),
        ("LIMIT", " x\n-LIMIT: int = 3", "LIMIT: int = 3"),
        ("LIMIT", "-if LIMIT == 3:", None),
        ("io", "-import ios", None),
        ("io", "-import io\n+import io, json", None),
        ("io", "+import io", None),
    ],
)
def test_a_removed_definition_is_recognised_by_the_removed_line_that_binds_it(
    name: str, diff: str, line: str | None
) -> None:
    assert removed_definition(name, diff) == line
