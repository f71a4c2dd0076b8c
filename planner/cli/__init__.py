"""The command ``planner``: each command loads, decides by the rules, renders, and gives an exit status."""

from __future__ import annotations


def main() -> None:
    """Run the command with the words of the command line; ends the process."""
    from planner.cli.exits import guarded

    guarded(_run)


def _run() -> None:
    from planner.cli.app import app

    app(prog_name="planner")
