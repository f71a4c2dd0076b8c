"""The projects of the scenes, with their names, sizes and styles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml


class Style(StrEnum):
    """Style in which the tests of a project are written."""

    FUNCTIONS = "functions"
    CLASSES = "classes"
    UNITTEST = "unittest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project without the files of a scene."""

    name: str
    """Name of the project, and of its package."""
    source: str
    """Folder of the package."""
    tests: str
    """Folder of the tests."""
    style: Style
    noun: str
    """Subject of the project, in the singular."""
    settings: Mapping[str, str]
    """Configuration files by path."""
    files: Mapping[str, str]
    """All other files, with ``SRC`` and ``TESTS`` for the two folders."""

    def named(self, text: str) -> str:
        """Replace ``PKG``, ``ENVNAME``, ``SRC``, ``TESTS`` and ``NOUN`` by the names of this project."""
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
        """Return every file by its path."""
        return {**{self.named(path): text for path, text in self.files.items()}, **self.settings}

    @property
    def base_module(self) -> str:
        """Return a module that no fault affects."""
        return self.named(next(path for path in self.files if path.startswith("SRC/") and self.files[path]))

    @property
    def base_test(self) -> str:
        """Return a test file that no fault affects."""
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
