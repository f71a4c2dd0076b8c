"""The supervisor's way to :mod:`pytest_planverify.processes`, which the checks use too."""

from __future__ import annotations

from pytest_planverify.processes import ProcessResult, end_process_tree, run_process, signal_name

__all__ = ["ProcessResult", "end_process_tree", "run_process", "signal_name"]
