"""What detectors must know about the project to judge one file of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Of one source file."""

    is_judge: bool = False
    """It is a file of tests."""
    is_script: bool = False
    """It is run, not imported: it lies in ``tools``, ``bin``, ``scripts``, or is set-up of the project."""
    own_packages: frozenset[str] = frozenset()
    """Top-level names that the project itself provides."""
    test_files: frozenset[str] = frozenset()
    """Paths of the files that judge."""
    plans: frozenset[str] = frozenset()
    """The plan files."""
    data_files: frozenset[str] = frozenset()
    """Paths of the data that criteria and tests read."""
