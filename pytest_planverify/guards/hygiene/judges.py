"""Which files judge, which are run, which are the verifier's own."""

from __future__ import annotations

from planner.model.baseline import JudgeKind
from pytest_planverify.work_tree import CONFIGURATIONS

__all__ = ["CONFIGURATIONS", "JUDGING", "is_own", "is_script"]

_SCRIPT_FOLDERS = frozenset(
    {"tools", "bin", "scripts", "script", "examples", "benchmarks", "docs", "doc", "ci"}
)
_SCRIPTS = frozenset({"setup.py", "noxfile.py", "tasks.py", "fabfile.py", "conf.py", "dodo.py"})
_OWN_FOLDER = ".planverify"

JUDGING = frozenset(
    {JudgeKind.TEST, JudgeKind.CONFTEST, JudgeKind.TEST_SUPPORT, JudgeKind.FIXTURE, JudgeKind.CONTRACT}
)
"""Kinds whose mere difference is a sign where nobody may change them."""


def is_script(path: str) -> bool:
    """Whether a source file is run rather than imported."""
    *folders, name = path.split("/")
    return name in _SCRIPTS or any(folder in _SCRIPT_FOLDERS for folder in folders)


def is_own(path: str) -> bool:
    """Whether a file is a record of the verifier."""
    return path.split("/", 1)[0] == _OWN_FOLDER or f"/{_OWN_FOLDER}/" in path
