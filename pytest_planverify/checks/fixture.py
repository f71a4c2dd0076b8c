"""The data file that a criterion names: it must exist, and its digest goes into the outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.model.evidence import ArtifactFact, Evidence
from planner.model.outcome import FixtureUse
from planner.model.verdicts import EvidenceKind
from planner.text.sanitizing import clean
from pytest_planverify.checks.paths import (
    OutsideRoot,
    file_sha256,
    is_regular_file,
    names_like,
    resolve_under,
)

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class FixtureReading:
    """What is in the data file, or why it cannot be used."""

    use: FixtureUse
    path: Path | None = None
    """Absolute; ``None`` where it cannot be used."""
    evidence: Evidence | None = None
    """Set where it cannot be used: the criterion has failed."""


def read_fixture(path: str, root: Path, *, check_id: str = "") -> FixtureReading:
    """Read the data file below the root. Never raises."""
    try:
        file = resolve_under(root, path)
        if not file.exists():
            return _unusable(path, "missing", "does not exist", check_id, names_like(root, path))
        if not is_regular_file(file):
            return _unusable(path, "not_a_file", "is no file", check_id)
        digest = file_sha256(file)
    except OutsideRoot:
        return _unusable(path, "outside_root", "leads out of the plan's root", check_id)
    except OSError as error:
        return _unusable(path, "unreadable", f"cannot be read: {error.strerror or error}", check_id)
    return FixtureReading(use=FixtureUse(path=path, sha256=digest), path=file)


def _unusable(
    path: str, problem: str, what: str, check_id: str, nearest: tuple[str, ...] = ()
) -> FixtureReading:
    message = f"the fixture {path} {what}"
    if nearest:
        message += f"; did you mean {nearest[0]}?"
    evidence = Evidence(
        kind=EvidenceKind.FIXTURE,
        check_id=check_id,
        headline=clean(message, limit=1_000),
        artifact=ArtifactFact(path=path, problem=problem, nearest=nearest),
    )
    return FixtureReading(use=FixtureUse(path=path, sha256=None), evidence=evidence)
