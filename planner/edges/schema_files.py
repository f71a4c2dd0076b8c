"""The shipped JSON Schemas as text; reading one needs no model."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "schemas"
"""Where the generated files are, in the package."""


def path_of(name: str) -> Path:
    """The file of a schema."""
    return FOLDER / f"{name}.schema.json"


def schema_text(name: str) -> str:
    """The text of the schema of that name. Raises ``OSError`` where there is none."""
    return path_of(name).read_text(encoding="utf-8")
