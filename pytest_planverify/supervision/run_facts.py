"""What holds for the whole of a run, whichever of its plans is at work."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest
    from _pytest._io import TerminalWriter

    from pytest_planverify.confirmation_time import ConfirmationBudget
    from pytest_planverify.options import Settings
    from pytest_planverify.reports.progress import Progress
    from pytest_planverify.supervision.forkserver import ForkServer


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """One run over one or several plans."""

    run_id: str
    config: pytest.Config
    settings: Settings
    server: ForkServer
    script_paths: tuple[str, ...]
    """Entries of ``sys.path`` that are there because of how the run was started."""
    tw: TerminalWriter
    progress: Progress
    budget: ConfirmationBudget
    started: float
    """On the clock that only goes forward."""
    started_at: str


def now() -> str:
    """The time, as RFC 3339 has it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
