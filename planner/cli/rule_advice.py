"""What to do about a failure, by the rule that explained it, and where that rule is documented."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGE = "docs/reference/diagnosis-rules.md"
"""The page that tells of every rule, below the project's root."""

_FILE = Path(__file__).parent / "data" / "diagnosis_advice.toml"


def advice_for(rule: str) -> tuple[str, ...]:
    """The steps to take, the first one first; none for a rule that a plugin brought."""
    return tuple(_advice().get(rule, ()))


def page_of(rule: str) -> str | None:
    """Where the rule is documented: ``docs/reference/diagnosis-rules.md#disk-full``; a plugin's is not."""
    return f"{PAGE}#{rule}" if rule in _advice() else None


@cache
def _advice() -> Mapping[str, list[str]]:
    with _FILE.open("rb") as file:
        return tomllib.load(file)
