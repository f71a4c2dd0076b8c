"""State directories of design plans, where the command looks for one."""

from __future__ import annotations

from pathlib import Path

import pytest
from design_samples import begin_complete, begin_frozen

from planner.authoring.design.state_folder import StateFolder


@pytest.fixture
def folder(tmp_path: Path) -> StateFolder:
    """Return the state directory of a complete plan."""
    return begin_complete(tmp_path / "state")


@pytest.fixture
def frozen(tmp_path: Path) -> StateFolder:
    """Return the state directory of a frozen plan."""
    return begin_frozen(tmp_path / "state")
