"""The projects that scenes are laid into, with their names, sizes and styles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml


class Style(StrEnum):
    """How the tests of a project are written."""

    FUNCTIONS = "functions"
    CLASSES = "classes"
    UNITTEST = "unittest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project as it is before anything is added to it."""

    name: str
    """Also the name of its package."""
    source: str
    """The folder of the package."""
    tests: str
    """The folder of the tests."""
    style: Style
    noun: str
    """What it is about, in the singular."""
    settings: Mapping[str, str]
    """Configuration files by path."""
    files: Mapping[str, str]
    """The others, with ``SRC`` and ``TESTS`` for the two folders."""

    def named(self, text: str) -> str:
        """The text with this project's names for ``PKG``, ``ENVNAME``, ``SRC``, ``TESTS`` and ``NOUN``."""
        words = {
            "ENVNAME": self.name.upper(),
            "PKG": self.name,
            "SRC": self.source,
            "TESTS": self.tests,
            "NOUNS": f"{self.noun}s",
            "Noun": self.noun.capitalize(),
            "NOUN": self.noun,
        }
        for word, name in words.items():
            text = text.replace(word, name)
        return text

    def tree(self) -> dict[str, str]:
        """Every file by its path."""
        return {**{self.named(path): text for path, text in self.files.items()}, **self.settings}

    @property
    def base_module(self) -> str:
        """A module that no fault concerns."""
        return self.named(next(path for path in self.files if path.startswith("SRC/") and self.files[path]))

    @property
    def base_test(self) -> str:
        """A test file that no fault concerns."""
        return self.named(next(path for path in self.files if path.startswith("TESTS/test_")))


def _read(file: str) -> Any:
    return yaml.safe_load(Path(__file__).with_name(file).read_text(encoding="utf-8"))


PROJECTS = {
    name: Project(name=name, **{**said, "style": Style(said["style"])})
    for name, said in _read("projects.yaml").items()
}
"""Every small project by its name."""

STAND_INS: dict[str, dict[str, str]] = _read("stand_ins.yaml")
"""Stand-ins for third-party packages: the files of each below the folder of installed packages."""
