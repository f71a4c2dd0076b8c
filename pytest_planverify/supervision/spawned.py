"""Runs one session in an interpreter that was started for it, with the file of its spec as argument.

It does what a forked session does; only what a running interpreter cannot change is different.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main(path: str) -> None:
    """Run the session; never returns."""
    from pytest_planverify.observing.session import run_session
    from pytest_planverify.observing.spec import SessionSpec
    from pytest_planverify.supervision.forkserver import _die_with, _leave

    _die_with(os.getppid())
    spec = SessionSpec.from_json(Path(path).read_text(encoding="utf-8"))
    Path(path).unlink()  # what signs the records is not for the tests to read
    code = run_session(spec)
    _leave()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    main(sys.argv[1])
