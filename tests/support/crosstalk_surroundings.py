"""Parts of projects that shape a session, and where in a test file something may happen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

FOLDER = Path(__file__).parents[2] / "fixtures/crosstalk"


@dataclass(frozen=True, slots=True)
class Surrounding:
    """Files and the commands that use them."""

    name: str
    files: dict[str, str]
    commands: tuple[str, ...]

    def add(self, files: dict[str, str], commands: list[str]) -> None:
        """Put it into a project; what is there already stays, unless it is empty."""
        for path, text in self.files.items():
            files[path] = files.get(path) or text
        commands += self.commands


def _read() -> tuple[Surrounding, ...]:
    entries = yaml.safe_load((FOLDER / "surroundings.yaml").read_text(encoding="utf-8"))
    return tuple(
        Surrounding(name, each["files"], tuple(each["commands"])) for name, each in entries.items()
    )


SURROUNDINGS = _read()
PLACEMENTS: dict[str, str] = yaml.safe_load((FOLDER / "placements.yaml").read_text(encoding="utf-8"))
"""By name, a test file in which ``DISTURB`` stands where the statements go."""
