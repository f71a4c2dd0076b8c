"""Runs the commands of the corpus as ``python -m pytest_planverify.corpus``."""

from __future__ import annotations

from planner.cli.ending import call_program, guarded
from pytest_planverify.corpus.command import app

if __name__ == "__main__":
    call_program("corpus")
    guarded(lambda: app(prog_name="python -m pytest_planverify.corpus"))
