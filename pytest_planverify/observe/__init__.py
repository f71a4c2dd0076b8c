"""Code that runs inside a worker. It observes the session and writes records; it never judges.

Nothing here may import pydantic or other libraries of the parent: the project under test may itself be one
of them.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

_is_worker = False


def in_worker() -> bool:
    """Return whether this process is a worker of a run."""
    return _is_worker


def become_worker() -> None:
    """Mark this process as a worker of a run."""
    global _is_worker
    _is_worker = True


def set_planner_apart() -> None:
    """Import what a worker needs of our package ``planner``, and free the name for one of the project.

    To be called before anything of the project is imported.
    """
    # In front, as the folder of the project may be the first entry already.
    sys.path.insert(0, os.path.abspath(f"{__file__}/../../.."))
    try:
        for name in ("observe.evidence", "observe.project_map", "observe.spectrum", "observe.redaction"):
            import_module(f"pytest_planverify.{name}")
    finally:
        del sys.path[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == "planner"]:
        del sys.modules[name]
