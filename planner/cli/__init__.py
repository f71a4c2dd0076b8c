"""Entry point of the ``planner`` command line.

Each command loads its files, asks the engine or the policy for a decision, renders the result and
returns an exit status.
"""

from __future__ import annotations


def main() -> None:
    """Run the command that ``sys.argv`` names, and exit the process with its status."""
    # Imported here: an error while the commands are imported is reported by ``guarded``, too.
    from planner.cli.exits import guarded

    guarded(_run)


def _run() -> None:
    from planner.cli.app import app

    app(prog_name="planner")
